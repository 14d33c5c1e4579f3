"""Retry delays: how long to wait before trying again, and when to give up.

Owns: `Backoff`.
Invariant: finitely many delays, each at most `longest_s`; the same seed gives the same delays.
Must not know: what is retried. Pure: it never sleeps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter. `tries` counts the first attempt, so there are `tries` − 1 delays.

    Delay i is drawn evenly from [(1 − `jitter`) × d, d] with d = min(`longest_s`, `first_s` × `factor`^i), in
    seconds, so that those who failed together do not return together.
    """

    tries: int = 4
    first_s: float = 0.2
    factor: float = 2.0
    longest_s: float = 5.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if self.tries < 1 or self.first_s < 0 or self.factor < 1 or self.longest_s < 0 or not 0 <= self.jitter <= 1:
            raise ValueError(f"{self} is not a backoff: tries ≥ 1, seconds ≥ 0, factor ≥ 1, jitter in [0, 1]")

    def delays(self, seed: int | str) -> Iterator[float]:
        """Seconds to wait before the second, third, … try."""
        random_source = random.Random(seed)
        ceiling = min(self.first_s, self.longest_s)
        for _ in range(self.tries - 1):
            yield ceiling * (1 - self.jitter * random_source.random())
            ceiling = min(self.longest_s, ceiling * self.factor)
