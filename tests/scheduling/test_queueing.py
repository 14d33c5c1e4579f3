"""Bounded queues: order, back-pressure, nothing lost and nothing taken twice."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import QueueClosed, WaitTimedOut
from practicum.scheduling.queueing import BoundedQueue
from practicum.simulation.virtual import run_virtual


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_every_item_comes_out_once(seed: int, size: int) -> None:
    """With time-outs and cancellations on both sides: out comes what a `put` said is in, once, in order."""
    source = random.Random(f"queue-{seed}")
    went_in: list[int] = []
    came_out: list[int] = []

    async def put(queue: BoundedQueue[int], number: int) -> None:
        await asyncio.sleep(source.randrange(6))
        try:
            await queue.put(number, timeout_s=source.randrange(4))
        except WaitTimedOut:
            return
        went_in.append(number)

    async def get(queue: BoundedQueue[int]) -> None:
        await asyncio.sleep(source.randrange(6))
        try:
            came_out.append(await queue.get(timeout_s=source.randrange(4)))
        except WaitTimedOut:
            return

    async def main() -> None:
        queue = BoundedQueue[int](size)
        tasks = [asyncio.create_task(put(queue, number)) for number in range(20)]
        tasks += [asyncio.create_task(get(queue)) for _ in range(20)]
        for _ in range(12):
            await asyncio.sleep(source.choice([0, 0, 0, 1]))
            source.choice(tasks).cancel()
            assert len(queue) <= size
        await asyncio.gather(*tasks, return_exceptions=True)
        queue.close()
        while len(queue):
            came_out.append(await queue.get(timeout_s=0))
        assert sorted(came_out) == sorted(went_in)
        assert (queue.put_waits.depth, queue.get_waits.depth) == (0, 0)

    run_virtual(main())


def test_a_full_queue_slows_what_feeds_it() -> None:
    """Who puts waits for who takes, order is kept, and both sides know how long they waited."""

    async def main() -> None:
        queue = BoundedQueue[int](2, name="submissions")

        async def feed() -> None:
            for number in range(6):
                await queue.put(number, timeout_s=100)
            queue.close()

        feeding = asyncio.create_task(feed())
        taken = []
        for _ in range(6):
            await asyncio.sleep(10)
            taken.append(await queue.get(timeout_s=0))
        await feeding
        assert taken == [0, 1, 2, 3, 4, 5]
        with pytest.raises(QueueClosed, match="submissions"):
            await queue.get(timeout_s=0)
        # Two went in at once, the others when one was taken: 10 s after the one before.
        assert (queue.put_waits.count, queue.put_waits.seconds.max_s, queue.put_waits.seconds.total_s) == (6, 10, 40)
        assert queue.get_waits.seconds.max_s == 0

    run_virtual(main())


def test_closing_wakes_everybody() -> None:
    """Those who wait at either end learn that it is over; so does who comes later; what is in comes out first."""

    async def main() -> None:
        empty, full = BoundedQueue[int](1), BoundedQueue[int](1)
        await full.put(1, timeout_s=0)
        waits = asyncio.gather(empty.get(timeout_s=9), full.put(2, timeout_s=9), return_exceptions=True)
        await asyncio.sleep(1)
        empty.close()
        full.close()
        assert [type(error) for error in await waits] == [QueueClosed, QueueClosed]
        with pytest.raises(QueueClosed):
            await full.put(3, timeout_s=0)
        assert await full.get(timeout_s=0) == 1
        with pytest.raises(QueueClosed):
            await full.get(timeout_s=0)

    run_virtual(main())


def test_a_put_that_was_on_its_way_when_the_queue_closed_put_nothing_in() -> None:
    """Room that became free in the moment of closing is not used."""

    async def main() -> None:
        queue = BoundedQueue[int](1)
        await queue.put(1, timeout_s=0)
        late = asyncio.create_task(queue.put(2, timeout_s=9))
        await asyncio.sleep(0)
        assert await queue.get(timeout_s=0) == 1
        queue.close()
        with pytest.raises(QueueClosed):
            await late
        assert len(queue) == 0

    run_virtual(main())


def test_time_outs_name_the_side() -> None:
    """A full and an empty queue say so."""

    async def main() -> None:
        queue = BoundedQueue[int](1, name="groups")
        with pytest.raises(WaitTimedOut, match="3 s for an item of groups"):
            await queue.get(timeout_s=3)
        await queue.put(1, timeout_s=0)
        with pytest.raises(WaitTimedOut, match="2 s for room in groups"):
            await queue.put(2, timeout_s=2)
        assert (queue.get_waits.timed_out, queue.put_waits.timed_out) == (1, 1)

    run_virtual(main())


def test_a_queue_without_room_is_refused() -> None:
    """Size 0 would let nothing through."""
    with pytest.raises(ValueError, match="size 0"):
        BoundedQueue[int](0)
