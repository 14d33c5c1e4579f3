"""Where the seconds of one task went."""

from __future__ import annotations

import asyncio

import pytest

from practicum.simulation.virtual import run_virtual
from practicum.telemetry import Meter


def test_no_second_is_counted_twice() -> None:
    """A span within another has its seconds for itself, also where a block raises, so that stages sum to the clock."""

    async def main() -> None:
        meter, loop = Meter(), asyncio.get_running_loop()
        start = loop.time()
        with meter.span("evaluate"):
            await asyncio.sleep(4)
        with meter.span("update"):
            await asyncio.sleep(2)
            with meter.span("process rewards"):
                await asyncio.sleep(3)
                with meter.span("update"):
                    await asyncio.sleep(8)
            with pytest.raises(TimeoutError), meter.span("process rewards"):
                await asyncio.wait_for(asyncio.sleep(99), 16)
            await asyncio.sleep(1)
        with meter.span("update"):
            await asyncio.sleep(32)
        assert meter.seconds == {"evaluate": 4.0, "update": 43.0, "process rewards": 19.0}
        assert sum(meter.seconds.values()) == loop.time() - start

    run_virtual(main())
