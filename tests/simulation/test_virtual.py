"""Virtual time: jumps to the next timer, in order, and never hangs."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.simulation.virtual import Deadlock, VirtualLoop, run_virtual
from practicum.telemetry import Meter


@given(st.lists(st.floats(0, 1e6), max_size=20))
def test_sleepers_wake_in_order_and_on_time(delays: list[float]) -> None:
    """Each wakes at exactly its time, equal ones in the order in which they went to sleep."""
    woken: list[tuple[float, int]] = []

    async def sleep(number: int, delay: float) -> None:
        await asyncio.sleep(delay)
        woken.append((asyncio.get_running_loop().time(), number))

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            for number, delay in enumerate(delays):
                tasks.create_task(sleep(number, delay))

    run_virtual(main())
    assert woken == sorted((delay, number) for number, delay in enumerate(delays))


def test_a_timeout_ends_a_wait_at_its_time() -> None:
    """Deadlines of ordinary code hold in virtual seconds."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7200):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 7200


def test_timers_that_were_cancelled_do_not_hold_time_up() -> None:
    """A cancelled timer neither fires nor moves the clock, however many there are."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        fired: list[int] = []
        for handle in [loop.call_later(5, fired.append, number) for number in range(5000)]:
            handle.cancel()
        await asyncio.sleep(10)
        assert fired == []
        return loop.time()

    assert run_virtual(main()) == 10


def test_a_deadlock_is_an_error_that_names_who_waits() -> None:
    """Where no timer can wake anybody, the tasks and the lines at which they wait are told."""

    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        await asyncio.sleep(3)
        await asyncio.create_task(stuck(), name="the one that is stuck")

    with pytest.raises(Deadlock, match=r"at 3\.000 s.*the one that is stuck in .*stuck:\d+"):
        run_virtual(main())


def test_threads_are_refused() -> None:
    """Real time must not come in by the back door."""

    async def main() -> None:
        await asyncio.to_thread(print, "no")

    with pytest.raises(RuntimeError, match="virtual time has none"):
        run_virtual(main())


def test_a_loop_can_be_closed_without_having_run() -> None:
    """No socket or thread is left behind."""
    VirtualLoop().close()


def test_meters_count_virtual_seconds() -> None:
    """What is measured of an attempt is in the seconds of its loop."""

    async def main() -> float:
        meter = Meter()
        with meter.span("act"):
            await asyncio.sleep(3600)
        return meter.seconds["act"]

    assert run_virtual(main()) == 3600
