"""From test statuses to an outcome.

Owns: `decide`. Invariant: a pass needs every expected id reported as passed and nothing that speaks against it;
`total` comes from the manifest, never from what happened to run. Pure.
Must not know: how tests are run.
"""

from __future__ import annotations

from collections.abc import Mapping

from practicum.records.task import Verification
from practicum.records.verdict import Outcome, TestStatus

SHARES = 1_000_000


def decide(
    check: Verification,
    statuses: Mapping[str, TestStatus],
    *,
    complete: bool = True,
    fresh: tuple[int, int] | None = None,
) -> tuple[Outcome, int]:
    """The outcome, and how many of `check.fail_to_pass` count as newly passed.

    `complete` is False where something speaks against the report as a whole (an unexpected id, an exit status that
    disagrees): then nothing passes. `fresh` is (passed, total) of cases drawn at judging time: the share that
    passed bounds the share of frozen tests that counts, so that knowing the frozen answers is worth nothing.
    """
    total = len(check.fail_to_pass)
    newly = sum(statuses.get(name) == "passed" for name in check.fail_to_pass)
    broken = any(statuses.get(name) != "passed" for name in check.pass_to_pass)
    if fresh is not None:
        newly = min(newly, total * fresh[0] // fresh[1])
    if broken or not complete or newly == 0:
        return "failed", newly
    return ("passed" if newly == total else "partial"), newly


def decide_score(score: float) -> tuple[Outcome, int, int]:
    """Outcome, and newly passed out of total, for a task whose own script gives a finite number.

    1 or more is a pass, 0 or less a failure, and between them the number is the share of tests that passed.
    """
    if score >= 1:
        return "passed", SHARES, SHARES
    if score <= 0:
        return "failed", 0, SHARES
    return "partial", int(score * SHARES), SHARES
