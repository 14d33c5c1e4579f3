"""A small task to plant faults into, and the gates on real boxes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

import pytest

from practicum.curation.gates.check import check_set
from practicum.curation.gates.contract import Bench, Settings
from practicum.curation.gates.opening import open_bench
from practicum.pipeline.execute import open_boxes
from practicum.records.assessment import Assessment
from practicum.records.task import Limits, Task, Verification
from practicum.records.tree import File

START = b"""\
def total(items):
    result = 0
    for item in items:
        result -= item
    return result


def largest(items):
    return max(items)
"""
GOLD = START.replace(b"-= item", b"+= item")
TESTS = b"""\
from shop import largest, total


def test_total():
    assert total([1, 2, 4]) == 7


def test_total_of_one():
    assert total([3]) == 3


def test_largest():
    assert largest([2, 5, 3]) == 5
"""

Assess = Callable[..., list[Assessment]]


class Shop(Protocol):
    """Makes the task, with other tests or another gold where given."""

    def __call__(
        self, tests: bytes = TESTS, *, id: str = "shop", gold: bytes = GOLD, more: Sequence[str] = ()
    ) -> Task: ...


def _shop(tests: bytes = TESTS, *, id: str = "shop", gold: bytes = GOLD, more: Sequence[str] = ()) -> Task:
    """`total` subtracts; `more` names further tests of fail_to_pass."""
    return Task(
        id=id,
        instruction="total(items) in shop.py must return the sum of the items, and 0 where there is none.",
        files={"shop.py": File(START)},
        verification=Verification(
            runner="pytest",
            tests={"test_shop.py": File(tests)},
            files=("test_shop.py",),
            fail_to_pass=tuple(f"test_shop.py::{name}" for name in ("test_total", "test_total_of_one", *more)),
            pass_to_pass=("test_shop.py::test_largest",),
        ),
        editable=("*.py",),
        limits=Limits(command_s=10.0),
        solution={"solve.sh": File(b"cp /solution/shop.py shop.py\n", 0o755), "shop.py": File(gold)},
    )


@pytest.fixture
def shop() -> Shop:
    """The task, as a function of what is planted into it."""
    return _shop


@pytest.fixture(scope="session")
def boxes() -> Iterator[tuple[asyncio.Runner, Bench]]:
    """A bench that is kept for all tests, with the loop that it lives in."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def open_() -> Bench:
            provider = await stack.enter_async_context(open_boxes("tests-gates"))
            return await stack.enter_async_context(open_bench(provider, 3))

        bench = runner.run(open_())
        yield runner, bench
        runner.run(stack.aclose())


@pytest.fixture
def assess(boxes: tuple[asyncio.Runner, Bench]) -> Assess:
    """Runs the named gates, and those they need, on tasks; once each unless `settings` say otherwise."""
    runner, bench = boxes

    def run(*tasks: Task, gates: Sequence[str] = (), settings: Settings | None = None) -> list[Assessment]:
        return runner.run(check_set(bench, tasks, settings or Settings(repeat=1), gates=gates))

    return run
