"""Groups of attempts through both pipelines: within bounds, whole or masked, each attempt reported exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import StoreError
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Submission
from practicum.rollouts.attempt import AttemptSpec, Parked, Rolled
from practicum.rollouts.collector import SPARE, Bounds, Collector, Group, OnDone, cancelled
from practicum.scheduling.turns import Turns

TASK = Task("t", "do it", {}, Verification("plain", {}))


def specs(n: int, group: str = "g") -> tuple[AttemptSpec, ...]:
    return tuple(AttemptSpec(TASK, group, i) for i in range(n))


async def judge(rolled: Rolled) -> Trajectory:
    await asyncio.sleep(0)
    return rolled.trajectory


def done(spec: AttemptSpec, fault: Fault | None = None) -> Rolled:
    return Rolled(spec, (), "fault" if fault else "submitted", fault, None if fault else Submission(()))


Steps = Callable[[AttemptSpec], int]


class Floor:
    """Rolls out and judges in so many passes of the loop, and counts who is where."""

    def __init__(
        self, rolls: Steps, judges: Steps = lambda spec: 1, faults: Callable[[AttemptSpec], bool] | None = None
    ):
        self.rolls, self.judges, self.faults = rolls, judges, faults or (lambda spec: False)
        self.rolling = self.behind = self.most_rolling = self.most_behind = 0

    async def roll(self, spec: AttemptSpec) -> Rolled:
        self.rolling += 1
        self.most_rolling = max(self.most_rolling, self.rolling)
        for _ in range(self.rolls(spec)):
            await asyncio.sleep(0)
        self.rolling -= 1
        return done(spec, Fault("SandboxDied", "gone") if self.faults(spec) else None)

    async def judge(self, rolled: Rolled) -> Trajectory:
        self.behind += 1
        self.most_behind = max(self.most_behind, self.behind)
        for _ in range(self.judges(rolled.spec)):
            await asyncio.sleep(0)
        self.behind -= 1
        return rolled.trajectory


async def collected(
    floor: Floor, groups: list[Group], bounds: Bounds, on_done: OnDone | None = None
) -> list[tuple[Trajectory, ...]]:
    async with Collector(floor.judge, bounds, on_done=on_done) as collector:
        tasks = [collector.submit(floor.roll, group) for group in groups]
    return [task.result() for task in tasks]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12), st.integers(1, 4), st.integers(1, 3))
def test_results_come_in_order_and_both_bounds_hold(steps: list[tuple[int, int]], rolling: int, backlog: int) -> None:
    """However long each takes, results stand where their specs stood, and no more than allowed act or are judged."""
    floor = Floor(lambda spec: steps[spec.index][0], lambda spec: steps[spec.index][1])
    reported: list[str] = []
    groups = [Group((spec,)) for spec in specs(len(steps))]
    found = asyncio.run(collected(floor, groups, Bounds(rolling, backlog), lambda t: reported.append(t.id)))
    assert [[t.id for t in each] for each in found] == [[spec.id for spec in group.specs] for group in groups]
    assert Counter(reported) == Counter(spec.id for group in groups for spec in group.specs)
    assert floor.most_rolling <= rolling
    assert floor.most_behind <= backlog


def test_slow_judging_slows_rolling_out() -> None:
    """An attempt keeps its place until there is room behind it, so finished work cannot pile up."""
    ended: list[int] = []
    floor = Floor(lambda spec: ended.append(spec.index) or 1, lambda spec: 50)  # type: ignore[func-returns-value]

    async def main() -> int:
        async with Collector(floor.judge, Bounds(2, 1)) as collector:
            for spec in specs(9):
                collector.submit(floor.roll, Group((spec,)))
            for _ in range(30):
                await asyncio.sleep(0)
            return len(ended)

    assert asyncio.run(main()) == 3  # one with the judge, and two that hold their places


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=8), st.integers(0, 4))
def test_what_a_fault_took_is_made_again(faults: list[bool], refills: int) -> None:
    """A group is refilled as long as there are refills, one for each attempt that was lost, and never for others."""
    size = len(faults)
    every = specs(size + refills)
    floor = Floor(lambda spec: spec.index % 3, faults=lambda spec: spec.index < size and faults[spec.index])
    (found,) = asyncio.run(collected(floor, [Group(every[:size], every[size:])], Bounds(3, 2)))
    lost = sum(faults)
    assert len(found) == size + min(lost, refills)
    assert sum(t.fault is None for t in found) == size - lost + min(lost, refills)


def test_a_failure_or_a_refusal_is_never_made_again() -> None:
    """Only infrastructure gives another try: not a refusal of the policy, and not a poor result."""
    every = specs(3)

    class Refusing(Floor):
        async def roll(self, spec: AttemptSpec) -> Rolled:
            return done(spec, Fault("PolicyRefused", "no"))

    (found,) = asyncio.run(collected(Refusing(lambda spec: 0), [Group(every[:2], every[2:])], Bounds(3, 2)))
    assert [t.id for t in found] == [spec.id for spec in every[:2]]


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=8), st.data())
def test_spares_are_given_up_once_enough_have_ended(steps: list[int], data: st.DataObject) -> None:
    """At least the wanted number ended unmasked; the others are reported as given up, and all are reported once."""
    size = data.draw(st.integers(1, len(steps)))
    reported: list[Trajectory] = []
    floor = Floor(lambda spec: steps[spec.index])
    group = Group(specs(len(steps)), size=size)
    (found,) = asyncio.run(collected(floor, [group], Bounds(4, 4), reported.append))
    assert Counter(t.id for t in reported) == Counter(spec.id for spec in group.specs)
    assert sum(t.fault is None for t in found) >= size
    assert {t.fault.kind for t in found if t.fault is not None} <= {SPARE}


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.sets(st.integers(0, 11)),
    st.integers(1, 4),
    st.none() | st.integers(0, 12),
)
def test_every_attempt_is_reported_once_through_crashes_and_cancellations(
    steps: list[int], crashing: set[int], most: int, cancel_after: int | None
) -> None:
    """What was dispatched is what is reported: as its trajectory or as a cancellation with a reason."""
    every = specs(len(steps))
    reported: list[Trajectory] = []

    def length(spec: AttemptSpec) -> int:
        if spec.index in crashing:
            raise KeyError(spec.id)
        return steps[spec.index]

    async def main() -> None:
        groups = [Group((spec,)) for spec in every]
        whole = asyncio.create_task(collected(Floor(length), groups, Bounds(most, most), reported.append))
        if cancel_after is not None:
            for _ in range(cancel_after):
                await asyncio.sleep(0)
            whole.cancel()
        await asyncio.wait([whole])
        if not whole.cancelled() and whole.exception() is None:
            assert all(t.stop_reason == "submitted" for each in whole.result() for t in each)

    asyncio.run(main())
    # A call that was cancelled before its first step has dispatched nothing.
    if cancel_after != 0:
        assert Counter(t.id for t in reported) == Counter(spec.id for spec in every)
    for trajectory in reported:
        assert (trajectory.stop_reason == "cancelled") == (trajectory.fault is not None)
        assert trajectory.reward is None


def test_a_receiver_that_fails_stops_the_run_as_itself() -> None:
    """A full disk ends the run with the store's error, and the broken receiver is not called again."""
    calls: list[str] = []

    def broken(trajectory: Trajectory) -> None:
        calls.append(trajectory.id)
        raise StoreError("disk full")

    groups = [Group((spec,)) for spec in specs(6)]
    with pytest.raises(StoreError, match="disk full"):
        asyncio.run(collected(Floor(lambda spec: 1), groups, Bounds(1, 1), broken))
    assert len(calls) == 1


