"""Simulated engines: throughput is shared, kept to, and lost with an engine."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import PolicyError
from practicum.simulation.engines import Engines, Replica
from practicum.simulation.scenario import EnginesConfig
from practicum.simulation.virtual import run_virtual

CONFIG = EnginesConfig(tokens_per_s=100.0, stream_tokens_per_s=40.0, slots=4, publish_s=2.0)


async def ends(replica: Replica, samples: list[tuple[float, int]]) -> list[float]:
    """When each of (begin, tokens) is done."""
    loop = asyncio.get_running_loop()

    async def one(begin: float, tokens: int) -> float:
        await asyncio.sleep(begin)
        await replica.decode(tokens)
        return loop.time()

    return list(await asyncio.gather(*(one(begin, tokens) for begin, tokens in samples)))


def test_one_sample_gets_no_more_than_a_stream() -> None:
    """A lone sample is made at the speed of one, not of the whole engine."""

    async def main() -> list[float]:
        return await ends(Replica("engine", CONFIG), [(0, 80)])

    assert run_virtual(main()) == [pytest.approx(2.0)]


def test_samples_share_and_the_next_one_waits_for_a_slot() -> None:
    """Four at 25 tokens a second each; the fifth begins when they are done, and is told how long it waited."""

    async def main() -> tuple[list[float], float]:
        replica = Replica("engine", CONFIG)
        four = asyncio.create_task(ends(replica, [(0, 100)] * 4))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0.5)
        waited = await replica.decode(40)
        assert asyncio.get_running_loop().time() == pytest.approx(5.0)
        return await four, waited

    four, waited = run_virtual(main())
    assert four == [pytest.approx(4.0)] * 4
    assert waited == pytest.approx(3.5)


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(1, 200)), min_size=1, max_size=12))
def test_an_engine_never_makes_more_than_it_can(samples: list[tuple[float, int]]) -> None:
    """Throughput bounds the whole, a stream bounds each, and the seconds that it was busy are what it made."""

    async def main() -> tuple[list[float], float]:
        replica = Replica("engine", CONFIG)
        return await ends(replica, samples), replica.busy_s

    done, busy_s = run_virtual(main())
    made = sum(tokens for _, tokens in samples)
    assert busy_s == pytest.approx(made / 100, abs=1e-3)
    assert max(done) >= min(begin for begin, _ in samples) + made / 100 - 1e-3
    assert all(end >= begin + tokens / 40 - 1e-3 for end, (begin, tokens) in zip(done, samples, strict=True))


def test_what_an_engine_was_making_when_it_died_raises() -> None:
    """Those under way and those that come later hear of it; once it is back it answers again."""

    async def main() -> None:
        replica = Replica("engine", CONFIG)
        asyncio.get_running_loop().call_later(1, replica.end, "dead")
        with pytest.raises(PolicyError, match="went away"):
            await replica.decode(1000)
        with pytest.raises(PolicyError, match="refused"):
            await replica.decode(1)
        replica.begin()
        await replica.decode(40)
        assert asyncio.get_running_loop().time() == pytest.approx(2.0)

    run_virtual(main())


def test_a_hung_engine_takes_requests_and_says_nothing() -> None:
    """Only a deadline of whoever asked ends that."""

    async def main() -> None:
        replica = Replica("engine", CONFIG)
        replica.end("hung")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(50):
                await replica.decode(1)
        assert replica.load == 0

    run_virtual(main())


def test_samples_stand_still_while_weights_change_and_go_on_with_the_new_ones() -> None:
    """A publication lengthens what is under way by its seconds, and loses nothing."""

    async def main() -> tuple[list[float], int]:
        engines = Engines(CONFIG)
        sampling = asyncio.create_task(ends(engines.replicas[0], [(0, 80)]))
        await asyncio.sleep(1)
        await engines.publish(1)
        return await sampling, engines.version

    done, version = run_virtual(main())
    assert done == [pytest.approx(4.0)]
    assert version == 1
