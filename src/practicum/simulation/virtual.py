"""An asyncio event loop on virtual time: where real code waits, the clock jumps to the next timer.

Owns: `VirtualLoop`, `run_virtual`, `Deadlock`.
Invariant: time moves only when nothing is ready to run, and then exactly to the next timer, so that a run depends on
its code and seeds alone; a wait that no timer can end is an error that names who waits, never a hang.
Must not know: what runs on it.

The loop has no sockets and no threads: both would bring real time in.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, NoReturn, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_GARBAGE = (
    50_000  # objects between two looks for garbage: with 10,000 tasks alive, the usual 700 take a third of the time
)
_NAMED = 12  # waiting tasks that a deadlock lists


class Deadlock(RuntimeError):
    """Everything waits, and no timer will ever wake it: a bug of what ran."""


class _Clock:
    """Virtual seconds and the timers, in the place of a selector: to select is to let time pass."""

    def __init__(self, stuck: Callable[[], NoReturn]) -> None:
        self.now = 0.0
        self._stuck = stuck
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()  # equal times fire in the order in which they were asked for
        self._cancelled = 0

    def add(self, handle: asyncio.TimerHandle) -> None:
        heapq.heappush(self._timers, (handle.when(), next(self._numbers), handle))

    def cancelled(self) -> None:
        """One of the timers was cancelled. They are thrown away together, once they are most of all."""
        self._cancelled += 1
        if self._cancelled > 1000 and 2 * self._cancelled > len(self._timers):
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def select(self, timeout: float | None) -> list[asyncio.TimerHandle]:
        """The timers that are due; where nothing is ready (`timeout` is None), after a jump to the next one."""
        timers, due = self._timers, list[asyncio.TimerHandle]()
        if timeout is None:
            while timers and timers[0][2].cancelled():
                heapq.heappop(timers)
                self._cancelled -= 1
            if not timers:
                self._stuck()
            self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[2]
            if handle.cancelled():
                self._cancelled -= 1
            else:
                due.append(handle)
        return due


class VirtualLoop(asyncio.BaseEventLoop):
    """Use as the `loop_factory` of an `asyncio.Runner`. `time()` starts at 0, in virtual seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Clock(self._deadlock)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._selector.now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As any loop's. Timers are kept here, since comparing those of asyncio takes most of a simulation's time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._selector.add(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As any loop's."""
        return self.call_at(self._selector.now + delay, callback, *args, context=context)

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Refused: a thread takes real time, which means nothing here."""
        raise RuntimeError(f"{getattr(func, '__qualname__', func)} was given to a thread, and virtual time has none")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._selector.cancelled()

    def _process_events(self, event_list: list[asyncio.TimerHandle]) -> None:
        for handle in event_list:
            self._add_callback(handle)  # type: ignore[attr-defined]  # left out of typeshed

    def _write_to_self(self) -> None:
        # Called by `call_soon_threadsafe`; there is no select to interrupt.
        return

    def _deadlock(self) -> NoReturn:
        waiting = sorted(_described(task) for task in asyncio.all_tasks(self))
        shown = "; ".join(waiting[:_NAMED]) + ("; …" if len(waiting) > _NAMED else "")
        raise Deadlock(f"at {self.time():.3f} s of virtual time all {len(waiting)} tasks wait for ever: {shown}")


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on a new `VirtualLoop`. Raises what it raises, and `Deadlock`."""
    usual = gc.get_threshold()
    gc.set_threshold(_GARBAGE, *usual[1:])
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main)
    finally:
        gc.set_threshold(*usual)


def _described(task: asyncio.Task[Any]) -> str:
    """Name of a task, and the line of its own code at which it waits."""
    frames = task.get_stack(limit=1)
    where = f" in {frames[0].f_code.co_qualname}:{frames[0].f_lineno}" if frames else ""
    return f"{task.get_name()}{where}"
