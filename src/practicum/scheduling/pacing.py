"""Pacing: when the next group may be dispatched, and which groups an update takes, so that nothing is too old to train.

Owns: `Pace`.
Invariant: with dispatch as `may_dispatch` says and updates as `choose` says, no group is staler than `max_staleness`
when it is trained, none is dropped, and either a dispatch or, once what is out has ended, an update is possible.
Must not know: what a group is, clocks, queues. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from practicum.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Pace:
    """Each update trains `per_update` groups and makes version v + 1 out of version v.

    A group that was dispatched at version b (its `born`) and is trained by the update from v is v − b versions old
    by then. Capacity after AReaL (2505.24298): while the trainer stands at v, at most (`max_staleness` + v + 1) ×
    `per_update` groups were ever dispatched. So of those born at v − `max_staleness` or before, what is left fits
    into the next update. 0 means strictly on-policy.
    """

    per_update: int
    max_staleness: int

    def __post_init__(self) -> None:
        if self.per_update < 1:
            raise ValueError(f"per_update is {self.per_update}; an update trains at least one group")
        if self.max_staleness < 0:
            raise ValueError(f"max_staleness is {self.max_staleness}; it counts versions and cannot be negative")

    def room(self, dispatched: int, version: int) -> int:
        """How many more groups may be dispatched, after `dispatched`, while the trainer stands at `version`."""
        return max(0, (self.max_staleness + version + 1) * self.per_update - dispatched)

    def may_dispatch(self, dispatched: int, version: int) -> bool:
        """Whether one more group may go, after `dispatched`, while the trainer stands at `version`."""
        return dispatched < (self.max_staleness + version + 1) * self.per_update

    def needed_version(self, number: int) -> int:
        """The lowest version at which group `number` (from 0) may be dispatched."""
        return max(0, number // self.per_update - self.max_staleness)

    def resumed(self, version: int, in_flight: int) -> int:
        """The count of dispatched groups after a restart at `version` that took up `in_flight` groups again.

        What was trained is `version` × `per_update`. Counting from 0 would let a burst go that is all stale later.
        """
        return version * self.per_update + in_flight

    def due(self, version: int, born: Mapping[str, int]) -> set[str]:
        """The groups that must be in the next update, or they would be too old for any: names out of `born`."""
        return {name for name, birth in born.items() if birth <= version - self.max_staleness}

    def overdue(self, version: int, born: Mapping[str, int]) -> set[str]:
        """The groups that are too old already. Only a resume under a lower bound, or at a later version, has any."""
        return {name for name, birth in born.items() if birth < version - self.max_staleness}

    def choose(self, version: int, ready: Sequence[str], born: Mapping[str, int]) -> tuple[str, ...] | None:
        """The groups of the next update, of those in `ready` (in order of ending); None while they are not all there.

        `born` holds every group that was dispatched and not trained. Those that are due, or would not fit later, go
        first, and are waited for; the rest goes in order of ending. Raises `ConfigError` where the due ones do not fit,
        or are too old.
        """
        due = self.due(version, born)
        if len(due) > self.per_update or (due and self.overdue(version, born)):
            raise ConfigError(
                f"{len(due)} groups must be trained by the update from version {version}, which takes "
                f"{self.per_update}, and the oldest is {version - min(born[name] for name in due)} versions old, "
                f"with {self.max_staleness} allowed",
                fix="resume with the max_staleness and the size of an update that the run had, or collect them anew",
            )
        if len(ready) < self.per_update:
            return None
        first = self._needed(version, ready, born)
        if first is None:
            return None
        rest = [name for name in ready if name not in first]
        return (*first, *rest[: self.per_update - len(first)])

    def _needed(self, version: int, ready: Sequence[str], born: Mapping[str, int]) -> dict[str, None] | None:
        """Of `ready`, those that the update must take; None while one of these has not ended.

        Beside the due ones these are some of the next oldest, where the later updates have no room for all of them:
        of the groups born at b or before, (b + `max_staleness` − v) × `per_update` can be left to later updates.
        Without that, younger ones that ended early would crowd out older ones until more are due than fit.
        """
        needed: dict[str, None] = {}
        births = Counter(born.values())
        older = 0
        for birth in sorted(births):
            older += births[birth]
            later = max(0, birth + self.max_staleness - version) * self.per_update
            short = min(older - later, self.per_update) - len(needed)
            if short > 0:
                ended = [name for name in ready if born[name] <= birth and name not in needed][:short]
                if len(ended) < short:
                    return None
                needed |= dict.fromkeys(ended)
        return needed
