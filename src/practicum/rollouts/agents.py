"""Who acts, with what it needs around it, and the two agents that need nothing else.

Owns: `Agent`, `oracle_agent`, `noop_agent`.
Invariant: only an agent that says so is given the gold.
Must not know: boxes, verdicts, how people name an agent.
"""

from __future__ import annotations

from dataclasses import dataclass

from practicum.policies.contract import Policy, Renderer
from practicum.policies.scripted import noop_policy, oracle_policy
from practicum.policies.text import ByteRenderer
from practicum.rollouts.session import TEXT_BUDGETS, Budgets


@dataclass(frozen=True, slots=True)
class Agent:
    """A policy with what it needs around it. `with_solution`: its boxes hold the gold."""

    policy: Policy
    renderer: Renderer
    budgets: Budgets
    temperature: float = 1.0
    with_solution: bool = False


def oracle_agent() -> Agent:
    """Applies the gold and submits."""
    renderer = ByteRenderer()
    return Agent(oracle_policy(renderer), renderer, TEXT_BUDGETS, with_solution=True)


def noop_agent() -> Agent:
    """Submits at once."""
    renderer = ByteRenderer()
    return Agent(noop_policy(renderer), renderer, TEXT_BUDGETS)
