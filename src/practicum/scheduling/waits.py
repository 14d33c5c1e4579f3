"""How long something was waited for, and who waits now.

Owns: `Waits`.
Invariant: every wait that began ends once, as served, timed out or cancelled; memory does not grow with the number
of waits that have ended.
Must not know: what is waited for, clocks (times are passed in). Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal

from practicum.scheduling.histogram import Histogram

Ending = Literal["served", "timed_out", "cancelled"]


class Waits:
    """Statistics of one place where work waits. `seconds` holds the waits that were served."""

    __slots__ = ("_began", "_waiting", "cancelled", "deepest", "seconds", "timed_out")

    def __init__(self) -> None:
        self.seconds = Histogram()
        self.timed_out = 0
        self.cancelled = 0
        self.deepest = 0
        self._began = 0
        self._waiting: OrderedDict[int, float] = OrderedDict()

    def begin(self, now: float) -> int:
        """Somebody waits from `now` on; the number is to be given to `end`."""
        self._began += 1
        self._waiting[self._began] = now
        self.deepest = max(self.deepest, len(self._waiting))
        return self._began

    def end(self, number: int, now: float, ending: Ending = "served") -> None:
        """The wait is over. Raises `KeyError` where it had ended before."""
        since = self._waiting.pop(number)
        if ending == "served":
            self.seconds.add(max(0.0, now - since))
        elif ending == "timed_out":
            self.timed_out += 1
        else:
            self.cancelled += 1

    def none(self) -> None:
        """Somebody was served without a wait."""
        self.seconds.add(0.0)

    @property
    def count(self) -> int:
        """How many were served."""
        return self.seconds.count

    @property
    def depth(self) -> int:
        """How many wait now."""
        return len(self._waiting)

    def oldest_s(self, now: float) -> float:
        """For how long the one who waits longest has waited; 0 where nobody does."""
        return max(0.0, now - next(iter(self._waiting.values()))) if self._waiting else 0.0

    def merge(self, other: Waits) -> None:
        """Add the waits of `other` that have ended; who waits there now is not taken over."""
        self.seconds.merge(other.seconds)
        self.timed_out += other.timed_out
        self.cancelled += other.cancelled
        self.deepest = max(self.deepest, other.deepest)

    def to_json(self, now: float) -> dict[str, Any]:
        """What a report shows; seconds are of waits that were served."""
        return {
            "count": self.count,
            "mean_s": self.seconds.mean_s,
            "p50_s": self.seconds.quantile(0.5),
            "p99_s": self.seconds.quantile(0.99),
            "max_s": self.seconds.max_s,
            "timed_out": self.timed_out,
            "cancelled": self.cancelled,
            "depth": self.depth,
            "deepest": self.deepest,
            "oldest_s": self.oldest_s(now),
        }
