"""The least that is asked of a task before it is attempted: its gold passes, and doing nothing fails.

Owns: `Admission`, `check_tasks`, `admit`, `untouched_problem`.
Invariant: both were seen in boxes; what could not be found out is told apart from what is wrong.
Must not know: the further gates, training.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Verdict
from practicum.rollouts.agents import noop_agent, oracle_agent
from practicum.rollouts.collector import OnDone
from practicum.rollouts.workshop import Workshop, run_specs, specs_for
from practicum.verification.runners.drivers import Drivers


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a task may be used. `reason` says why not; `unscorable` that it could not be found out."""

    task: Task
    admitted: bool
    reason: str | None = None
    unscorable: bool = False


async def check_tasks(workshop: Workshop, tasks: Sequence[Task], *, on_done: OnDone | None = None) -> list[Admission]:
    """Admit each task whose gold passes and on which doing nothing fails, both seen to do so in boxes."""
    gold, noop = oracle_agent(), noop_agent()
    golds = await run_specs(workshop, gold, specs_for(tasks, gold), on_done=on_done)
    # Doing nothing needs no box to do it in: the untouched task is what is judged.
    untouched = [replace(spec, untouched=True) for spec in specs_for(tasks, noop)]
    noops = await run_specs(workshop, noop, untouched, on_done=on_done)
    permits, drivers = asyncio.Semaphore(workshop.max_concurrent), Drivers(workshop.provider)

    async def vetted(task: Task, gold: Trajectory, noop: Trajectory) -> Admission:
        async with permits:
            return await _vet(workshop, drivers, admit(task, gold, noop), gold)

    return await asyncio.gather(*map(vetted, tasks, golds, noops))


async def _vet(workshop: Workshop, drivers: Drivers, admission: Admission, gold: Trajectory) -> Admission:
    """Refuse a task whose tests do not bear sentinels, and name them: their verdicts would be left to chance."""
    from practicum.verification.vetting import vet_sentinels

    if admission.unscorable or gold.verdict is None or gold.submission is None or not admission.task.solution:
        return admission
    spoilt = await vet_sentinels(workshop.provider, admission.task, gold.submission, gold.verdict, drivers=drivers)
    if not spoilt:
        return admission
    names = ", ".join(f'"{name}"' for name in spoilt)
    reason = f"the gold passes {names} only where it is run once: add `unguarded = [{names}]` to [practicum.tests]"
    return replace(admission, admitted=False, reason=reason)


def admit(task: Task, gold: Trajectory, noop: Trajectory) -> Admission:
    """The decision on `task`, from an attempt of the oracle and one that did nothing. Pure."""
    for who, attempt in (("the gold", gold), ("doing nothing", noop)):
        if attempt.fault is not None:
            return Admission(task, False, f"{who} could not be judged: {attempt.fault.message}", unscorable=True)
        if attempt.verdict is None or attempt.verdict.status != "valid":
            reason = attempt.verdict.reason if attempt.verdict else None
            return Admission(task, False, f"{who} has no valid verdict: {reason}")
    assert gold.verdict is not None
    assert noop.verdict is not None
    if not task.solution:
        return Admission(task, False, "there is no solution/solve.sh, so nothing shows that the task can be done")
    if not gold.verdict.passed:
        wrong = [name for name, status in gold.verdict.tests.items() if status != "passed"]
        return Admission(task, False, f"the gold does not pass: {gold.verdict.outcome} ({', '.join(wrong[:5])})")
    problem = untouched_problem(task, noop.verdict)
    return Admission(task, problem is None, problem)


def untouched_problem(task: Task, verdict: Verdict) -> str | None:
    """What is wrong with a task whose untouched state came to `verdict`, a valid one. Pure."""
    if verdict.passed:
        return "doing nothing passes"
    check = task.verification
    early = [name for name in check.fail_to_pass if verdict.tests.get(name) == "passed"]
    if early:
        return f"named in fail_to_pass, but pass on the untouched task: {', '.join(early[:5])}"
    broken = [name for name in check.pass_to_pass if verdict.tests.get(name) != "passed"]
    if broken and verdict.outcome != "build_failed":
        return f"named in pass_to_pass, but fail on the untouched task: {', '.join(broken[:5])}"
    return None
