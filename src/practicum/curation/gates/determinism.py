"""Gate `determinism`: neither order, seed, locale, clock nor load changes a verdict, and chance has no say.

Owns: `GATE`. Invariant: the gold passes and doing nothing fails under each condition; what was varied is named in the
evidence, and so is what could not be. Where the files speak of chance or time, the gold is judged many more times.
Must not know: why a verdict changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from practicum.curation.gates.chance import words_of_chance
from practicum.curation.gates.contract import Case, Found, Gate, brief
from practicum.curation.soundness.clock import OtherDay, moves_clock
from practicum.curation.soundness.noise import Condition, busy, conditions, slowed, slows, verifier_under
from practicum.curation.soundness.order import reordered, without_pass_to_pass
from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.vetting import vet_sentinels


async def _assess(case: Case) -> Found:
    gold = await case.gold()
    plan = conditions(1 + case.settings.rounds, seed=case.settings.seed)[1:]
    rows: list[dict[str, Any]] = []
    plan = [replace(condition, load=number == 0) for number, condition in enumerate(plan)]  # once is dear enough
    for condition in plan:
        rows.append(await _under(case, condition, gold, should_pass=True))
    rows.append(await _under(case, plan[-1], Submission(()), should_pass=False))
    rows += await _in_other_order(case, gold)
    chance = sorted(words_of_chance(case.task, gold))
    if chance:
        verdicts = await case.judge_each([gold] * case.settings.more_rounds, case.steady())
        rows += [_row(verdict, f"judged again ({n})", should_pass=True) for n, verdict in enumerate(verdicts, 1)]
    evidence = {
        "varied": _varied(case.task, plan),
        "not_varied": _not_varied(case.task),
        "judgements": rows,
        "speaks_of_chance": chance[:20],
    }
    changed = next((row for row in rows if not row["as_before"]), None)
    if changed is not None:
        who = "the gold does not pass" if changed["of"] == "gold" else "doing nothing passes"
        return Found(False, f"{who} under another condition: {changed['condition']}", evidence)
    if spoilt := await _spoilt(case, gold):
        names = ", ".join(f'"{name}"' for name in spoilt)
        reason = f"the gold passes {names} only where it is run once: add `unguarded = [{names}]` to [practicum.tests]"
        return Found(False, reason, {**evidence, "only_once": list(spoilt)})
    return Found(True, f"the same verdicts under {len(rows)} changed conditions", evidence)


async def _under(case: Case, condition: Condition, submission: Submission, *, should_pass: bool) -> dict[str, Any]:
    """One judgement under a condition, and whether it came out as it must."""
    if not moves_clock(case.task):
        condition = replace(condition, clock_s=0)
    bench = case.bench
    verifier = verifier_under(bench.leased, condition)
    less = condition.load and slows(bench.workshop.provider)

    async def judged(by: ExecutionVerifier) -> Verdict:
        beside = busy(bench.workshop.provider) if condition.load and not less else None
        task = slowed(case.task) if less else None
        judge = case.steady(1 + condition.seed % 2, by)  # lots that the gold has met
        return await case.judge(submission, verifier=judge, task=task, right=should_pass, beside=beside)

    verdict = await judged(verifier)
    if should_pass and not verdict.passed and condition.clock_s:
        # The replaced clock may itself be what the tests do not bear: then it is left as it was.
        control = bench.leased.under(condition.env, seed=condition.seed, boxes=lambda own: OtherDay(own, 0))
        if not (await judged(control)).passed:
            condition = replace(condition, clock_s=0)
            verdict = await judged(verifier_under(bench.leased, condition))
    return _row(verdict, _named(condition, less=less), should_pass=should_pass)


def _row(verdict: Verdict, condition: str, *, should_pass: bool) -> dict[str, Any]:
    of = "gold" if should_pass else "nothing done"
    return {"of": of, "condition": condition, "as_before": verdict.passed == should_pass, **brief(verdict)}


def _named(condition: Condition, *, less: bool) -> str:
    parts = [f"{name}={value}" for name, value in sorted(condition.env.items())]
    if condition.clock_s:
        parts.append(f"the clock moved by {condition.clock_s / 86400:+.1f} days")
    if condition.load:
        parts.append("half a processor" if less else "a busy process beside")
    return ", ".join(parts)


async def _in_other_order(case: Case, gold: Submission) -> list[dict[str, Any]]:
    orders = {
        "tests in reversed order": reordered(case.task),
        "tests in shuffled order": reordered(case.task, f"{case.settings.seed}"),
        "without the tests of pass_to_pass": without_pass_to_pass(case.task),
    }
    rows = []
    for name, task in orders.items():
        if task is not None:
            verdict = await case.judge(gold, verifier=case.steady(), task=task, right=True)
            rows.append(_row(verdict, name, should_pass=True))
    return rows


async def _spoilt(case: Case, gold: Submission) -> tuple[str, ...]:
    """Tests that do not bear sentinels: their verdicts would be left to chance."""
    verdict = case.gold_verdict or await case.judge(gold)
    async with case.turn():
        return await vet_sentinels(case.bench.workshop.provider, case.task, gold, verdict, judge=case.bench.leased)


def _varied(task: Task, plan: list[Condition]) -> list[str]:
    found = ["hash seed, time zone, locale, load"]
    if moves_clock(task) and any(condition.clock_s for condition in plan):
        found.append("the time of day as Python sees it")
    found.append("order of the tests" if task.verification.runner == "pytest" else "order of cases by the judge's seed")
    return found


def _not_varied(task: Task) -> list[str]:
    found = [] if moves_clock(task) else ["the clock: this runner's boxes show the host's"]
    if task.verification.runner == "unittest":
        found.append("the order of the tests: unittest runs them by name")
    return found


GATE = Gate(
    "determinism",
    "5",
    "boxes",
    "rejected",
    _assess,
    needs=("gold", "noop"),
    parameters=("rounds", "more_rounds", "seed"),
)
