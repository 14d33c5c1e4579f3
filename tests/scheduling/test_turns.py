"""Turns under one version at a time, and the flow under the newest."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import WaitTimedOut
from practicum.scheduling.turns import Turns


@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=16))
def test_a_holder_finds_its_version_until_it_leaves(comers: list[tuple[int | None, int, bool]]) -> None:
    """Whatever comes in which order, and whoever gives up: no holder sees another version, and all get their turn."""
    loaded: list[int] = []
    served: list[int] = []

    async def load(version: int) -> None:
        await asyncio.sleep(0)
        loaded.append(version)

    async def main() -> None:
        turns = Turns(load)

        async def strict(number: int, version: int, steps: int) -> None:
            async with turns.under(version):
                for _ in range(steps + 1):
                    assert loaded[-1] == version
                    await asyncio.sleep(0)
            served.append(number)

        async def flowing(number: int, steps: int) -> None:
            left = steps
            while left >= 0:
                async with turns.flow() as park:
                    while left >= 0 and not park.is_set():
                        left -= 1
                        await asyncio.sleep(0)
            served.append(number)

        begun = [
            asyncio.create_task(flowing(n, steps) if version is None else strict(n, version, steps))
            for n, (version, steps, _) in enumerate(comers)
        ]
        await asyncio.sleep(0)
        for task, (_, _, gives_up) in zip(begun, comers, strict=True):
            if gives_up:
                task.cancel()
        results = await asyncio.wait_for(asyncio.gather(*begun, return_exceptions=True), 5)
        assert [r for r in results if isinstance(r, Exception)] == []

    asyncio.run(main())
    assert set(served) >= {n for n, (_, _, gives_up) in enumerate(comers) if not gives_up}


def test_the_flow_goes_on_under_the_newest_version() -> None:
    """New weights reach those who are in the flow, without their leaving it."""
    loaded: list[int] = []

    async def load(version: int) -> None:
        loaded.append(version)

    async def main() -> None:
        turns = Turns(load)
        async with turns.flow():
            turns.newest = 1
            await turns.renew()
        async with turns.under(0):
            pass

    asyncio.run(main())
    assert loaded == [0, 1, 0]


def test_a_turn_that_does_not_come_is_an_error() -> None:
    """A wait ends, and what waited leaves no trace."""

    async def load(version: int) -> None:
        pass

    async def main() -> None:
        turns = Turns(load, wait_s=0.01)
        async with turns.under(0):
            with pytest.raises(WaitTimedOut, match="version 1"):
                async with turns.under(1):
                    pass
        async with turns.under(1):
            pass

    asyncio.run(main())
