"""Counters and spans of one process: where the time went and how often things happened.

Owns: `Meter`, `now`. Invariant: recording never fails and never blocks; no second of a meter is counted twice; nothing
is exported from here.
Must not know: exporters, files, what is being measured.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def now() -> float:
    """Seconds of the running event loop, so that they may be virtual; of the host where no loop runs."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


@dataclass
class Meter:
    """Accumulates counts, and seconds of wall clock by stage name.

    Spans of one meter follow each other or lie within each other: it is that of one task, never of several at once.
    """

    counts: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _within: float = field(default=0.0, init=False, repr=False)  # seconds of spans that ended in the one that is open

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] += by

    @contextmanager
    def span(self, stage: str) -> Iterator[None]:
        """Add the seconds of the block to `stage`, without those of the spans within it, which have their own stage."""
        start, before, self._within = now(), self._within, 0.0
        try:
            yield
        finally:
            spent = now() - start
            self.seconds[stage] += spent - self._within
            self._within = before + spent
