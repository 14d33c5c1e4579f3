"""Work on many tasks, some hundred at a time, in several processes where there are many.

Owns: `in_parts`.
Invariant: what comes back is in the order of the tasks, whatever ended first; few parts wait for whoever takes them;
the processes end with the one that started them, however it ends.
Must not know: what the work is.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from practicum.sandboxes.parentage import end_with_parent

T = TypeVar("T")
_PART = 500  # tasks
_MANY = 2000  # tasks; below, starting processes costs more than it gains


def in_parts(work: Callable[[int, int], T], count: int, *, processes: int) -> Iterator[T]:
    """`work(start, stop)` for successive parts of `count` tasks. Several processes are each sent it once."""
    parts = [(start, min(start + _PART, count)) for start in range(0, count, _PART)]
    if count < _MANY or processes < 2:
        for start, stop in parts:
            yield work(start, stop)
        return
    method = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, method, _remember, (work,)) as pool:
        begun: deque[Future[T]] = deque()
        for start, stop in parts:
            begun.append(pool.submit(_do, start, stop))
            if len(begun) > 2 * processes:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


_work: Callable[[int, int], Any]


def _remember(work: Callable[[int, int], Any]) -> None:
    """In a process of the pool: what to do."""
    global _work
    end_with_parent()
    _work = work


def _do(start: int, stop: int) -> Any:
    return _work(start, stop)
