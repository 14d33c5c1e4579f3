"""Attempts that carry out one given shell script each.

Owns: `run_scripts`. Invariant: a script goes the way of `rollout --agent script:FILE` and no other.
Must not know: what the scripts do.
"""

from __future__ import annotations

from collections.abc import Sequence

from practicum.policies.protocol import format_action
from practicum.policies.scripted import ScriptedPolicy
from practicum.policies.text import ByteRenderer
from practicum.records.trajectory import Action, Trajectory
from practicum.rollouts.agents import Agent
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.collector import OnDone
from practicum.rollouts.session import TEXT_BUDGETS
from practicum.rollouts.workshop import Workshop, run_specs


def script_agent(scripts: dict[str, str]) -> Agent:
    """An agent whose one action, in the attempt of that id, is the script."""
    actions = {name: format_action(Action("bash", {"command": script})) for name, script in scripts.items()}
    renderer = ByteRenderer()
    policy = ScriptedPolicy(renderer, lambda session, turn: actions[session] if turn == 0 else None)
    return Agent(policy, renderer, TEXT_BUDGETS)


async def run_scripts(
    workshop: Workshop, items: Sequence[tuple[AttemptSpec, str]], *, on_done: OnDone | None = None
) -> list[Trajectory]:
    """The trajectories of attempts that carry out a script each, in their order."""
    agent = script_agent({spec.id: script for spec, script in items})
    return await run_specs(workshop, agent, [spec for spec, _ in items], on_done=on_done)
