"""Which stored attempts may be imitated, and which may be told apart as better and worse.

Owns: `successes`, `pairs`, `Pair`, the rows of both as text for a file.
Invariant: only what was judged counts, and an attempt whose verdict has a finding of tampering is never the better one;
what was said twice at a task counts once. Pure.
Must not know: tokens of any model, losses, where attempts are stored.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from practicum.records.trajectory import Trajectory

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two attempts at one task: `chosen` passed, `rejected` did not."""

    chosen: Trajectory
    rejected: Trajectory


def successes(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    """Those that passed, in order; of several that said the same at a task, the first."""
    seen: set[tuple[str, str, Words]] = set()
    found = []
    for trajectory in trajectories:
        key = (trajectory.task_id, trajectory.task_digest, said(trajectory))
        if _judged(trajectory) and trajectory.passed and not _tampered(trajectory) and key not in seen:
            seen.add(key)
            found.append(trajectory)
    return found


def pairs(trajectories: Iterable[Trajectory], *, most: int = 8, seed: int = 0) -> list[Pair]:
    """Successes beside failures at the same task, at most `most` a task; in order of task.

    Each different attempt is in a pair before any is in a second. A task without both gives none.
    """
    by_task: defaultdict[tuple[str, str], dict[bool, dict[Words, Trajectory]]] = defaultdict(
        lambda: {True: {}, False: {}}
    )
    for trajectory in trajectories:
        if _judged(trajectory) and not (trajectory.passed and _tampered(trajectory)):
            sides = by_task[trajectory.task_id, trajectory.task_digest]
            sides[trajectory.passed].setdefault(said(trajectory), trajectory)
    found = []
    for (task, _), sides in sorted(by_task.items()):
        rng = random.Random(f"pairs-{seed}-{task}")
        better = [each for words, each in sides[True].items() if words not in sides[False]]
        worse = [each for words, each in sides[False].items() if words not in sides[True]]
        if not better or not worse:
            continue
        rng.shuffle(better)
        rng.shuffle(worse)
        count = min(most, max(len(better), len(worse)))
        found += [Pair(better[i % len(better)], worse[i % len(worse)]) for i in range(count)]
    return found


def said(trajectory: Trajectory) -> Words:
    """What the policy said, turn by turn."""
    return tuple(turn.text for turn in trajectory.turns)


def sft_row(trajectory: Trajectory, instruction: str) -> dict[str, Any]:
    """`trajectory` as a conversation to imitate, with where it comes from."""
    return {"messages": [{"role": "user", "content": instruction}, *_messages(trajectory)], **_origin(trajectory)}


def pair_row(pair: Pair, instruction: str) -> dict[str, Any]:
    """`pair` as a prompt with a chosen and a rejected continuation of it, in the form that other trainers read."""
    return {
        "prompt": [{"role": "user", "content": instruction}],
        "chosen": _messages(pair.chosen),
        "rejected": _messages(pair.rejected),
        **{f"chosen_{name}": value for name, value in _origin(pair.chosen).items() if name != "task"},
        **{f"rejected_{name}": value for name, value in _origin(pair.rejected).items() if name != "task"},
        "task": pair.chosen.task_id,
    }


def _messages(trajectory: Trajectory) -> list[dict[str, str]]:
    """What was said and, between two turns, what was seen; the last observation is shown to nobody."""
    found: list[dict[str, str]] = []
    for turn in trajectory.turns:
        found += [{"role": "assistant", "content": turn.text}, {"role": "user", "content": turn.observation}]
    return found[:-1]


def _origin(trajectory: Trajectory) -> dict[str, Any]:
    verdict = trajectory.verdict
    return {
        "task": trajectory.task_id,
        "task_digest": trajectory.task_digest,
        "trajectory": trajectory.id,
        "policy_version": trajectory.policy_version,
        "reward": trajectory.reward,
        "verifier": verdict.verifier_version if verdict else None,
    }


def _judged(trajectory: Trajectory) -> bool:
    verdict = trajectory.verdict
    return bool(trajectory.fault is None and trajectory.turns and verdict is not None and verdict.status == "valid")


def _tampered(trajectory: Trajectory) -> bool:
    verdict = trajectory.verdict
    return verdict is not None and any(finding.severity == "tamper" for finding in verdict.findings)
