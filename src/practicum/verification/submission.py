"""From what an attempt left behind to a submission.

Owns: `collect`, `submission_from_patch`, `submission_from_workspace`, `judged_files`.
Invariant: only plain files on editable paths leave, as data; whatever else changed is a finding, and the judged
tree is the untouched task plus those changes, never the attempt's own tree. Pure. Must not know: boxes, verdicts.
"""

from __future__ import annotations

from practicum.errors import SubmissionError, TaskError
from practicum.records.patches import apply_patch
from practicum.records.task import Task
from practicum.records.tree import Change, File, Tree, apply_changes, check_path, diff_trees, matches
from practicum.records.verdict import Finding, Submission
from practicum.sandboxes.contract import Listing
from practicum.verification.findings import BYPRODUCTS, classify, is_byproduct, tampering

MAX_FINDINGS = 100
_SPECIAL = 0o7000  # set-user-id, set-group-id, sticky: never left by honest work


def collect(task: Task, after: Listing) -> Submission:
    """The submission in a workspace that now holds `after`.

    Changes to editable paths become the submission. Each other change, each irregular file and each path that
    cannot be a plain relative one becomes a finding; by-products of tools are passed over.
    """
    changes: list[Change] = []
    findings: list[Finding] = []
    plain: dict[str, File] = {}
    for path, file in after.files.items():
        try:
            plain[check_path(path)] = _normal(file)
            if file.mode & _SPECIAL:
                findings.append(Finding("permissions_changed", path, f"mode {file.mode:o}"))
        except SubmissionError as error:
            findings.append(Finding("odd_path", path, error.message))
    for path, kind in sorted(after.irregular.items()):
        if not is_byproduct(path):
            veto = tampering(task, path) is not None
            findings.append(Finding("irregular_file", path, kind, "tamper" if veto else "note"))
    for change in diff_trees({path: _normal(file) for path, file in task.files.items()}, plain):
        if is_byproduct(change.path, change.file) and change.path not in task.files:
            continue
        if change.path in after.irregular and change.kind == "delete":
            continue  # a link or device took its place, which is already a finding
        finding = classify(task, change)
        if finding is not None:
            findings.append(finding)
        if change.path not in task.files and matches(change.path, BYPRODUCTS):
            continue  # told, and stays
        if matches(change.path, task.editable) and (finding is None or finding.severity == "note"):
            changes.append(change)
    return Submission(tuple(changes), _bounded(findings))


def submission_from_workspace(task: Task, tree: Tree) -> Submission:
    """The submission in a workspace given as a tree of plain files."""
    return collect(task, Listing(files=tree))


def submission_from_patch(task: Task, text: str) -> Submission:
    """The submission that a unified diff (plain or git's) against the task's workspace stands for.

    Raises `SubmissionError`, naming file and line, when the patch does not parse, apply exactly or stay inside.
    """
    return collect(task, Listing(files=apply_patch(task.files, text)))


def judged_files(task: Task, submission: Submission) -> dict[str, File]:
    """The tree to judge: the untouched task with the submission's editable changes, visible tests as they were.

    Does not trust that `submission` came from `collect`. Raises `SubmissionError` when a change does not fit, and
    `TaskError` when it was made for other files than the task has, which nothing done in a box can bring about.
    """
    for change in submission.changes:
        if change.kind != "add" and change.path not in task.files:
            raise TaskError(f"the submission does not apply: it {change.kind}s {change.path!r}, which is not there")
    allowed = [
        change
        for change in submission.changes
        if matches(change.path, task.editable) and tampering(task, change.path) is None
    ]
    return apply_changes(task.files, allowed)


def _bounded(findings: list[Finding]) -> tuple[Finding, ...]:
    """At most `MAX_FINDINGS`, the vetoing ones first, so that a flood of files is no flood of records."""
    ordered = sorted(findings, key=lambda finding: finding.severity != "tamper")
    if len(ordered) <= MAX_FINDINGS:
        return tuple(ordered)
    left = len(ordered) - MAX_FINDINGS
    return (*ordered[:MAX_FINDINGS], Finding("more_findings", "", f"{left} more are left out"))


def _normal(file: File) -> File:
    """Only the right to execute counts; what else a umask did to the mode is no change."""
    mode = 0o755 if file.mode & 0o100 else 0o644
    return file if file.mode == mode else File(file.data, mode)
