"""Actions of a box: each takes effect once, and what was cut short is never passed off as done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from practicum.errors import BoxPathError, SandboxDied, SandboxError
from practicum.sandboxes.actions import KEPT, Actions
from practicum.sandboxes.contract import BoxSpec, CommandResult
from practicum.sandboxes.fake import FakeProvider
from practicum.sandboxes.fake_programs import FakeCall, Outcome


class Work:
    """Counts how often it was done; each result tells. With an `error`, it ends in that."""

    def __init__(self, error: BaseException | None = None, gate: asyncio.Event | None = None) -> None:
        self.done = 0
        self.error = error
        self.gate = gate

    async def __call__(self) -> CommandResult:
        self.done += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return CommandResult(0, b"%d" % self.done, b"")


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await body()

    asyncio.run(bounded())


def test_an_action_is_carried_out_once() -> None:
    """By name, also while it is under way; without a name it is another each time."""

    async def body() -> None:
        actions, gate = Actions(), asyncio.Event()
        work = Work(gate=gate)
        asked = [asyncio.create_task(actions.once("a", work)) for _ in range(3)]
        await asyncio.sleep(0)
        gate.set()
        assert {(await each).stdout for each in asked} == {b"1"}
        assert (await actions.once("a", work)).stdout == b"1"
        assert (await actions.once("b", work)).stdout == b"2"
        assert (await actions.once(None, work)).stdout == b"3"
        assert (await actions.once(None, work)).stdout == b"4"
        actions.forget()
        assert (await actions.once("a", work)).stdout == b"5"

    run(body)


def test_what_was_cut_short_is_not_done_again_there() -> None:
    """Cancelled or ended by its box, nobody knows what it had done: asking again is an error of the box."""

    async def body() -> None:
        actions, work = Actions(), Work(gate=asyncio.Event())
        asked = asyncio.create_task(actions.once("a", work))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        with pytest.raises(SandboxError, match="'a' was cut short"):
            await actions.once("a", work)
        with pytest.raises(SandboxDied):
            await actions.once("b", Work(SandboxDied("gone")))
        with pytest.raises(SandboxError, match="'b' was cut short"):
            await actions.once("b", work)
        assert work.done == 1

    run(body)


def test_what_was_not_begun_may_be_asked_for_again() -> None:
    """An answer about a path says that nothing was run."""

    async def body() -> None:
        actions = Actions()
        with pytest.raises(BoxPathError):
            await actions.once("a", Work(BoxPathError("no such folder")))
        assert (await actions.once("a", Work())).stdout == b"1"

    run(body)


def test_only_the_last_few_are_kept() -> None:
    """Memory is bounded, however many actions there are."""

    async def body() -> None:
        actions, work = Actions(), Work()
        for number in range(100):
            await actions.once(str(number), work)
        assert len(actions._known) == KEPT
        assert (await actions.once("99", work)).stdout == b"100"
        assert (await actions.once("0", work)).stdout == b"101"

    run(body)


def test_a_box_keeps_its_actions_until_it_is_another() -> None:
    """A reset takes the results with the effects; a box that is closed has none to give."""

    def add(call: FakeCall) -> Outcome:
        calls.append(call.argv)
        return 0, b"%d" % len(calls), b""

    calls: list[tuple[str, ...]] = []

    async def body() -> None:
        async with FakeProvider({"add": add}).create(BoxSpec("one")) as box:
            for _ in range(2):
                assert (await box.run(["add"], timeout_s=5, action="a")).stdout == b"1"
            await box.reset()
            assert (await box.run(["add"], timeout_s=5, action="a")).stdout == b"2"
            await box.close()
            with pytest.raises(SandboxDied):
                await box.run(["add"], timeout_s=5, action="a")

    run(body)
