"""One box's side of asking: one request at a time, each with a deadline.

Owns: `Line`.
Invariant: a call that is cut short has its command killed, or the box ended; after a death every call says so.
Must not know: what is asked, processes, disks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from practicum.errors import BoxPathError, SandboxDied, SandboxError
from practicum.sandboxes.channel import Channel
from practicum.sandboxes.messages import take_status

_START_S = 30.0
_CALL_S = 30.0  # for what should take milliseconds
_SLACK_S = 5.0  # what an answer may take beyond the command's own deadline


class Line:
    """To the box called `name`. `death` turns the reason of its end into the error that callers get."""

    def __init__(self, name: str, death: Callable[[str], SandboxDied]) -> None:
        self._name = name
        self._death = death
        self._lock = asyncio.Lock()
        self._channel: Channel | None = None

    @property
    def busy(self) -> bool:
        return self._lock.locked()

    async def open(self, read_fd: int, write_fd: int) -> None:
        """Take the descriptors, and wait for the box's greeting."""
        self._channel = Channel(read_fd, write_fd)
        await self._channel.wait(self._channel.expect(), _START_S)

    def hang_up(self, reason: str) -> None:
        """End the box, if it was ever there. Idempotent."""
        if self._channel is not None:
            self._channel.end(reason)

    async def ask(self, fields: Sequence[bytes], *, timeout_s: float | None = None, max_bytes: int = 0) -> list[bytes]:
        """One request, one answer, of which the status is taken off. `timeout_s` is the command's own deadline."""
        patience = _CALL_S if timeout_s is None else timeout_s + _SLACK_S
        async with self._lock:
            channel = self._channel
            if channel is None:
                raise SandboxDied(f"box {self._name} is not running")
            try:
                answer = channel.start(fields, max_bytes)
                try:
                    taken = await channel.wait(answer, patience)
                except asyncio.CancelledError:
                    await _abandon(channel, answer)
                    raise
            except SandboxDied as error:
                raise self._death(error.message) from error
        try:
            return take_status(taken)
        except BoxPathError:
            raise
        except SandboxError as error:
            raise SandboxError(f"box {self._name}: {error.message}") from error


async def _abandon(channel: Channel, answer: asyncio.Future[list[bytes]]) -> None:
    """The caller has gone: kill the command, so that the box can be used again, or else end the box."""
    channel.cancel()
    try:
        async with asyncio.timeout(_SLACK_S):
            await asyncio.shield(answer)
    except (TimeoutError, asyncio.CancelledError, SandboxError):
        channel.end("a call was cut short and the box did not come to rest")
