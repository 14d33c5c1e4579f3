"""Permits: who is let through, in which order, and that none is ever lost."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from practicum.errors import WaitTimedOut
from practicum.scheduling.permits import Permits
from practicum.simulation.virtual import VirtualLoop, run_virtual

OVERTAKES = 3


@dataclass
class Taker:
    """A task that takes a permit, and holds it until it is told to leave."""

    number: int
    priority: float
    deadline: float
    leave: asyncio.Event
    task: asyncio.Task[str]


class PermitsMachine(RuleBasedStateMachine):
    """The real permits beside a list that is searched for whose turn it is."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.permits = Permits(2, overtakes=OVERTAKES)
        self.cap = 2
        self.waiting: list[Taker] = []  # in order of coming
        self.holding: list[Taker] = []
        self.over: list[tuple[Taker, str]] = []  # and how it must have ended
        self.passed = 0
        self.count = 0

    def teardown(self) -> None:
        for taker in [*self.waiting, *self.holding]:
            taker.task.cancel()
        self.settle()
        self.loop.close()

    def settle(self) -> None:
        for _ in range(6):
            self.loop.run_until_complete(asyncio.sleep(0))

    def serve(self) -> None:
        """What the rule says: the longest, then the oldest; the oldest after `OVERTAKES` that passed it."""
        while self.waiting and len(self.holding) < self.cap:
            oldest = self.waiting[0]
            chosen = max(self.waiting, key=lambda taker: (taker.priority, -taker.number))
            if chosen is oldest or self.passed >= OVERTAKES:
                chosen, self.passed = oldest, 0
            else:
                self.passed += 1
            self.waiting.remove(chosen)
            self.holding.append(chosen)

    async def hold(self, priority: float, timeout_s: float, leave: asyncio.Event) -> str:
        try:
            async with self.permits.take(priority=priority, timeout_s=timeout_s):
                await leave.wait()
        except WaitTimedOut:
            return "timed out"
        return "left"

    @rule(priority=st.sampled_from([0.0, 1.0, 2.0, 5.0]), timeout_s=st.sampled_from([2.0, 5.0, 60.0]))
    def take(self, priority: float, timeout_s: float) -> None:
        leave = asyncio.Event()
        task = self.loop.create_task(self.hold(priority, timeout_s, leave))
        self.count += 1
        taker = Taker(self.count, priority, self.loop.time() + timeout_s, leave, task)
        if len(self.holding) < self.cap:
            self.holding.append(taker)
        else:
            self.waiting.append(taker)
        self.settle()

    @precondition(lambda self: self.holding)
    @rule(which=st.integers(0, 100))
    def leave(self, which: int) -> None:
        taker = self.holding.pop(which % len(self.holding))
        taker.leave.set()
        self.over.append((taker, "left"))
        self.serve()
        self.settle()

    @precondition(lambda self: self.waiting or self.holding)
    @rule(which=st.integers(0, 100))
    def cancel(self, which: int) -> None:
        everybody = [*self.waiting, *self.holding]
        taker = everybody[which % len(everybody)]
        taker.task.cancel()
        (self.waiting if taker in self.waiting else self.holding).remove(taker)
        self.over.append((taker, "cancelled"))
        self.serve()
        self.settle()

    @precondition(lambda self: self.holding and self.waiting)
    @rule(which=st.integers(0, 100))
    def serve_and_cancel_at_once(self, which: int) -> None:
        """The one whose turn it is is cancelled in the same moment in which it is served."""
        taker = self.holding.pop(which % len(self.holding))
        taker.leave.set()
        self.over.append((taker, "left"))
        self.loop.run_until_complete(asyncio.sleep(0))  # the permit was given back, its next holder has not run
        before = list(self.holding)
        self.serve()
        for served in [taker for taker in self.holding if taker not in before]:
            served.task.cancel()
            self.holding.remove(served)
            self.over.append((served, "cancelled"))
        self.serve()
        self.settle()

    @rule(cap=st.integers(1, 5))
    def resize(self, cap: int) -> None:
        self.permits.resize(cap)
        self.cap = cap
        self.serve()
        self.settle()

    @rule(seconds=st.sampled_from([1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        for taker in [taker for taker in self.waiting if taker.deadline <= self.loop.time()]:
            self.waiting.remove(taker)
            self.over.append((taker, "timed out"))
        self.settle()

    @invariant()
    def agrees(self) -> None:
        assert self.permits.held == len(self.holding)
        assert self.permits.waits.depth == len(self.waiting)
        assert not any(taker.task.done() for taker in [*self.waiting, *self.holding])
        for taker, how in self.over:
            assert taker.task.done()
            assert (taker.task.cancelled() and how == "cancelled") or taker.task.result() == how
        self.over.clear()


TestPermits = PermitsMachine.TestCase
TestPermits.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_no_storm_loses_a_permit(seed: int, cap: int) -> None:
    """With time-outs, cancellations and resizes in the very same moments, all permits are there at the end."""
    source = random.Random(f"storm-{seed}")
    inside = 0

    async def taker(permits: Permits) -> str:
        nonlocal inside
        await asyncio.sleep(source.randrange(4))
        try:
            async with permits.take(priority=source.randrange(3), timeout_s=source.randrange(5)):
                inside += 1
                try:
                    await asyncio.sleep(source.randrange(3))
                finally:
                    inside -= 1
        except WaitTimedOut:
            return "timed out"
        return "left"

    async def main() -> None:
        permits = Permits(cap)
        tasks = [asyncio.create_task(taker(permits)) for _ in range(30)]
        for _ in range(10):
            await asyncio.sleep(source.choice([0, 0, 1]))
            source.choice(tasks).cancel()
            if source.random() < 0.3:
                permits.resize(source.randrange(1, 6))
            assert permits.held >= inside
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(how, asyncio.CancelledError) or how in ("left", "timed out") for how in ended)
        waits = permits.waits
        assert (inside, permits.held, waits.depth) == (0, 0, 0)
        assert waits.timed_out >= ended.count("timed out")  # some were cancelled just as they timed out
        async with asyncio.TaskGroup() as group:  # every one of them can still be had
            for _ in range(permits.cap):
                group.create_task(permits.take(timeout_s=0).__aenter__())

    run_virtual(main())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 5), st.integers(0, 6))
