"""Verdicts in the making.

Owns: `task_problem` (what makes a task unfit to be judged), `told` (an unforeseen error in words) and `VerdictMaker`
(what every verdict carries).
Invariant: only `VerdictMaker.valid` gives a number, and it takes it from the task's reward table. Pure.
Must not know: boxes, how tests are run.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from practicum.records.task import Task
from practicum.records.verdict import Outcome, Signal, Status, Submission, TestStatus, Verdict
from practicum.verification.findings import classify
from practicum.verification.fusion import RELIABILITY, fuse, reward_problem
from practicum.verification.outcome import decide, decide_score
from practicum.verification.reliability import reliability
from practicum.verification.runners.report import Report
from practicum.verification.runners.variants import variants_problem


def task_problem(task: Task) -> str | None:
    """Why nothing could be judged by this task's verification, or None."""
    check = task.verification
    if (problem := reward_problem(check.reward)) is not None:
        return problem
    ids = (*check.fail_to_pass, *check.pass_to_pass)
    if not check.fail_to_pass:
        return "fail_to_pass names no test, so doing nothing would pass"
    if len(set(ids)) != len(ids):
        return "a test is named twice in fail_to_pass and pass_to_pass"
    missing = [name for name in (*check.files, *check.visible) if name not in check.tests]
    if check.runner == "harbor" and "test.sh" not in check.tests:
        missing.append("test.sh")
    if missing:
        return f"the frozen file tests/{missing[0]} is missing"
    if check.runner == "plain":
        if check.plain is None:
            return "the plain runner needs an entry and cases"
        if check.plain.generator is not None and check.plain.generator not in check.tests:
            return f"the generator tests/{check.plain.generator} is missing"
    elif check.runner != "harbor" and not check.files:
        return f"the {check.runner} runner needs frozen files"
    if check.runner == "command" and not set(ids) <= set(check.files):
        return f"no frozen script is called {min(set(ids) - set(check.files))!r}"
    if check.runner == "variants":
        return variants_problem(task)
    return None


def told(error: BaseException) -> str:
    """An error that nobody foresaw, with where it came up."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({Path(frame.filename).name} line {frame.lineno})" for frame in last)
    return f"{type(error).__name__}: {error}{place}"


class VerdictMaker:
    """Makes the verdict on one submission: adds what every verdict carries."""

    def __init__(self, task: Task, submission: Submission, version: str, provider: str) -> None:
        self.task = task
        self.submission = submission
        self.version = version
        derived = (classify(task, change) for change in submission.changes)
        self.findings = list(dict.fromkeys([*submission.findings, *(found for found in derived if found)]))
        self.faults: list[str] = []
        self._evidence: dict[str, Any] = {
            "task_digest": task.digest,
            "tests_digest": task.verification.digest,
            "submission_digest": submission.digest,
            "layer": str(task.layer),
            "provider": provider,
            "runner": task.verification.runner,
        }

    def drawn(self, nonce: str) -> None:
        """Note what decided the lots of this judgement, so that it can be followed."""
        self._evidence["nonce"] = nonce

    def reported(self, report: Report, seconds: Mapping[str, float]) -> Verdict:
        """The verdict on what a runner reported."""
        self.findings += report.findings
        evidence = {**report.evidence, "details": dict(report.details), "seconds": seconds}
        if any(finding.severity == "tamper" for finding in report.findings):
            return self.valid("tampered", report.statuses, evidence=evidence)
        if report.fresh is not None:
            evidence["fresh"] = {"passed": report.fresh[0], "total": report.fresh[1]}
        if report.score is not None:
            outcome, newly, total = decide_score(report.score)
        else:
            total = len(self.task.verification.fail_to_pass)
            outcome, newly = decide(
                self.task.verification, report.statuses, complete=report.complete, fresh=report.fresh
            )
        return self.valid(outcome, report.statuses, evidence=evidence, newly=newly, total=total)

    def valid(
        self,
        outcome: Outcome,
        statuses: Mapping[str, TestStatus],
        *,
        evidence: Mapping[str, Any],
        newly: int = 0,
        total: int = 1,
    ) -> Verdict:
        check = self.task.verification
        trust = reliability(self.task, self.findings, evidence)
        return Verdict(
            status="valid",
            outcome=outcome,
            reward=fuse(check.reward, outcome, (), newly=newly, total=total),
            signals=(Signal(RELIABILITY, trust, weight=0.0),),
            tests={name: statuses.get(name, "missing") for name in (*check.fail_to_pass, *check.pass_to_pass)},
            findings=tuple(self.findings),
            evidence=self._all(evidence),
            verifier_version=self.version,
        )

    def invalid(self, reason: str) -> Verdict:
        return self._masked("invalid", reason)

    def unscorable(self, reason: str) -> Verdict:
        return self._masked("unscorable", reason)

    def _masked(self, status: Status, reason: str) -> Verdict:
        return Verdict(
            status=status,
            outcome=None,
            reward=None,
            findings=tuple(self.findings),
            evidence=self._all({}),
            reason=reason,
            verifier_version=self.version,
        )

    def _all(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._evidence, **({"faults": self.faults} if self.faults else {}), **evidence}
