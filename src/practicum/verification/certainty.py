"""How often a suite is judged before its report counts.

Owns: `certain`, `ENOUGH`.
Invariant: nobody is accused on one judgement alone, and nobody earns what picking among the alternatives would have
earned with a chance above `ENOUGH`. Only what has passed each time is passed.
Must not know: boxes, how a judgement is made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from practicum.records.task import Verification
from practicum.records.verdict import Finding, TestStatus, Verdict
from practicum.verification.outcome import decide
from practicum.verification.runners.report import Report
from practicum.verification.seen import Seen
from practicum.verification.sentinels.luck import luck
from practicum.verification.sentinels.reading import Answers, Point, repeated

Ask = Callable[[str, int], Awaitable[Seen | Verdict]]
"""One more judgement in a fresh box, with the lots of this nonce at this turn; a verdict where there was none."""

ENOUGH = 1e-3
_ROUNDS = 10  # a test that asks one thing with two answers: 1 in 1024
_CONFIRMATIONS = 2  # of a suspicion; one is enough where nobody could have told the answers apart
_MAX_CONTRADICTIONS = 10  # that are told one by one


async def certain(
    first: Report, check: Verification, lot: tuple[str, int], ask: Ask, *, once: bool = False
) -> Report | Verdict:
    """`first`, the report of the judgement with this lot, after as many more as it takes.

    A suspicion is judged again with the same lots, in reversed order and with other wrong answers. What has been earned
    is judged again with fresh lots until luck is ruled out, unless `once`. A verdict is what came instead of a report.
    """
    report: Report | Verdict = await _confirmed(first, lot, ask)
    rounds: list[Answers] = []
    chance = 0.0
    while isinstance(report, Report):
        assert first.answers is not None
        rounds.append(first.answers)
        chance = luck(rounds, _earned(check, report))
        if once or chance <= ENOUGH or len(rounds) == _ROUNDS:
            break
        lots = f"{lot[0]}.{len(rounds)}", lot[1]
        seen = await ask(*lots)
        if isinstance(seen, Verdict):
            return seen
        assert seen.report is not None
        first = seen.report
        again = await _confirmed(first, lots, ask)
        report = again if isinstance(again, Verdict) else _merged(report, again)
    if isinstance(report, Verdict) or not rounds:
        return report
    return replace(report, evidence={**report.evidence, "rounds": len(rounds), "luck": chance})


def _earned(check: Verification, report: Report) -> frozenset[str]:
    """The tests that have newly passed, where the outcome gives something for them."""
    if any(finding.severity == "tamper" for finding in report.findings):
        return frozenset()
    outcome, _ = decide(check, report.statuses, complete=report.complete)
    if outcome not in ("passed", "partial"):
        return frozenset()
    return frozenset(name for name in check.fail_to_pass if report.statuses.get(name) == "passed")


def _merged(report: Report, again: Report) -> Report:
    """`report` with what `again` takes from it, and says against it."""
    details = {name: why for name, why in again.details.items() if report.statuses.get(name) == "passed"}
    return replace(
        report,
        statuses=_both(report.statuses, again.statuses),
        details={**details, **report.details},
        findings=(*report.findings, *(found for found in again.findings if found not in report.findings)),
        complete=report.complete and again.complete,
    )


def _both(one: Mapping[str, TestStatus], other: Mapping[str, TestStatus]) -> dict[str, TestStatus]:
    return {name: "failed" if other.get(name) != "passed" else status for name, status in one.items()}


async def _confirmed(first: Report, lot: tuple[str, int], ask: Ask) -> Report | Verdict:
    """What is suspicious judged again: what comes again is proven."""
    assert first.answers is not None
    if not first.answers.suspicious:
        return first
    proven: dict[Point, str] | None = None
    statuses: Mapping[str, TestStatus] = first.statuses
    for turn in range(lot[1] + 1, lot[1] + 1 + _CONFIRMATIONS):
        seen = await ask(lot[0], turn)
        if isinstance(seen, Verdict):
            return seen
        assert seen.report is not None
        assert seen.report.answers is not None
        again = repeated(first.answers, seen.report.answers)
        proven = again if proven is None else {point: why for point, why in proven.items() if point in again}
        statuses = _both(statuses, seen.report.statuses)
        if not proven or proven.keys() & first.answers.strong:
            break
    shown = list((proven or first.answers.contradictions).items())[:_MAX_CONTRADICTIONS]
    findings = [
        Finding("sentinel", point[0], why, "tamper") if proven else Finding("flaky_contradiction", point[0], why)
        for point, why in shown
    ]
    return replace(first, statuses=statuses, findings=(*first.findings, *findings))
