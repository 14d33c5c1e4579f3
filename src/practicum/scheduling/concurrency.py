"""Adaptive concurrency: how many may be in flight, by what is measured.

Owns: `Concurrency`, `Bounds`, `Decision`; `Signals` is passed on from `signals`.
Invariant: the cap stays within its bounds; it grows only on fresh signals that are all calm, and when what it allows
is used; while a signal is in overload it falls at least every `patience` samples, until it is at its lowest; each
change has a reason in words.
Must not know: clocks, tasks, clients, who obeys. Pure: it gets samples and answers with a cap.

Additive increase, multiplicative decrease, after prime-rl's controller: below the level of the last overload the cap
grows by a quarter per turnover (as many ended as are allowed), above it by a twentieth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from practicum.scheduling.signals import Least, Signals, draining, measured, too_many

__all__ = ["Bounds", "Concurrency", "Decision", "Signals"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the controller may do; `stale_s` in seconds, the rest counts permits or samples.

    `lowest` is at best what keeps each core and each engine busy: fewer in flight would relieve nothing but work.
    """

    lowest: int = 1
    highest: int = 1024
    stale_s: float = 15.0  # no growth on signals older than this
    patience: int = 6  # samples that a cut is given to take effect, and a queue to drain

    def __post_init__(self) -> None:
        if not 1 <= self.lowest <= self.highest or self.stale_s <= 0 or self.patience < 1:
            raise ValueError(f"{self}: 1 ≤ lowest ≤ highest, stale_s > 0, patience ≥ 1")


@dataclass(frozen=True, slots=True)
class Decision:
    """The cap from now on, what it was, and why. `park`: how many of the youngest should give way at once."""

    cap: int
    before: int
    reason: str
    park: int = 0

    @property
    def change(self) -> Literal["grew", "fell", "kept"]:
        """What became of the cap."""
        return "kept" if self.cap == self.before else "grew" if self.cap > self.before else "fell"


class Concurrency:
    """The state machine. `decide` is called with a sample every few seconds."""

    __slots__ = ("_draining", "_ended", "_least", "_queued", "_queued_before", "_since_cut", "bounds", "cap", "ceiling")

    def __init__(self, bounds: Bounds, *, cap: int | None = None) -> None:
        self.bounds = bounds
        self.cap = min(max(bounds.lowest if cap is None else cap, bounds.lowest), bounds.highest)
        self.ceiling: float = math.inf  # the level of the last overload
        self._ended = 0  # since the cap last grew
        self._since_cut: int | None = None  # samples; None while no cut is waited for
        self._queued = 0  # samples in a row in which the engines' queue was long
        self._queued_before = False  # a cut for the queue was made, and it was not short since
        self._draining = False
        self._least = Least()

    def decide(self, signals: Signals) -> Decision:
        """The cap after one more sample."""
        self._ended += signals.ended
        if signals.age_s > self.bounds.stale_s:
            return self._keep(f"the signals are {signals.age_s:.0f} s old: nothing is decided on them")
        self._least.see(signals)
        watches = self._least.watches()
        overloads = [(watch, told) for watch, least in watches if (told := watch.overload(signals, least)) is not None]
        factor, reasons = min((watch.factor for watch, _ in overloads), default=1.0), [told for _, told in overloads]
        queue = self._queue(signals)
        if queue is not None:
            factor, reasons = min(factor, queue[0]), [*reasons, queue[1]]
        if reasons:
            return self._cut(signals, factor, reasons)
        self._since_cut = None
        return self._drain(signals) or self._grow(signals)

    def _queue(self, signals: Signals) -> tuple[float, str] | None:
        """A queue longer than half of what runs, for `patience` samples: × 0.9, and × 0.5 when it comes again."""
        if signals.engine_queue is None or signals.engine_running is None:
            return None
        if signals.engine_queue <= signals.engine_running / 2:
            self._queued, self._queued_before = 0, False
            return None
        self._queued += 1
        if self._queued < self.bounds.patience:
            return None
        factor = 0.5 if self._queued_before else 0.9
        told = f"{signals.engine_queue} requests queued beside {signals.engine_running} running"
        return factor, f"{told}, for {self._queued} samples" + (" again" if self._queued_before else "")

    def _cut(self, signals: Signals, factor: float, reasons: list[str]) -> Decision:
        told, park, before = "; ".join(reasons), too_many(signals), self.cap
        if self._since_cut is not None:
            self._since_cut += 1
            if signals.in_use > self.cap and self._since_cut < self.bounds.patience:
                # What is in flight leaves at its own pace; cutting again now would answer one overload twice.
                return self._keep(f"{told}; {signals.in_use} are still leaving since the last cut", park)
        # Permits that nobody uses are not the cause, so the cut begins at what is in flight, but not far below.
        used = min(before, max(signals.in_use, before // 2))
        self.cap = max(self.bounds.lowest, min(before - 1, math.floor(used * factor)))
        self.ceiling = max(self.bounds.lowest, used)
        self._since_cut, self._ended = 0, 0
        if self._queued >= self.bounds.patience:
            self._queued, self._queued_before = 0, True
        if self.cap == before:
            return self._keep(f"{told}; {before} is the least that is allowed", park)
        return Decision(self.cap, before, f"{told} (× {factor:g})", park)

    def _drain(self, signals: Signals) -> Decision | None:
        """Admit less while the cache is nearly full: who leaves is not replaced, and no work is lost."""
        began, self._draining = self._draining, draining(signals, self._draining)
        if not self._draining:
            return None
        before = self.cap
        if not began:
            self.ceiling = max(self.bounds.lowest, min(before, signals.in_use))
        self.cap = max(self.bounds.lowest, min(before, math.floor(signals.in_use * 0.95)))
        self._ended = 0
        told = f"the engines' cache is {signals.cache_use:.0%} full: who leaves is not replaced"
        return Decision(self.cap, before, told)

    def _grow(self, signals: Signals) -> Decision:
        before, highest = self.cap, self.bounds.highest
        watches = self._least.watches()
        strains = [told for watch, least in watches if (told := watch.strain(signals, least)) is not None]
        if self._queued:
            strains.append(f"{signals.engine_queue} requests queued beside {signals.engine_running} running")
        if not measured(signals):
            return self._keep("nothing was measured")
        if strains:
            return self._keep("; ".join(strains))
        if before >= highest:
            return self._keep(f"{highest} is the most that is allowed")
        if signals.in_use < 0.9 * before:
            return self._keep(f"{signals.in_use} of {before} are used")
        if self._ended < before:
            return self._keep(f"{self._ended} of {before} ended since the cap last changed")
        if before < self.ceiling:
            self.cap, how = min(math.ceil(before * 1.25), highest), "× 1.25"
        else:
            self.cap, how = min(before + max(1, before // 20), highest), "slowly, at the level of the last overload"
        self._ended = 0
        return Decision(self.cap, before, f"all signals are calm and {signals.in_use} of {before} are used ({how})")

    def _keep(self, reason: str, park: int = 0) -> Decision:
        return Decision(self.cap, self.cap, reason, park)