def test_two_attempts_of_one_name_are_refused() -> None:
    """Reports could not be told apart."""
    with pytest.raises(ValueError, match="under way already"):
        asyncio.run(collected(Floor(lambda spec: 1), [Group((AttemptSpec(TASK, "g"),))] * 2, Bounds(1, 1)))


def test_a_trajectory_says_how_long_it_waited() -> None:
    """Waiting for a place and before the judge are told apart from work."""
    (found,) = asyncio.run(collected(Floor(lambda spec: 1), [Group(specs(2))], Bounds(1, 1)))
    assert all(t.cost["wait_place_s"] >= 0 and t.cost["wait_backlog_s"] >= 0 for t in found)


def test_a_cancellation_names_its_reason_and_never_counts() -> None:
    """It is masked, like a fault."""
    trajectory = cancelled(AttemptSpec(TASK, "g"), "the run was stopped")
    assert trajectory.fault is not None
    assert trajectory.fault.message == "the run was stopped"
    assert trajectory.reward is None


def test_a_refill_that_is_not_needed_any_more_is_not_begun() -> None:
    """What was lost and what completes the group may end in one moment: nothing is begun only to be given up."""
    every = specs(5)
    reported: list[str] = []
    floor = Floor(lambda spec: 1, faults=lambda spec: spec.index == 0)
    group = Group(every[:3], every[3:], size=2)
    (found,) = asyncio.run(collected(floor, [group], Bounds(8, 8), lambda t: reported.append(t.id)))
    assert sorted(reported) == sorted(t.id for t in found)
    assert [t.id for t in found] == [spec.id for spec in every[:3]]


def test_who_waits_for_a_turn_holds_no_place() -> None:
    """Attempts that parked for somebody, and late refills, ask for their turn first; with one place all still end."""

    async def main() -> list[str]:
        async def load(version: int) -> None:
            await asyncio.sleep(0)

        turns, ended = Turns(load, wait_s=5), list[str]()

        async def roll(spec: AttemptSpec) -> Rolled | Parked:
            for _ in range(3):
                await asyncio.sleep(0)
                if spec.group_id == "flow" and turns.park.is_set():
                    return Parked(spec)
            return done(spec)

        async with Collector(judge, Bounds(1, 1, wait_s=5), on_done=lambda t: ended.append(t.id)) as collector:
            for spec in specs(3, "flow"):
                collector.submit(roll, Group((spec,)), turn=lambda _: turns.flow())
            await asyncio.sleep(0)
            async with turns.under(7):
                await collector.submit(roll, Group(specs(2, "strict")))
            collector.submit(roll, Group(specs(1, "late")), turn=lambda _: turns.under(3))
        return ended

    ended = asyncio.run(asyncio.wait_for(main(), 5))
    assert len(ended) == 6
