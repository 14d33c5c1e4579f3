"""The identity of time: where every second of a worker went, and how much of it was of use.

Owns: `Account`, `Clock`, `Effective`, and the names of the states.
Invariant: a worker is in exactly one state at a time, so its seconds by state sum to the seconds that it has been
there, and its shares to 1.
Must not know: what a worker does, which clock it is (one is passed in).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

STATES = frozenset(
    {"lease", "generate", "act", "submit", "verify", "update", "weight_sync", "recompute", "evaluate", "record"}
    | {"start", "retry", "idle"}
)
"""What a worker may be doing. Beside these, `wait_X` waits for X. `retry`: what it did was thrown away."""


class Account:
    """Seconds by state."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        for state, spent in (seconds or {}).items():
            self.add(state, spent)

    def add(self, state: str, seconds: float) -> None:
        """Book `seconds` on `state`. Raises `ValueError` where they are negative or there is no such state."""
        if seconds < 0:
            raise ValueError(f"{seconds} s in {state!r}: time runs backwards")
        if state not in self.seconds:
            if state not in STATES and not (state.startswith("wait_") and len(state) > len("wait_")):
                known = ", ".join(sorted(STATES))
                raise ValueError(f"{state!r} is no state of a worker: it is `wait_X`, or one of {known}")
            self.seconds[state] = 0.0
        self.seconds[state] += seconds

    def merge(self, others: Iterable[Account]) -> Account:
        """Add the seconds of other workers; gives itself."""
        for other in others:
            for state, seconds in other.seconds.items():
                self.add(state, seconds)
        return self

    @property
    def total_s(self) -> float:
        """All seconds."""
        return sum(self.seconds.values())

    def shares(self) -> dict[str, float]:
        """The share of each state, by name; they sum to 1. Empty where no time has passed."""
        total = self.total_s
        return {state: self.seconds[state] / total for state in sorted(self.seconds)} if total > 0 else {}

    def to_json(self) -> dict[str, Any]:
        """Seconds and shares by state."""
        return {"seconds": dict(sorted(self.seconds.items())), "shares": self.shares()}


class Clock:
    """The time of one worker that does one thing at a time. `read` gives seconds that never decrease."""

    __slots__ = ("_account", "_read", "_since", "state")

    def __init__(self, read: Callable[[], float], state: str = "idle") -> None:
        self._read = read
        self._account = Account({state: 0.0})
        self._since = read()
        self.state = state

    def enter(self, state: str) -> str:
        """Be in `state` from now on; gives the state that it was in."""
        now, before = self._read(), self.state
        self._account.add(state, 0.0)  # refused before anything has changed
        self._account.add(before, now - self._since)
        self._since, self.state = now, state
        return before

    @contextmanager
    def during(self, state: str) -> Iterator[None]:
        """Be in `state` for the length of the block, then again in the one before."""
        before = self.enter(state)
        try:
            yield
        finally:
            self.enter(before)

    def account(self) -> Account:
        """Seconds by state until now."""
        self.enter(self.state)
        return Account(self._account.seconds)


class Effective:
    """How much of an amount (tokens, seconds) ended in training, and why the rest did not."""

    __slots__ = ("lost", "trained")

    def __init__(self) -> None:
        self.trained = 0.0
        self.lost: dict[str, float] = {}

    def add(self, amount: float, *, lost: str | None = None) -> None:
        """Count `amount`: of use, or lost for a reason such as `masked`, `retry`, `stale` or `no signal`."""
        if amount < 0:
            raise ValueError(f"an amount of {amount} is negative")
        if lost is None:
            self.trained += amount
        else:
            self.lost[lost] = self.lost.get(lost, 0.0) + amount

    @property
    def share(self) -> float | None:
        """What trained, of all; None where there was nothing."""
        total = self.trained + sum(self.lost.values())
        return self.trained / total if total > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Amounts and the share."""
        return {"trained": self.trained, "lost": dict(sorted(self.lost.items())), "share": self.share}
