"""Permits: how many may do something at once, and who is next.

Owns: `Permits`.
Invariant: no permit is given while `cap` or more are held; none is lost by a time-out or a cancellation; the longest
expected is served first, then the one that came first, and nobody is overtaken without end (the rule is `Line`'s).
Must not know: what is permitted. Time is the event loop's, so that it may be virtual.
"""

from __future__ import annotations

from types import TracebackType

from practicum.scheduling.line import Line
from practicum.scheduling.waits import Waits


class Permits:
    """At most `cap` holders. Used as `async with permits.take(priority=expected_s, timeout_s=60): ...`.

    `cap` may be changed at any time: growing wakes waiters at once, shrinking waits for holders to leave.
    """

    __slots__ = ("_line", "cap")

    def __init__(self, cap: int, *, name: str = "a permit", overtakes: int = 16) -> None:
        _check(cap)
        self.cap = cap
        self._line = Line(cap, name=name, overtakes=overtakes)

    def take(self, *, priority: float = 0.0, timeout_s: float) -> Take:
        """A permit for the length of an `async with`. Raises `WaitTimedOut` after `timeout_s` seconds."""
        return Take(self._line, priority, timeout_s)

    def resize(self, cap: int) -> None:
        """Allow `cap` holders from now on. Raises `ValueError` below 1: nothing could ever go on."""
        _check(cap)
        change, self.cap = cap - self.cap, cap
        self._line.release(change)

    @property
    def held(self) -> int:
        """How many are held; above `cap` for a while after it was shrunk."""
        return self.cap - self._line.free

    @property
    def waits(self) -> Waits:
        """How long takers waited, and who waits now."""
        return self._line.waits


class Take:
    """One permit to be had: entered once, left once."""

    __slots__ = ("_line", "_priority", "_timeout_s")

    def __init__(self, line: Line, priority: float, timeout_s: float) -> None:
        self._line = line
        self._priority = priority
        self._timeout_s = timeout_s

    async def __aenter__(self) -> None:
        await self._line.acquire(priority=self._priority, timeout_s=self._timeout_s)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.release()


def _check(cap: int) -> None:
    if cap < 1:
        raise ValueError(f"a cap of {cap} permits lets nothing go on: it is at least 1")
