"""Which tasks a batch holds: those that can still teach come more often.

Owns: `Outcome`, `choose`.
Invariant: the choice for a batch depends on the seed, its number and the outcomes it may know of; so a resumed run
chooses what an unbroken one would have chosen.
Must not know: what trains, disks. Pure.

The signal of a group with success rate p is in proportion to p(1 − p), so tasks solved every time are drawn
seldom, but never retired for good: what is not seen again may be unlearnt.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SOLVED_WEIGHT = 0.15
MIXED_WEIGHT = 1.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """In batch number `batch`, `rate` of the valid attempts at `task` passed."""

    batch: int
    task: str
    rate: float


def choose(
    tasks: Sequence[str], outcomes: Iterable[Outcome], *, batch: int, known_before: int, size: int, seed: int
) -> list[str]:
    """`size` task ids for `batch`, without repetition as long as there are enough.

    Only outcomes of batches below `known_before` count, the latest for each task. Weighted sampling without
    replacement by exponential keys (Efraimidis and Spirakis, 2006).
    """
    latest: dict[str, Outcome] = {}
    for outcome in outcomes:
        known = latest.get(outcome.task)
        if outcome.batch < known_before and (known is None or known.batch < outcome.batch):
            latest[outcome.task] = outcome
    rng = random.Random(f"tasks-{seed}-{batch}")
    keys = {task: -math.log(1.0 - rng.random()) / _weight(latest.get(task)) for task in tasks}
    ranked = sorted(tasks, key=lambda task: (keys[task], task))
    return [ranked[i % len(ranked)] for i in range(size)]


def _weight(outcome: Outcome | None) -> float:
    if outcome is None or outcome.rate == 0.0:
        return 1.0
    return SOLVED_WEIGHT if outcome.rate == 1.0 else MIXED_WEIGHT
