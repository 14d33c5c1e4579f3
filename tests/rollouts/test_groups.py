"""Many attempts: in order, within permits, each reported exactly once whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import StoreError
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Trajectory
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.groups import cancelled, run_attempts

TASK = Task("t", "do it", {}, Verification("plain", {}))


def specs(n: int) -> list[AttemptSpec]:
    return [AttemptSpec(TASK, f"g{i // 4}", i % 4) for i in range(n)]


def done(spec: AttemptSpec) -> Trajectory:
    return Trajectory(spec.id, spec.group_id, "t", "d", (), "submitted")


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_results_come_in_order_and_within_permits(steps: list[int], most: int) -> None:
    """However long each takes, results stand where their specs stood and no more than allowed run at once."""
    all_specs = specs(len(steps))
    length = {spec.id: count for spec, count in zip(all_specs, steps, strict=True)}
    running = peak = 0

    async def run(spec: AttemptSpec) -> Trajectory:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(length[spec.id]):
            await asyncio.sleep(0)
        running -= 1
        return done(spec)

    reported: list[str] = []
    results = asyncio.run(
        run_attempts(all_specs, run, max_concurrent=most, on_done=lambda trajectory: reported.append(trajectory.id))
    )
    assert [result.id for result in results] == [spec.id for spec in all_specs]
    assert Counter(reported) == Counter(spec.id for spec in all_specs)
    assert peak <= most


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
    all_specs = specs(len(steps))
    place = {spec.id: i for i, spec in enumerate(all_specs)}
    reported: list[Trajectory] = []

    async def run(spec: AttemptSpec) -> Trajectory:
        for _ in range(steps[place[spec.id]]):
            await asyncio.sleep(0)
        if place[spec.id] in crashing:
            raise KeyError(spec.id)
        return done(spec)

    async def main() -> None:
        whole = asyncio.create_task(run_attempts(all_specs, run, max_concurrent=most, on_done=reported.append))
        if cancel_after is not None:
            for _ in range(cancel_after):
                await asyncio.sleep(0)
            whole.cancel()
        await asyncio.wait([whole])
        if not whole.cancelled() and whole.exception() is None:
            assert all(trajectory.stop_reason == "submitted" for trajectory in whole.result())

    asyncio.run(main())
    # A call that was cancelled before its first step has dispatched nothing.
    if cancel_after != 0:
        assert Counter(trajectory.id for trajectory in reported) == Counter(list(place))
    for trajectory in reported:
        assert (trajectory.stop_reason == "cancelled") == (trajectory.fault is not None)
        assert trajectory.reward is None


def test_a_receiver_that_fails_stops_the_run_as_itself() -> None:
    """A full disk ends the run with the store's error, and the broken receiver is not called again."""
    calls: list[str] = []

    def broken(trajectory: Trajectory) -> None:
        calls.append(trajectory.id)
        raise StoreError("disk full")

    async def run(spec: AttemptSpec) -> Trajectory:
        await asyncio.sleep(0)
        return done(spec)

    with pytest.raises(StoreError, match="disk full"):
        asyncio.run(run_attempts(specs(6), run, max_concurrent=1, on_done=broken))
    assert len(calls) == 1


def test_two_attempts_of_one_name_are_refused() -> None:
    """Reports could not be told apart."""

    async def run(spec: AttemptSpec) -> Trajectory:
        return done(spec)

    with pytest.raises(ValueError, match="same id"):
        asyncio.run(run_attempts([AttemptSpec(TASK, "g")] * 2, run, max_concurrent=1))


def test_a_cancellation_names_its_reason_and_never_counts() -> None:
    """It is masked, like a fault."""
    trajectory = cancelled(AttemptSpec(TASK, "g"), "the run was stopped")
    assert trajectory.fault is not None
    assert trajectory.fault.message == "the run was stopped"
    assert trajectory.reward is None
