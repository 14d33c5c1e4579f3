"""Branches: other continuations of a recorded trajectory, from one of its turns on.

Owns: `branch_specs`, `check_branch`, `tree_of`.
Invariant: the branches of one turn share the trunk's turns before it, token by token, and the workspace that those
left; their seeds are their own. A branch that cannot begin there is not begun at all.
Must not know: who asks, how branches are judged, what credit is made of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from practicum.errors import ConfigError, StartRefused
from practicum.policies.contract import Message
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import Agent
from practicum.rollouts.session import Session
from practicum.rollouts.spec import AttemptSpec
from practicum.rollouts.start import Start, check_start
from practicum.sandboxes.contract import SnapshotStore


def branch_specs(
    trunk: Trajectory, task: Task, turn: int, count: int, agent: Agent, *, first: int = 0
) -> list[AttemptSpec]:
    """`count` attempts that share the turns of `trunk` before number `turn` (from 0), numbered from `first` on.

    The name of their group is that of the trunk and the turn. Raises `ConfigError` where the trunk has no such turn.
    """
    if not 0 <= turn < len(trunk.turns):
        raise ConfigError(
            f"{trunk.id} has no turn {turn}: it has {len(trunk.turns)}, counted from 0",
            fix="name the turn that is to be sampled anew" if trunk.turns else "branch from an attempt with turns",
        )
    group = f"{trunk.id}@{turn}"
    start = Start(trunk.task_digest, trunk.turns[:turn], strict=True)
    return [
        AttemptSpec(
            task=task,
            group_id=group,
            index=index,
            seed=_seed(f"{group}/{index}:{trunk.seed}"),
            temperature=agent.temperature,
            with_solution=agent.with_solution,
            start=start,
        )
        for index in range(first, first + count)
    ]


def check_branch(spec: AttemptSpec, agent: Agent, snapshots: SnapshotStore) -> None:
    """Raises `StartRefused` where `agent` cannot go on from where `spec` starts, before any box is made."""
    start = spec.start
    if start is None:
        return
    check_start(start, spec.task, spec.seed, snapshots)
    task = Message("task", spec.task.instruction)
    session = Session(agent.policy, agent.renderer, [task], name=spec.id, budgets=agent.budgets)
    session.resume(start.turns)
    if (limit := session.limit()) is not None:
        raise StartRefused(f"{len(start.turns)} turns leave this policy no room for another ({limit})")


def tree_of(trunk: Trajectory, branches: Sequence[Trajectory]) -> tuple[dict[str, str | None], dict[str, float | None]]:
    """Parents by node, and rewards by leaf: the trunk and its branches below the turn that they part at.

    What `training.advantages.branch_advantages` takes. Masked leaves have the reward None.
    """
    root = branches[0].group_id
    leaves = [trunk, *branches]
    parents: dict[str, str | None] = {root: None} | {leaf.id: root for leaf in leaves}
    return parents, {leaf.id: leaf.reward for leaf in leaves}


def _seed(text: str) -> int:
    """A seed in [0, 2^63)."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]) >> 1
