"""A queue with an end: what is put in waits for room, what is taken out waits for something.

Owns: `BoundedQueue`.
Invariant: never more than `size` items; items leave in the order in which they went in; a `put` that was cancelled or
timed out put nothing in, a `get` that was took nothing out.
Must not know: what the items are. Time is the event loop's, so that it may be virtual.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from practicum.errors import QueueClosed
from practicum.scheduling.line import Line
from practicum.scheduling.waits import Waits

Item = TypeVar("Item")


class BoundedQueue(Generic[Item]):
    """First in, first out. A full queue makes those who put wait: that is how a slow stage slows what feeds it."""

    def __init__(self, size: int, *, name: str = "the queue") -> None:
        if size < 1:
            raise ValueError(f"a queue of size {size} lets nothing through: it is at least 1")
        self.size = size
        self.name = name
        self.closed = False
        self._items: deque[Item] = deque()
        self._room = Line(size, name=f"room in {name}")
        self._filled = Line(0, name=f"an item of {name}")

    async def put(self, item: Item, *, timeout_s: float) -> None:
        """Add `item`. Raises `WaitTimedOut` where there is no room for `timeout_s` seconds, or `QueueClosed`."""
        self._refuse_if_closed()
        await self._room.acquire(timeout_s=timeout_s)
        self._refuse_if_closed()  # it was closed while this task was on its way: the room is of no use to anybody
        self._items.append(item)
        self._filled.release()

    async def get(self, *, timeout_s: float) -> Item:
        """The oldest item. Raises `WaitTimedOut` where none comes for `timeout_s` seconds, or `QueueClosed`."""
        if self.closed and self._filled.free < 1:
            raise self._over()
        await self._filled.acquire(timeout_s=timeout_s)
        item = self._items.popleft()
        self._room.release()
        return item

    def close(self) -> None:
        """Take no more. What is in may still be taken out; then, and for those who wait now, it is `QueueClosed`."""
        self.closed = True
        self._room.fail(self._over)
        self._filled.fail(self._over)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def put_waits(self) -> Waits:
        """How long those who put had to wait: the back-pressure on the stage before."""
        return self._room.waits

    @property
    def get_waits(self) -> Waits:
        """How long those who take had to wait: the stage behind has nothing to do."""
        return self._filled.waits

    def _refuse_if_closed(self) -> None:
        if self.closed:
            raise self._over()

    def _over(self) -> QueueClosed:
        return QueueClosed(f"{self.name} is closed")
