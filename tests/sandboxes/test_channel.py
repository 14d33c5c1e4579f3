"""The host's end of the wire survives whatever a hostile box writes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import SandboxDied, SandboxError, SandboxTimeout
from practicum.sandboxes.channel import Channel
from practicum.sandboxes.contract import Listing
from practicum.sandboxes.messages import list_answer, read_answer, run_answer, take_status
from practicum.sandboxes.wire import pack, unpack


def with_pipes(use: Callable[[Channel, int, int], Awaitable[None]]) -> None:
    """Run `use` with a channel and the box's ends: where requests arrive, where answers go."""

    async def run() -> None:
        requests, to_box = os.pipe()
        from_box, answers = os.pipe()
        channel = Channel(from_box, to_box)
        try:
            await use(channel, requests, answers)
        finally:
            channel.end("the test is over")
            os.close(requests)
            os.close(answers)

    asyncio.run(run())


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_frames_round_trip(fields: list[bytes]) -> None:
    """Any fields come back as they were."""
    frame = pack(fields)
    assert int.from_bytes(frame[:4], "little") == len(frame) - 4
    assert unpack(frame[4:]) == fields


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_an_error(body: bytes) -> None:
    """A body is either fields that pack to the same, or a ValueError; never anything else."""
    try:
        fields = unpack(body)
    except ValueError:
        return
    assert pack(fields)[4:] == body


def test_answers_in_pieces() -> None:
    """An answer that arrives byte by byte is one answer."""

    async def use(channel: Channel, requests: int, answers: int) -> None:
        asked = asyncio.create_task(channel.ask([b"ping"], timeout_s=5, max_bytes=10))
        await asyncio.sleep(0)
        assert os.read(requests, 100) == pack([b"ping"])
        for byte in pack([b"ok", b"\0\xff"]):
            os.write(answers, bytes([byte]))
            await asyncio.sleep(0.001)
        assert await asked == [b"ok", b"\0\xff"]

    with_pipes(use)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ((2_000_000).to_bytes(4, "little"), "more than was asked for"),
        (b"\xff\xff\xff\xff", "more than was asked for"),
        ((6).to_bytes(4, "little") + b"\xff\xff\xff\x7f12", "malformed"),
    ],
)
def test_hostile_frames_end_the_box(sent: bytes, reason: str) -> None:
    """Too much, or nonsense, ends the channel at once, and every later call says why."""

    async def use(channel: Channel, requests: int, answers: int) -> None:
        os.write(answers, sent)
        for _ in range(2):
            with pytest.raises(SandboxDied, match=reason):
                await channel.ask([b"ping"], timeout_s=5, max_bytes=10)

    with_pipes(use)


def test_silence_is_a_timeout() -> None:
    """A box that does not answer is a SandboxTimeout, and is not asked again."""

    async def use(channel: Channel, requests: int, answers: int) -> None:
        with pytest.raises(SandboxTimeout):
            await channel.ask([b"ping"], timeout_s=0.05, max_bytes=10)
        with pytest.raises(SandboxDied, match="did not answer"):
            await channel.ask([b"ping"], timeout_s=0.05, max_bytes=10)

    with_pipes(use)


def test_large_requests_wait_for_the_reader() -> None:
    """A request larger than the pipe is written as the box reads it, without blocking the loop."""
    data = bytes(range(256)) * 4000

    async def use(channel: Channel, requests: int, answers: int) -> None:
        asked = asyncio.create_task(channel.ask([b"write", data], timeout_s=5, max_bytes=10))
        frame = b""
        while len(frame) < len(pack([b"write", data])):
            await asyncio.sleep(0.001)
            frame += os.read(requests, 1 << 16)
        assert unpack(frame[4:]) == [b"write", data]
        os.write(answers, pack([b"ok"]))
        assert await asked == [b"ok"]

    with_pipes(use)


PARTS = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([b"ok", b"exec", b"errno", b"path", b"0", b"1", b"2", b"-1", b"a", b"../a", b"420", b"9" * 5000]),
)


@given(st.lists(PARTS, max_size=12))
def test_answers_are_what_was_asked_for_or_an_error(fields: list[bytes]) -> None:
    """Whatever fields a box sends, the result is a record or a SandboxError, and no path leaves its folder."""
    for read in (list_answer, read_answer, lambda answer: run_answer(answer, ["true"], "/app", oom_killed=False)):
        try:
            result = read(take_status(fields))
        except SandboxError:
            continue
        if isinstance(result, Listing):
            assert all(not {"", ".", ".."} & set(path.split("/")) for path in (*result.files, *result.irregular))


@given(st.binary(max_size=200))
def test_any_frame_is_fields_or_the_end_of_the_box(body: bytes) -> None:
    """A frame with any body at all is an answer or SandboxDied; nothing else comes out of the channel."""

    async def use(channel: Channel, requests: int, answers: int) -> None:
        os.write(answers, len(body).to_bytes(4, "little") + body)
        try:
            fields = await channel.ask([b"ping"], timeout_s=5, max_bytes=10)
        except SandboxDied:
            return
        assert pack(fields)[4:] == body

    with_pipes(use)
