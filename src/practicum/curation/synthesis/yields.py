"""What came of a run of synthesis, and where its time went.

Owns: `Tally`, `Yield`.
Invariant: each candidate is counted once; `killed` counts those that tests told from the original, kept or not.
Must not know: who reads it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Tally:
    """Counts of one strategy or kind."""

    tried: int = 0
    killed: int = 0
    kept: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        refused = dict(sorted(self.refused.items(), key=lambda item: (-item[1], item[0])))
        return {"tried": self.tried, "killed": self.killed, "kept": self.kept, "refused": refused}


@dataclass(slots=True)
class Yield:
    """Counts by strategy and by strategy and kind; seconds by phase.

    Those of phases in boxes are of wall clock, summed over boxes; `proposing` and `writing` are of the host's processor
    and clock.
    """

    strategies: dict[str, Tally] = field(default_factory=dict)
    kinds: dict[tuple[str, str], Tally] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    host: tuple[float, float] = field(default_factory=lambda: _host_seconds())
    before: int = 0  # tasks that were there when the run began
    own: float = field(default_factory=lambda: _own_seconds())

    def count(self, strategy: str, kind: str, *, reason: str = "", killed: bool = False) -> None:
        """One more candidate, refused for `reason` or kept."""
        both = (
            self.strategies.setdefault(strategy, Tally()),
            self.kinds.setdefault((strategy, kind), Tally()),
        )
        for tally in both:
            tally.tried += 1
            tally.killed += killed or not reason
            tally.kept += not reason
            if reason:
                tally.refused[reason] += 1

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Count the time of a block under `phase`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.phases[phase] = self.phases.get(phase, 0.0) + time.monotonic() - start

    @property
    def kept(self) -> int:
        return sum(tally.kept for tally in self.strategies.values())

    @property
    def seconds(self) -> float:
        """Wall seconds since the run began."""
        return time.monotonic() - self.started

    def busy_share(self) -> float | None:
        """Share of the host's processors that were busy since the run began, with whatever else runs there."""
        busy, whole = _host_seconds()
        since = whole - self.host[1]
        return round((busy - self.host[0]) / since, 3) if since > 0 else None

    def used_share(self) -> float:
        """Share of the host's processors that this process and those it started and that have ended used."""
        whole = self.seconds * (os.cpu_count() or 1)
        return round((_own_seconds() - self.own) / whole, 3) if whole > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        by_strategy: dict[str, Any] = {name: tally.to_json() for name, tally in sorted(self.strategies.items())}
        for (strategy, kind), tally in sorted(self.kinds.items()):
            by_strategy[strategy].setdefault("kinds", {})[kind] = tally.to_json()
        return {
            "kept": self.kept,
            "seconds": round(self.seconds, 1),
            "tasks_per_hour": round(self.kept / self.seconds * 3600, 1) if self.seconds else 0.0,
            "cores_busy": self.busy_share(),
            "cores_used": self.used_share(),
            "phases": {name: round(seconds, 1) for name, seconds in sorted(self.phases.items())},
            "strategies": by_strategy,
        }


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _host_seconds() -> tuple[float, float]:
    """Busy and total processor time of this host in ticks; zeros where it does not say."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0, 0.0
    ticks = [float(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
    whole = sum(ticks)
    return whole - ticks[3] - ticks[4], whole
