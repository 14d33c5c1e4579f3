"""Attempts, inside a training run and outside: the one place where provider, judge and policy are put together.

Owns: `Workshop`, `open_boxes`, `open_workshop`, `specs_for`, `run_specs`, `check_tasks`, `admit`, `Admission`.
Invariant: whoever asks (rollout, eval, admission), an attempt goes the same way; every box is gone on return.
Must not know: training, who prints the outcome.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from practicum.config.sections import JudgeConfig
from practicum.pipeline.agents import Agent, noop_agent, oracle_agent
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.attempt import AttemptSpec, run_attempt
from practicum.rollouts.groups import run_attempts
from practicum.rollouts.harness import Harness
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.contract import Verifier
from practicum.verification.runners.drivers import Drivers

OnDone = Callable[[Trajectory], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where attempts happen: boxes for agents, and a judge with boxes of its own."""

    provider: SandboxProvider
    verifier: Verifier
    max_concurrent: int


def open_boxes(run_id: str = "adhoc") -> AbstractAsyncContextManager[SandboxProvider]:
    """Boxes on this host, with the best limits that it can enforce; `practicum doctor` says which.

    Raises `UnsupportedControl` or `CreateFailed`, with a fix, where this host cannot make a box.
    """
    from practicum.sandboxes.provider import open_provider

    return open_provider(run_id=run_id, limits_by="cgroup-or-rlimit")


@asynccontextmanager
async def open_workshop(max_concurrent: int | None = None, judge: JudgeConfig | None = None) -> AsyncIterator[Workshop]:
    """Boxes and a verifier; `max_concurrent` attempts at once, twice the processors where not given.

    `judge` names a model for the signal of that name. Raises what `open_boxes` and `open_signals` raise.
    """
    from practicum.pipeline.signals import open_signals
    from practicum.verification.opening import open_verifier

    async with (
        open_boxes() as provider,
        open_verifier(provider) as executing,
        open_signals(provider, executing, judge) as verifier,
    ):
        yield Workshop(provider, verifier, max_concurrent or 2 * (os.cpu_count() or 1))


async def run_specs(
    workshop: Workshop, agent: Agent, specs: Sequence[AttemptSpec], *, on_done: OnDone | None = None
) -> list[Trajectory]:
    """The trajectories of `specs`, in their order; `on_done` gets each as it ends."""
    run = partial(
        run_attempt,
        provider=workshop.provider,
        verifier=workshop.verifier,
        policy=agent.policy,
        renderer=agent.renderer,
        harness=Harness(budgets=agent.budgets),
    )
    return await run_attempts(specs, run, max_concurrent=workshop.max_concurrent, on_done=on_done)


def specs_for(tasks: Sequence[Task], agent: Agent, *, samples: int = 1, seed: int = 0) -> list[AttemptSpec]:
    """`samples` attempts at each task, with seeds of their own."""
    return [
        AttemptSpec(
            task=task,
            group_id=task.id,
            index=index,
            seed=seed + index,
            temperature=agent.temperature,
            with_solution=agent.with_solution,
        )
        for task in tasks
        for index in range(samples)
    ]


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
    if noop.verdict.passed:
        return Admission(task, False, "doing nothing passes")
    check = task.verification
    early = [name for name in check.fail_to_pass if noop.verdict.tests.get(name) == "passed"]
    if early:
        return Admission(task, False, f"named in fail_to_pass, but pass on the untouched task: {', '.join(early[:5])}")
    broken = [name for name in check.pass_to_pass if noop.verdict.tests.get(name) != "passed"]
    if broken and noop.verdict.outcome != "build_failed":
        return Admission(task, False, f"named in pass_to_pass, but fail on the untouched task: {', '.join(broken[:5])}")
    return Admission(task, True)
