"""Durations counted in bounded memory, and their quantiles.

Owns: `Histogram`.
Invariant: memory does not grow with the number of values; a quantile is within 5 % of a value that was added, and
merging two histograms is adding the values of both to one.
Must not know: what the seconds are of, clocks, files. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_GROWTH = 1.1
_SHORTEST_S = 1e-6
_BUCKETS = 320  # the last begins at some 1.6e7 s
_SCALE = 1 / math.log(_GROWTH)
_OFFSET = -math.log(_SHORTEST_S) * _SCALE


class Histogram:
    """Seconds ≥ 0 in buckets that each are 10 % wider than the one before; bucket 0 is everything below 1 µs."""

    __slots__ = ("_buckets", "count", "max_s", "total_s")

    def __init__(self) -> None:
        self._buckets = [0] * _BUCKETS
        self.count = 0
        self.total_s = 0.0
        self.max_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one value. Raises `ValueError` where it is negative or no number."""
        if seconds < _SHORTEST_S:
            if seconds < 0:
                raise ValueError(f"a duration of {seconds} s is negative")
            self._buckets[0] += 1
        elif seconds == math.inf or seconds != seconds:
            raise ValueError(f"a duration of {seconds} s is none")
        else:
            self._buckets[min(1 + int(math.log(seconds) * _SCALE + _OFFSET), _BUCKETS - 1)] += 1
        self.count += 1
        self.total_s += seconds
        self.max_s = max(self.max_s, seconds)

    @property
    def mean_s(self) -> float:
        """Mean of all values, exact; 0 without any."""
        return self.total_s / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The value below which `share` (in [0, 1]) of all lie, within 5 %; 0 without any."""
        if not 0 <= share <= 1:
            raise ValueError(f"quantile {share} is outside [0, 1]")
        rank, seen = max(1, math.ceil(share * self.count)), 0
        if rank >= self.count:
            return self.max_s
        for bucket, number in enumerate(self._buckets):
            seen += number
            if seen >= rank:
                # The geometric middle of the bucket, but never above what was seen.
                return min(_SHORTEST_S * _GROWTH ** (bucket - 0.5), self.max_s) if bucket else 0.0
        raise AssertionError("the buckets hold fewer values than were counted")

    def merge(self, other: Histogram) -> None:
        """Add all values of `other`."""
        self._buckets = [mine + theirs for mine, theirs in zip(self._buckets, other._buckets, strict=True)]
        self.count += other.count
        self.total_s += other.total_s
        self.max_s = max(self.max_s, other.max_s)

    def to_json(self) -> dict[str, Any]:
        """Everything, so that `from_json` gives the same histogram; empty buckets are left out."""
        held = {str(bucket): number for bucket, number in enumerate(self._buckets) if number}
        return {"count": self.count, "total_s": self.total_s, "max_s": self.max_s, "buckets": held}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Histogram:
        """What `to_json` wrote."""
        made = cls()
        for bucket, number in document["buckets"].items():
            made._buckets[int(bucket)] = int(number)
        made.count, made.total_s = int(document["count"]), float(document["total_s"])
        made.max_s = float(document["max_s"])
        return made
