"""The number of attempts at once follows what is measured."""

from __future__ import annotations

import asyncio

from practicum.pipeline.adapting import EVERY_S, Adapting
from practicum.records.trajectory import Fault, Trajectory
from practicum.scheduling.concurrency import Decision
from practicum.simulation.virtual import run_virtual


def ended(*, lease_s: float, fault: str | None = None) -> Trajectory:
    lost = Fault(fault, "so it was") if fault else None
    return Trajectory("a", "g", "t", "d", (), "submitted", fault=lost, cost={"lease_s": lease_s})


def changes(lease_s: float, fault: str | None, waiting: int) -> list[Decision]:
    """What is decided in a minute in which ten attempts end every second, 64 of 64 places being in use."""
    decided: list[Decision] = []

    async def main() -> None:
        adapting = Adapting(64, 2, lambda: (64, waiting), decided.append)
        watching = asyncio.create_task(adapting.run())
        for _ in range(int(30 * EVERY_S)):
            for _ in range(10):
                adapting.saw(ended(lease_s=lease_s, fault=fault))
            await asyncio.sleep(1.0)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run_virtual(main())
    return decided


def test_boxes_that_cannot_be_made_lower_the_cap() -> None:
    """Where creations fail the cap falls, with the reason in words."""
    decided = changes(0.01, "CreateFailed", waiting=0)
    assert decided
    assert decided[0].cap < decided[0].before == 64
    assert "could not be created" in decided[0].reason


def test_a_backlog_before_the_judge_lowers_the_cap() -> None:
    """Rolling out more than can be judged is held back."""
    decided = changes(0.01, None, waiting=60)
    assert decided
    assert "submissions wait" in decided[0].reason


def test_the_cap_is_never_above_what_is_configured() -> None:
    """However calm it is."""
    assert all(decision.cap <= 64 for decision in changes(0.001, None, waiting=0))
