"""Verdicts as people and programs read them.

Owns: `verdict_document`, `verdict_text`, `exit_code_of`.
Invariant: the document is the `Verdict` record, field for field, plus `task` and `fault`.
Must not know: how a verdict came about.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from practicum.cli.failure import BAD_INPUT, INFRASTRUCTURE, NEGATIVE
from practicum.pipeline.wording import visible
from practicum.records.task import Task
from practicum.records.trajectory import Fault
from practicum.records.tree import unified_diff
from practicum.records.verdict import Signal, Submission, Verdict
from practicum.verification.shaping import MISSING

OUTPUT_LINES = 20  # of the tests' output, shown where they did not pass
_MARKS = {"passed": "✓", "failed": "✗", "missing": "?"}


def verdict_document(task: Task, verdict: Verdict | None, fault: Fault | None) -> dict[str, Any]:
    """The record as JSON data. An attempt that a fault ended has no verdict, and reads as unscorable."""
    verdict = verdict or Verdict("unscorable", None, None, reason=fault.message if fault else None)
    document = {
        "task": task.id,
        "status": verdict.status,
        "outcome": verdict.outcome,
        "reward": verdict.reward,
        "tests": dict(verdict.tests),
        "signals": [dataclasses.asdict(signal) for signal in verdict.signals],
        "findings": [dataclasses.asdict(finding) for finding in verdict.findings],
        "evidence": dict(verdict.evidence),
        "reason": verdict.reason,
        "verifier_version": verdict.verifier_version,
    }
    return document | {"fault": {"kind": fault.kind, "message": fault.message} if fault else None}


def exit_code_of(verdict: Verdict | None, fault: Fault | None) -> int:
    """0 passed, 1 judged and not passed, 2 the task is at fault, 3 nothing could be decided."""
    if fault is not None or verdict is None or verdict.status == "unscorable":
        return INFRASTRUCTURE
    if verdict.status == "invalid":
        return BAD_INPUT
    return 0 if verdict.passed else NEGATIVE


def verdict_text(task: Task, verdict: Verdict | None, fault: Fault | None, submission: Submission | None) -> str:
    """A short account: the outcome, each test, what is worth knowing, why it failed, the diff."""
    lines = [f"{task.id}: {_headline(verdict, fault)}"]
    if verdict is not None:
        expected = set(task.verification.fail_to_pass)
        for name, status in verdict.tests.items():
            note = "" if name in expected else "  (must keep passing)"
            lines.append(f"  {_MARKS[status]} {name}{note}")
        if verdict.reason:
            lines.append(f"  reason: {verdict.reason}")
        lines += [f"  signal: {s.name} {s.score:.2f} (weight {s.weight * s.reliability:g})" for s in _shaping(verdict)]
        missing = verdict.evidence.get(MISSING, {})
        lines += [f"  signal missing: {name}: {reason}" for name, reason in sorted(missing.items())]
    findings = list(verdict.findings) if verdict is not None else []
    if submission is not None:
        findings += [finding for finding in submission.findings if finding not in findings]
    for finding in findings:
        lines.append(f"  {finding.severity}: {finding.kind} {finding.path} {finding.evidence}".rstrip())
    if verdict is not None and not verdict.passed:
        output = str(verdict.evidence.get("output", "")).strip().splitlines()[-OUTPUT_LINES:]
        lines += ["", *(f"  | {line}" for line in output)] if output else []
    if submission is not None:
        diff = unified_diff(task.files, submission.changes)
        lines += ["", diff.rstrip("\n")] if diff else ["  nothing was changed"]
    return visible("\n".join(lines))


def _shaping(verdict: Verdict) -> list[Signal]:
    """The signals that decide the reward together, none where there is only the outcome."""
    return [signal for signal in verdict.signals if signal.weight > 0]


def _headline(verdict: Verdict | None, fault: Fault | None) -> str:
    if fault is not None:
        return f"not judged ({fault.kind}: {fault.message})"
    if verdict is None:
        return "not judged"
    if verdict.reward is None:
        return verdict.status
    return f"{verdict.outcome}, reward {verdict.reward:+.2f}"
