"""Attempts and the breaker of the provider they need."""

from __future__ import annotations

import asyncio

import pytest

from practicum.pipeline.breaking import Breaking, row_of
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Fault
from practicum.records.verdict import Submission
from practicum.rollouts.attempt import AttemptSpec, Rolled
from practicum.scheduling.breaker import Notice

SPEC = AttemptSpec(Task("t", "do it", {}, Verification("plain", {})), "g")


def came_to(kind: str | None) -> Rolled:
    fault = None if kind is None else Fault(kind, "so it was")
    return Rolled(SPEC, (), "fault" if fault else "submitted", fault, None if fault else Submission(()))


@pytest.mark.parametrize(("kind", "opens"), [("CreateFailed", True), ("SandboxDied", True), ("PolicyError", False)])
def test_a_provider_that_fails_is_left_alone(kind: str, opens: bool) -> None:
    """After enough boxes that failed no attempt begins any more; what others did wrong is not held against it."""
    notices: list[Notice] = []

    async def main() -> bool:
        breaking = Breaking("host", notices.append)

        async def act() -> Rolled:
            return came_to(kind)

        for _ in range(5):
            await breaking.through(act)
        try:
            await asyncio.wait_for(breaking.through(act), 0.05)
        except TimeoutError:
            return True
        return False

    assert asyncio.run(main()) == opens
    assert [row_of(notice)["state"] for notice in notices] == (["open"] if opens else [])


def test_failures_that_earn_nothing_do_not_open_it() -> None:
    """A poor result is a result."""

    async def main() -> None:
        breaking = Breaking("host", lambda notice: pytest.fail(notice.reason))

        async def act() -> Rolled:
            return came_to(None)

        for _ in range(20):
            await breaking.through(act)

    asyncio.run(main())
