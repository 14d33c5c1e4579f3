"""Counters and spans of one process: where the time went and how often things happened.

Owns: `Meter`, `now`. Invariant: recording never fails and never blocks; nothing is exported from here.
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
    """Accumulates counts, and seconds of wall clock by stage name."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] += by

    @contextmanager
    def span(self, stage: str) -> Iterator[None]:
        """Add the seconds of the block to `stage`."""
        start = now()
        try:
            yield
        finally:
            self.seconds[stage] += now() - start
