"""A line of tasks that wait for one of a number of equal things.

Owns: `Line`, which `Permits` are made of.
Invariant: nobody waits while something is free; what was given to a waiter that was cancelled meanwhile goes to the
next; of any `overtakes` + 1 that are served in a row, at least one is the oldest, so a waiter with k older ones
before it is served among the next (k + 1) × (`overtakes` + 1), whatever its priority.
Must not know: what the things are. Time is the event loop's, so that it may be virtual.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import OrderedDict

from practicum.errors import WaitTimedOut
from practicum.scheduling.waits import Waits


class _Waiter:
    """One task in the line."""

    __slots__ = ("future", "number")

    def __init__(self, future: asyncio.Future[None], number: int) -> None:
        self.future = future
        self.number = number


class Line:
    """`free` things to be had. It is below 0 while more are in use than there should be."""

    __slots__ = ("_by_age", "_by_priority", "_passed", "free", "name", "overtakes", "waits")

    def __init__(self, free: int, *, name: str, overtakes: int = 16) -> None:
        if overtakes < 0:
            raise ValueError(f"overtakes is {overtakes}; it counts waiters and cannot be negative")
        self.free = free
        self.name = name
        self.overtakes = overtakes
        self.waits = Waits()
        self._by_age: OrderedDict[int, _Waiter] = OrderedDict()
        self._by_priority: list[tuple[float, int]] = []  # may name waiters that have left
        self._passed = 0  # how often in a row the oldest was passed over

    async def acquire(self, *, priority: float = 0.0, timeout_s: float) -> None:
        """Take one. The highest `priority` is served first, equal ones in order of coming.

        Raises `WaitTimedOut` after `timeout_s` seconds; nothing is taken then, nor when the task is cancelled.
        """
        if not 0 <= timeout_s < math.inf:
            raise ValueError(f"timeout_s is {timeout_s}: every wait has a deadline, in seconds from now")
        if self.free > 0:  # then nobody waits
            self.free -= 1
            self.waits.none()
            return
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop.create_future(), self.waits.begin(loop.time()))
        self._by_age[waiter.number] = waiter
        heapq.heappush(self._by_priority, (-priority, waiter.number))
        timer = loop.call_later(timeout_s, self._time_out, waiter, timeout_s)
        try:
            await waiter.future
        except asyncio.CancelledError:
            if waiter.number in self._by_age:
                self._leave(waiter)
                self.waits.end(waiter.number, loop.time(), "cancelled")
            elif not waiter.future.cancelled() and waiter.future.exception() is None:
                self.release()  # it had been served; the next one is
            raise
        finally:
            timer.cancel()

    def release(self, number: int = 1) -> None:
        """Give back `number`, or add as many; a negative number takes away, at once or as others give back."""
        self.free += number
        if self.free > 0 and self._by_age:
            self._serve()

    def _serve(self) -> None:
        now = next(iter(self._by_age.values())).future.get_loop().time()
        while self.free > 0 and self._by_age:
            waiter = self._next()
            cancelled = waiter.future.done()
            self.waits.end(waiter.number, now, "cancelled" if cancelled else "served")
            if not cancelled:
                waiter.future.set_result(None)
                self.free -= 1

    def _next(self) -> _Waiter:
        """Take the one whose turn it is out of the line."""
        oldest = next(iter(self._by_age.values()))
        while self._by_priority[0][1] not in self._by_age:
            heapq.heappop(self._by_priority)
        chosen = self._by_age[self._by_priority[0][1]]
        if chosen is oldest or self._passed >= self.overtakes:
            chosen, self._passed = oldest, 0
        else:
            self._passed += 1
        self._leave(chosen)
        return chosen

    def _leave(self, waiter: _Waiter) -> None:
        del self._by_age[waiter.number]
        if len(self._by_priority) > 2 * len(self._by_age) + 64:
            self._by_priority = [entry for entry in self._by_priority if entry[1] in self._by_age]
            heapq.heapify(self._by_priority)

    def _time_out(self, waiter: _Waiter, timeout_s: float) -> None:
        if waiter.number not in self._by_age or waiter.future.done():
            return
        self._leave(waiter)
        self.waits.end(waiter.number, waiter.future.get_loop().time(), "timed_out")
        waiter.future.set_exception(
            WaitTimedOut(
                f"waited {timeout_s:g} s for {self.name} and got none; {len(self._by_age)} still wait",
                fix="look at what holds them for so long, allow more of them, or allow a longer wait",
            )
        )
