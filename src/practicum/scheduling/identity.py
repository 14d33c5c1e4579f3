"""The identity of time: where every second of a worker went, and how much of it was of use.

Owns: `Account`, `Clock`, `Crowd`, `Effective`, and the names of the states.
Invariant: a worker is in exactly one state at a time, so its seconds by state sum to the seconds that it has been
there, and its shares to 1; an episode likewise.
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


class _Member:
    """One episode: its state, since when in both times, and its seconds by state in both."""

    __slots__ = ("divided", "own", "since", "since_divided", "state")

    def __init__(self, state: str, since: float, since_divided: float) -> None:
        self.state = state
        self.since = since
        self.since_divided = since_divided
        self.own: dict[str, float] = {}
        self.divided: dict[str, float] = {}

    def book(self, now: float, divided: float) -> None:
        state = self.state
        self.own[state] = self.own.get(state, 0.0) + now - self.since
        self.divided[state] = self.divided.get(state, 0.0) + divided - self.since_divided
        self.since, self.since_divided = now, divided


class Crowd:
    """The time of one worker on which many episodes overlap.

    Two accounts are kept. `episodes`: each episode is in one state at a time, so they sum to episode-seconds.
    `worker`: each second is divided evenly among the episodes that are there, or `idle` while there are none, so
    they sum to the seconds of the worker. A divided second needs no loop over the episodes: a common counter D
    grows by dt / n, and an episode that was there from D₁ to D₂ has D₂ − D₁ seconds of the worker.
    """

    __slots__ = ("_divided", "_episodes", "_last", "_members", "_read", "_worker")

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read
        self._last = read()
        self._divided = 0.0
        self._members: dict[str, _Member] = {}
        self._worker = Account({"idle": 0.0})
        self._episodes = Account()

    def join(self, name: str, state: str) -> None:
        """An episode begins, in `state`. Raises `ValueError` where it is there already."""
        if name in self._members:
            raise ValueError(f"{name} is there already")
        self._episodes.add(state, 0.0)  # refused where there is no such state
        self._advance()
        self._members[name] = _Member(state, self._last, self._divided)

    def enter(self, name: str, state: str) -> str:
        """The episode is in `state` from now on; gives the state that it was in. Raises `KeyError` if unknown."""
        if state not in self._episodes.seconds:
            self._episodes.add(state, 0.0)
        self._advance()
        member = self._members[name]
        member.book(self._last, self._divided)
        before, member.state = member.state, state
        return before

    def waste(self, name: str) -> None:
        """What the episode did so far was thrown away: its seconds until now are booked as `retry`."""
        self._advance()
        member = self._members[name]
        member.book(self._last, self._divided)
        member.own = {"retry": sum(member.own.values())}
        member.divided = {"retry": sum(member.divided.values())}

    def leave(self, name: str) -> Account:
        """The episode is over; gives its own seconds by state."""
        self._advance()
        member = self._members.pop(name)
        member.book(self._last, self._divided)
        self._fold(member, self._worker, self._episodes)
        return Account(member.own)

    def worker(self) -> Account:
        """Seconds of the worker by state until now."""
        return self._accounts()[0]

    def episodes(self) -> Account:
        """Episode-seconds by state until now."""
        return self._accounts()[1]

    def __len__(self) -> int:
        return len(self._members)

    def _advance(self) -> None:
        now = self._read()
        if self._members:
            self._divided += (now - self._last) / len(self._members)
        else:
            self._worker.add("idle", now - self._last)
        self._last = now

    def _accounts(self) -> tuple[Account, Account]:
        self._advance()
        worker, episodes = Account(self._worker.seconds), Account(self._episodes.seconds)
        for member in self._members.values():
            member.book(self._last, self._divided)
            self._fold(member, worker, episodes)
        return worker, episodes

    @staticmethod
    def _fold(member: _Member, worker: Account, episodes: Account) -> None:
        for state, seconds in member.own.items():
            episodes.add(state, seconds)
            worker.add(state, member.divided[state])


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
