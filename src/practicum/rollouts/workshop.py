"""Where attempts happen: the one place where boxes, judge and policy are put together.

Owns: `Workshop`, `specs_for`, `run_specs`.
Invariant: whoever asks (rollout, eval, admission, gates), an attempt goes the same way.
Must not know: training, who prints the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import Agent
from practicum.rollouts.attempt import AttemptSpec, run_attempt
from practicum.rollouts.groups import run_attempts
from practicum.rollouts.harness import Harness
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.contract import Verifier

OnDone = Callable[[Trajectory], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where attempts happen: boxes for agents, and a judge with boxes of its own."""

    provider: SandboxProvider
    verifier: Verifier
    max_concurrent: int


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
