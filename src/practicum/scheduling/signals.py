"""What is measured for the control of concurrency, and from which values on it is too much.

Owns: `Signals`, `Watch`, `WATCHES`, `Least`.
Invariant: a signal that was not measured is None and says neither calm nor overload.
Must not know: caps, who reads the signals. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """One sample. Counts are since the last sample; shares are in [0, 1]; None where it was not measured."""

    in_use: int  # permits that are held
    ended: int = 0  # units that came to their end
    age_s: float = 0.0  # of the oldest of the values
    engine_running: int | None = None
    engine_queue: int | None = None
    cache_use: float | None = None  # of the engines' key-value cache
    preemptions: int | None = None
    create_p95_s: float | None = None
    create_failed: float | None = None  # share of box creations
    cpu_pressure: float | None = None  # this and the next four as `pressure.Pressure`
    memory_pressure: float | None = None
    io_pressure: float | None = None
    pids_free: float | None = None
    load_per_core: float | None = None
    disk_free: float | None = None
    noop_p95_s: float | None = None  # of a command in a box that does nothing
    verify_backlog: float | None = None  # submissions that wait, per verifier


@dataclass(frozen=True, slots=True)
class Watch:
    """One signal: no growth from `soft` on; above `hard` the cap is multiplied by `factor`.

    `read` gives the value such that more is worse. Where `floor` is given, what is normal differs from plant to
    plant: `soft` and `hard` are multiples of the least that was seen, and nothing up to `floor` is too much.
    """

    read: Callable[[Signals], float | None]
    soft: float
    hard: float
    factor: float
    words: str  # with {value}
    floor: float | None = None

    def overload(self, signals: Signals, least: float) -> str | None:
        """In words, where the value is above `hard`; `least` is the least that was seen."""
        value = self.read(signals)
        return None if value is None or value <= self._level(self.hard, least) else self.words.format(value=value)

    def strain(self, signals: Signals, least: float) -> str | None:
        """In words, where the value is at `soft` or above."""
        value = self.read(signals)
        return None if value is None or value < self._level(self.soft, least) else self.words.format(value=value)

    def _level(self, level: float, least: float) -> float:
        return level if self.floor is None else max(self.floor, level * least)


class Least:
    """The least value of each watch. It rises by a thousandth a sample, since a plant may become slower for good."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = [math.inf] * len(WATCHES)

    def see(self, signals: Signals) -> None:
        """Take in one sample."""
        for number, watch in enumerate(WATCHES):
            if watch.floor is not None and (value := watch.read(signals)) is not None:
                self._seen[number] = min(value, self._seen[number] * 1.001)

    def watches(self) -> Iterator[tuple[Watch, float]]:
        """Each watch and its least value; infinite where none is kept."""
        return zip(WATCHES, self._seen, strict=True)


def _taken(free: float | None) -> float | None:
    return None if free is None else 1 - free


WATCHES = (
    Watch(lambda s: s.cache_use, 0.6, 0.9, 0.9, "the engines' cache is {value:.0%} full"),
    Watch(lambda s: s.preemptions, 1, 0, 0.8, "{value:.0f} requests were preempted"),
    Watch(lambda s: s.create_p95_s, 2, 5, 0.9, "1 in 20 boxes takes {value:.1f} s or more to create", floor=2.0),
    Watch(lambda s: s.create_failed, 0.05, 0.2, 0.7, "{value:.0%} of the boxes could not be created"),
    # Cores that are never idle are what is wanted, so that alone is a reason to stop growing, not to cut.
    Watch(lambda s: s.cpu_pressure, 0.9, math.inf, 1.0, "tasks waited for a core {value:.0%} of the time"),
    Watch(lambda s: s.load_per_core, 8, 24, 0.9, "{value:.0f} tasks want each core"),
    Watch(lambda s: s.memory_pressure, 0.05, 0.2, 0.7, "tasks waited for memory {value:.0%} of the time"),
    Watch(lambda s: s.io_pressure, 0.4, 0.8, 0.9, "tasks waited for a disk {value:.0%} of the time"),
    Watch(lambda s: _taken(s.pids_free), 0.8, 0.9, 0.7, "{value:.0%} of the process ids are taken"),
    Watch(lambda s: _taken(s.disk_free), 0.85, 0.95, 0.7, "the disk is {value:.0%} full"),
    Watch(lambda s: s.noop_p95_s, 2, 5, 0.8, "1 in 20 commands that do nothing takes {value:.1f} s", floor=0.5),
    Watch(lambda s: s.verify_backlog, 2.0, 6.0, 0.9, "{value:.1f} submissions wait for each verifier"),
)
"""Where the values come from: those of the engines from prime-rl's controller; of the host, from what leaves room
before tasks are stopped or killed: a box can still be reset, and a judgement still ends within its deadline."""

_DRAIN_FROM, _DRAIN_TO = 0.8, 0.7


def draining(signals: Signals, before: bool) -> bool:
    """Whether less is to be admitted for the engines' cache: from 80 % on, until it is down to 70 %."""
    return signals.cache_use is not None and signals.cache_use > (_DRAIN_TO if before else _DRAIN_FROM)


def too_many(signals: Signals) -> int:
    """How many would have to leave at once for an overfull cache (above 90 %) to be down at 80 %."""
    if signals.cache_use is None or signals.cache_use <= 0.9:
        return 0
    return math.ceil(signals.in_use * (1 - _DRAIN_FROM / signals.cache_use))


def measured(signals: Signals) -> bool:
    """Whether anything at all was measured that could tell of an overload."""
    return signals.engine_queue is not None or any(watch.read(signals) is not None for watch in WATCHES)
