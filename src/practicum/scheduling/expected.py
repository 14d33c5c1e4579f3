"""How long something will probably take, by what the like of it took.

Owns: `Durations`.
Invariant: an expectation lies between the shortest and the longest that was recorded; what ran recently counts more;
the same records give the same expectations.
Must not know: clocks, what takes so long. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


class _Mean:
    """A mean in which each value counts `keep` times as much as the next one."""

    __slots__ = ("seconds", "weight")

    def __init__(self, seconds: float = 0.0, weight: float = 0.0) -> None:
        self.seconds = seconds
        self.weight = weight

    def add(self, seconds: float, keep: float) -> None:
        self.weight = self.weight * keep + 1.0
        self.seconds += (seconds - self.seconds) / self.weight


class Durations:
    """Seconds by key (a task) and, above it, by family (its domain or set) and over all.

    With few records of a key, what its family took counts as `prior` further records of it; so does what all took
    for the family. Each newer record lessens the weight of the older by the factor `keep`, since a policy changes.
    """

    def __init__(self, *, prior: float = 1.0, keep: float = 0.9) -> None:
        if prior <= 0 or not 0 < keep <= 1:
            raise ValueError(f"prior {prior} is not above 0, or keep {keep} not in (0, 1]")
        self._prior = prior
        self._keep = keep
        self._keys: dict[tuple[str, str], _Mean] = {}
        self._families: dict[str, _Mean] = {}
        self._all = _Mean()

    def record(self, key: str, seconds: float, *, family: str = "") -> None:
        """`key` took `seconds`. Raises `ValueError` where that is negative or no number."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"{key} cannot have taken {seconds} s")
        self._keys.setdefault((family, key), _Mean()).add(seconds, self._keep)
        self._families.setdefault(family, _Mean()).add(seconds, self._keep)
        # Over all keys a single value tells little, so more of them are kept.
        self._all.add(seconds, 1 - (1 - self._keep) / 10)

    def known(self, key: str, *, family: str = "") -> bool:
        """Whether `key` itself was recorded; one that was not may be worth a probe before its siblings go."""
        return (family, key) in self._keys

    def expected(self, key: str, *, family: str = "") -> float | None:
        """Seconds that `key` will take; None where nothing at all was recorded."""
        if not self._all.weight:
            return None
        expected = self._all.seconds
        for mean in (self._families.get(family), self._keys.get((family, key))):
            if mean is not None:
                expected += (mean.seconds - expected) * mean.weight / (mean.weight + self._prior)
        return expected

    def to_json(self) -> dict[str, Any]:
        """All that was recorded, so that a resumed run expects what the unbroken one would."""
        return {
            "keys": [[family, key, mean.seconds, mean.weight] for (family, key), mean in sorted(self._keys.items())],
            "families": [[family, mean.seconds, mean.weight] for family, mean in sorted(self._families.items())],
            "all": [self._all.seconds, self._all.weight],
        }

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take over what `to_json` wrote, in place of what was recorded here."""
        self._keys = {(family, key): _Mean(seconds, weight) for family, key, seconds, weight in document["keys"]}
        self._families = {family: _Mean(seconds, weight) for family, seconds, weight in document["families"]}
        self._all = _Mean(*document["all"])
