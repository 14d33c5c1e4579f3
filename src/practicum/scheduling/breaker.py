"""Circuit breakers: what fails again and again is left alone for a while, then tried with care.

Owns: `Breaker`, `Breakers`, `BreakerRule`, `Notice`.
Invariant: closed → open only when failures are many by count and by share within the window; open → half-open only
after the cool-down, each longer than the last; half-open → closed only by a probe that began there. A breaker is
never stuck: a probe that does not answer counts as failed after `probe_s`.
Must not know: what a key stands for (host, image, endpoint, task), clocks (times are passed in). Pure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half-open"]
_SLOTS = 10  # parts of the window that are forgotten one by one


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """When to open, and for how long; times in seconds.

    Opens at `failures` or more within `window_s` that are at least the share `share` of all. The k-th cool-down in a
    row lasts min(`cool_s` × `factor`^(k − 1), `longest_s`).
    """

    window_s: float = 60.0
    failures: int = 5
    share: float = 0.5
    cool_s: float = 10.0
    factor: float = 2.0
    longest_s: float = 300.0
    probe_s: float = 120.0

    def __post_init__(self) -> None:
        positive = min(self.window_s, self.cool_s, self.probe_s) > 0 and self.failures >= 1
        if not positive or not 0 < self.share <= 1 or self.factor < 1 or self.longest_s < self.cool_s:
            raise ValueError(
                f"{self} is no rule of a breaker: seconds > 0, failures ≥ 1, share in (0, 1], factor ≥ 1, "
                "longest_s ≥ cool_s"
            )

    def cool_down(self, times: int) -> float:
        """Seconds of the cool-down that is number `times` (from 1) in a row."""
        return min(self.longest_s, self.cool_s * self.factor ** min(times - 1, 64))


@dataclass(frozen=True, slots=True)
class Notice:
    """A change of state, for the log."""

    at_s: float
    key: str
    before: State
    after: State
    reason: str


class Breaker:
    """The breaker of one key. Who wants to use the key asks `admit`, and says with the ticket how it went."""

    __slots__ = ("_generation", "_probe", "_slots", "key", "notices", "opened", "rule", "state", "until_s")

    def __init__(self, key: str, rule: BreakerRule) -> None:
        self.key = key
        self.rule = rule
        self.state: State = "closed"
        self.until_s = 0.0  # while open: when the cool-down ends; while half-open: when the probe counts as failed
        self.opened = 0  # in a row
        self.notices: list[Notice] = []
        self._generation = 0  # tickets of an earlier one say nothing of now
        self._probe = False
        self._slots: deque[list[int]] = deque()  # [number of the slot, all, failed]

    def admit(self, now: float) -> int | None:
        """A ticket to use the key once, or None: leave it alone."""
        if self.state == "closed":
            return self._generation
        if self.state == "half-open" and self._probe and now >= self.until_s:
            self._open(now, f"the probe gave no answer for {self.rule.probe_s:g} s")
        if self.state == "open" and now >= self.until_s:
            self._become("half-open", now, f"cooled down for {self.rule.cool_down(self.opened):g} s; one may try")
        if self.state == "open" or self._probe:
            return None
        self._probe, self.until_s = True, now + self.rule.probe_s
        return self._generation

    def succeeded(self, ticket: int, now: float) -> None:
        """The use under `ticket` did not fail because of the key."""
        if ticket != self._generation:
            return
        if self.state == "half-open":
            self.opened = 0
            self._become("closed", now, "the probe succeeded")
        else:
            self._count(now, 0)

    def failed(self, ticket: int, now: float, reason: str = "") -> None:
        """The use under `ticket` failed because of the key. Never because of a reward."""
        if ticket != self._generation:
            return
        told = f": {reason}" if reason else ""
        if self.state == "half-open":
            self._open(now, f"the probe failed{told}")
            return
        total, failed = self._count(now, 1)
        if failed >= self.rule.failures and failed >= self.rule.share * total:
            self._open(now, f"{failed} of {total} failed within {self.rule.window_s:g} s{told}")

    def gave_up(self, ticket: int) -> None:
        """The use under `ticket` ended without telling anything of the key; another may probe."""
        if ticket == self._generation and self.state == "half-open":
            self._probe = False

    def _count(self, now: float, failed: int) -> tuple[int, int]:
        """Count one result; gives all and failed ones of the window."""
        slot = int(now / (self.rule.window_s / _SLOTS))
        while self._slots and self._slots[0][0] <= slot - _SLOTS:
            self._slots.popleft()
        if not self._slots or self._slots[-1][0] < slot:
            self._slots.append([slot, 0, 0])
        self._slots[-1][1] += 1
        self._slots[-1][2] += failed
        return sum(entry[1] for entry in self._slots), sum(entry[2] for entry in self._slots)

    def _open(self, now: float, reason: str) -> None:
        self.opened += 1
        cool = self.rule.cool_down(self.opened)
        self.until_s = now + cool
        self._become("open", now, f"{reason}; left alone for {cool:g} s")

    def _become(self, state: State, now: float, reason: str) -> None:
        self.notices.append(Notice(now, self.key, self.state, state, reason))
        self.state = state
        self._generation += 1
        self._probe = False
        self._slots.clear()


class Breakers:
    """A breaker for each key, made when the key is first seen, and the notices of all."""

    def __init__(self, rule: BreakerRule | None = None) -> None:
        self.rule = rule or BreakerRule()
        self._breakers: dict[str, Breaker] = {}
        self._notices: list[Notice] = []

    def of(self, key: str) -> Breaker:
        """The breaker of `key`. Its notices come out of `drain`."""
        if key not in self._breakers:
            breaker = self._breakers[key] = Breaker(key, self.rule)
            breaker.notices = self._notices
        return self._breakers[key]

    def admit(self, key: str, now: float) -> int | None:
        """As `Breaker.admit`."""
        return self.of(key).admit(now)

    def choose(self, keys: tuple[str, ...], now: float) -> tuple[str, int] | None:
        """The first of `keys` that may be used, and its ticket; None where all are to be left alone."""
        for key in keys:
            if (ticket := self.admit(key, now)) is not None:
                return key, ticket
        return None

    def not_closed(self) -> dict[str, State]:
        """The keys that are not simply in use, sorted."""
        return {key: breaker.state for key, breaker in sorted(self._breakers.items()) if breaker.state != "closed"}

    def drain(self) -> tuple[Notice, ...]:
        """What changed since the last call, in order."""
        drained = tuple(self._notices)
        self._notices.clear()
        return drained