def test_nobody_starves(older: int, overtakes: int) -> None:
    """A waiter with k older ones is served among (k + 1) × (overtakes + 1), though longer ones come all the time."""

    async def main() -> None:
        permits = Permits(1, overtakes=overtakes)
        order: list[str] = []

        async def one(name: str, priority: float) -> None:
            async with permits.take(priority=priority, timeout_s=1e6):
                order.append(name)
                await asyncio.sleep(1)

        async with asyncio.TaskGroup() as group:
            group.create_task(one("first", 9))
            await asyncio.sleep(0)
            for number in range(older):
                group.create_task(one(f"older-{number}", 5))
            group.create_task(one("short", 0))
            for number in range(60):
                group.create_task(one(f"long-{number}", 9))
        assert order.index("short") <= (older + 1) * (overtakes + 1)

    run_virtual(main())


def test_the_longest_goes_first_then_the_oldest() -> None:
    """Waiters are served by priority, and equal ones in order of coming."""

    async def main() -> list[str]:
        permits, order = Permits(1), list[str]()

        async def one(name: str, priority: float) -> None:
            async with permits.take(priority=priority, timeout_s=60):
                order.append(name)

        async with asyncio.TaskGroup() as group, permits.take(timeout_s=0):
            for name, priority in (("a", 1.0), ("b", 3.0), ("c", 1.0), ("d", 2.0), ("e", 3.0)):
                group.create_task(one(name, priority))
            await asyncio.sleep(1)
        return order

    assert run_virtual(main()) == ["b", "e", "d", "a", "c"]


def test_a_time_out_says_what_was_waited_for() -> None:
    """Who waits in vain learns for what, how long, and how many still do; the wait is counted as timed out."""

    async def main() -> None:
        permits = Permits(1, name="a box")
        async with permits.take(timeout_s=0):
            with pytest.raises(WaitTimedOut, match="waited 5 s for a box and got none; 0 still wait"):
                await permits.take(timeout_s=5).__aenter__()
            assert asyncio.get_running_loop().time() == 5
        assert (permits.held, permits.waits.timed_out) == (0, 1)

    run_virtual(main())


def test_growing_wakes_and_shrinking_waits() -> None:
    """New permits are had at once; holders of permits that are no more keep them until they leave."""

    async def main() -> None:
        permits = Permits(1)
        leave = asyncio.Event()

        async def one() -> None:
            async with permits.take(timeout_s=60):
                await leave.wait()

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(one())
            await asyncio.sleep(1)
            assert (permits.held, permits.waits.depth, permits.waits.oldest_s(1)) == (1, 3, 1)
            permits.resize(3)
            assert (permits.held, permits.waits.depth) == (3, 1)
            permits.resize(2)
            await asyncio.sleep(1)
            assert (permits.held, permits.waits.depth) == (3, 1)
            leave.set()
        assert (permits.held, permits.waits.count) == (0, 4)

    run_virtual(main())


@pytest.mark.parametrize("timeout_s", [float("inf"), float("nan"), -1.0])
def test_every_wait_has_a_deadline(timeout_s: float) -> None:
    """No deadline is refused, also where there would have been no wait."""

    async def main() -> None:
        with pytest.raises(ValueError, match="every wait has a deadline"):
            await Permits(1).take(timeout_s=timeout_s).__aenter__()

    run_virtual(main())


def test_a_cap_below_one_is_refused() -> None:
    """Permits that nobody could ever get are an error at once."""
    with pytest.raises(ValueError, match="cap of 0"):
        Permits(0)
    with pytest.raises(ValueError, match="cap of 0"):
        Permits(1).resize(0)
