"""Which tasks of a set can be released, and what carries them: evidence, licences, reviews, error rates.

Owns: `Chosen`, `choose`, `unreviewed`, `noise_of`.
Invariant: a task is chosen only where the ledger admits its very content on the evidence that is kept; every other task
is named with the reason.
Must not know: how a release is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from practicum.curation.agreement import plainly
from practicum.curation.assessments import FILE as ASSESSMENTS
from practicum.curation.assessments import Assessments, gate_json, gates_digest
from practicum.curation.ledger import Ledger, taskset_folder
from practicum.curation.release_manifest import folder_names, task_row
from practicum.curation.review_report import ReviewReport
from practicum.curation.similarity.folders import TaskFolders
from practicum.curation.similarity.origin import licence_of
from practicum.curation.soundness.noise import read_noise
from practicum.errors import TaskError
from practicum.records.assessment import Assessment

NOISE = "noise.json"
_NO_LICENCE = frozenset({"", "unknown", "none", "noassertion"})


@dataclass(slots=True)
class Chosen:
    """What a release is made of: `rows` of the manifest and the `folders` where the tasks lie, in the order of ids.

    `contents` are those of all tasks of the set, content → id; `protected` is what gates compared them with.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    protected: dict[str, Any] = field(default_factory=dict)


def choose(taskset: Path, ledger: Ledger, *, allow_unlicensed: bool) -> Chosen:
    """Look at every task of the set; one that cannot be read, or has the id of another, is refused by its folder."""
    chosen, names = Chosen(), dict[str, Path]()
    kept = Assessments(ledger.path.with_name(ASSESSMENTS))
    folders = TaskFolders(taskset)
    picked: list[tuple[dict[str, Any], Path]] = []
    for number in range(len(folders)):
        folder = folders.folder(number)
        try:
            task = folders[number]
            if task.id in names:
                raise TaskError(f"{folder}: the id {task.id!r} is already taken by {names[task.id]}")
        except TaskError as error:
            chosen.refused[str(folder)] = error.message
            continue
        names[task.id], content = folder, task.content
        chosen.contents[content] = task.id
        standing, found = ledger.standing(content), kept.get(content)
        if standing is None or standing.stage != "admitted":
            why = f"{standing.stage}: {standing.entry.reason}" if standing else "nothing is decided on it as it is now"
            chosen.left_out[task.id] = why
        elif found is None or not _decided_by(ledger, content, found):
            chosen.refused[task.id] = "what gates found on it is missing, or not what the ledger holds: check it again"
        elif not allow_unlicensed and licence_of(task).casefold() in _NO_LICENCE:
            chosen.refused[task.id] = "its licence is not stated; --allow-unlicensed releases it all the same"
        else:
            evidence = _gates_evidence(ledger, content)
            verifier = str(evidence.get("verifier", "not recorded"))
            picked.append((task_row(task, content, found, by=standing.entry.actor, verifier=verifier), folder))
            _note_protected(chosen.protected, found)
    picked.sort(key=lambda pair: pair[0]["id"])
    chosen.rows, chosen.folders = [row for row, _ in picked], [folder for _, folder in picked]
    for row, place in zip(chosen.rows, folder_names([row["id"] for row in chosen.rows]), strict=True):
        row["folder"] = f"tasks/{place}"
    return chosen


def _gates_evidence(ledger: Ledger, content: str) -> Mapping[str, Any]:
    said = ledger.gated(content)
    return (said.evidence if said else None) or {}


def _decided_by(ledger: Ledger, content: str, found: Assessment) -> bool:
    """Whether `found` is what the ledger's gates went by."""
    return bool(_gates_evidence(ledger, content).get("gates") == gates_digest(found))


def _note_protected(protected: dict[str, Any], found: Assessment) -> None:
    """What the task was compared with, by the gate's own evidence: sizes, and digests where it states them."""
    result = found.gates.get("contamination")
    evidence = gate_json(result)["evidence"] if result else {}
    for key in ("compared_with", "protected"):
        if isinstance(evidence.get(key), dict):
            protected.setdefault(key, {}).update(evidence[key])


def unreviewed(report: ReviewReport, contents: Sequence[str], bound: float) -> str | None:
    """Why people's reviews do not carry the release; None where they do."""
    if report.queue is None or report.estimate is None:
        return "nobody has reviewed any of it; practicum tasks review"
    uncovered = len(report.queue.not_covered(contents))
    if not report.batch_current or uncovered:
        which = f"{uncovered} of {len(contents)} tasks could not be drawn then"
        return f"the reviews are of another state of the task set ({which}); review a new sample"
    return plainly(report.estimate, bound) if report.estimate.high > bound else None


def noise_of(taskset: Path, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """How often verdicts on the released tasks are wrong, where it was measured."""
    path = taskset_folder(taskset) / NOISE
    if not path.is_file():
        return None
    found = read_noise(path)
    rates = {}
    for row in rows:
        if (each := found.get(row["digest"])) is not None:
            rates[row["id"]] = {
                "false_positive": [each.false_positive.value, each.false_positive.low, each.false_positive.high],
                "false_negative": [each.false_negative.value, each.false_negative.low, each.false_negative.high],
                "youden_low": each.youden_low,
            }
    return {"measured": len(rates), "tasks": rates}
