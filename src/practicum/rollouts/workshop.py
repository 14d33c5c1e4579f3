"""Where attempts happen: the one place where boxes, judge and policy are put together.

Owns: `Workshop`, `roller`, `specs_for`, `run_specs`.
Invariant: whoever asks (rollout, eval, admission, gates), an attempt goes the same way.
Must not know: training, who prints the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import Agent
from practicum.rollouts.attempt import AttemptSpec, judge_rolled, roll_out
from practicum.rollouts.collector import Bounds, Collector, Group, OnDone, RollOut
from practicum.rollouts.harness import Harness
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.contract import Verifier


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where attempts happen: boxes for agents, and a judge with boxes of its own."""

    provider: SandboxProvider
    verifier: Verifier
    max_concurrent: int


def roller(provider: SandboxProvider, agent: Agent) -> RollOut:
    """How `agent` acts out an attempt in boxes of `provider`."""
    return partial(
        roll_out,
        provider=provider,
        policy=agent.policy,
        renderer=agent.renderer,
        harness=Harness(budgets=agent.budgets),
    )


async def run_specs(
    workshop: Workshop, agent: Agent, specs: Sequence[AttemptSpec], *, on_done: OnDone | None = None
) -> list[Trajectory]:
    """The trajectories of `specs`, in their order; `on_done` gets each as it ends.

    When the call is cancelled, or something raises, all that have not ended are reported as cancelled first. Raises
    `ValueError` where two specs have one id.
    """
    judge = partial(judge_rolled, verifier=workshop.verifier)
    bounds = Bounds(workshop.max_concurrent, workshop.max_concurrent)
    roll = roller(workshop.provider, agent)
    async with Collector(judge, bounds, on_done=on_done) as collector:
        begun = [collector.submit(roll, Group((spec,))) for spec in specs]
    return [trajectory for group in begun for trajectory in group.result()]


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
