"""The host's end of the wire to a box.

Owns: `Channel`: one outstanding request over two raw pipes, driven by the event loop.
Invariant: each request ends in an answer, `SandboxDied` or `SandboxTimeout`; an answer larger than the caller
allowed ends the channel (whatever comes out of a box is hostile).
Must not know: what the fields mean, how the box was made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from practicum.errors import SandboxDied, SandboxTimeout
from practicum.sandboxes.wire import pack, unpack

_CHUNK = 1 << 18
_OVERHEAD = 1 << 20


class Channel:
    """Takes ownership of both descriptors. `read_fd` comes from the box, `write_fd` leads to it."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = bytearray()
        self._outgoing = memoryview(b"")
        self._answer: asyncio.Future[list[bytes]] | None = None
        self._limit = _OVERHEAD
        self.ended: str | None = None  # why nothing more can be asked
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)
        self._loop.add_reader(read_fd, self._readable)

    def start(self, fields: Sequence[bytes], max_bytes: int) -> asyncio.Future[list[bytes]]:
        """Send a request; the future is its answer, of at most `max_bytes` (and some overhead)."""
        if self.ended is not None:
            raise SandboxDied(self.ended)
        assert self._answer is None or self._answer.done(), "one request at a time"
        self._answer = self._loop.create_future()
        self._limit = max_bytes + _OVERHEAD
        self._send(pack(list(fields)))
        return self._answer

    def expect(self) -> asyncio.Future[list[bytes]]:
        """The answer to a request that was never sent: the box's greeting."""
        self._answer = self._loop.create_future()
        self._drain()
        return self._answer

    async def ask(self, fields: Sequence[bytes], *, timeout_s: float, max_bytes: int) -> list[bytes]:
        """Send a request and wait for its answer. After `SandboxTimeout` the channel is of no more use."""
        return await self.wait(self.start(fields, max_bytes), timeout_s)

    async def wait(self, answer: asyncio.Future[list[bytes]], timeout_s: float) -> list[bytes]:
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(answer)
        except TimeoutError:
            self.end(f"the box did not answer within {timeout_s:g} s")
            raise SandboxTimeout(f"the box did not answer within {timeout_s:g} s") from None

    def cancel(self) -> None:
        """Ask for the running command to be killed; its answer still comes."""
        if self.ended is None:
            self._send(pack([b"cancel"]))

    def end(self, reason: str) -> None:
        """Hang up, which ends the box. Idempotent."""
        if self.ended is not None:
            return
        self.ended = reason
        self._loop.remove_reader(self._read_fd)
        self._loop.remove_writer(self._write_fd)
        os.close(self._read_fd)
        os.close(self._write_fd)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(SandboxDied(reason))
            self._answer.exception()  # whoever waits still gets it; nobody waiting is no error

    def _send(self, data: bytes) -> None:
        idle = not self._outgoing
        self._outgoing = memoryview(bytes(self._outgoing) + data) if not idle else memoryview(data)
        if idle:
            self._writable()
            if self._outgoing and self.ended is None:
                self._loop.add_writer(self._write_fd, self._writable)

    def _writable(self) -> None:
        try:
            self._outgoing = self._outgoing[os.write(self._write_fd, self._outgoing) :]
        except BlockingIOError:
            return
        except OSError as error:
            self.end(f"the box is gone ({error.strerror})")
            return
        if not self._outgoing:
            self._loop.remove_writer(self._write_fd)

    def _readable(self) -> None:
        try:
            data = os.read(self._read_fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self.end(f"the box is gone ({error.strerror})")
            return
        if not data:
            self.end("the box ended")
            return
        self._buffer += data
        self._drain()

    def _drain(self) -> None:
        """Deliver a complete answer."""
        if len(self._buffer) < 4:
            return
        size = int.from_bytes(self._buffer[:4], "little")
        if size > self._limit:
            self.end(f"the box sent more than was asked for ({size} bytes)")
            return
        if len(self._buffer) < 4 + size or self._answer is None:
            return
        body = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        answer, self._answer = self._answer, None
        try:
            fields = unpack(body)
        except ValueError:
            self._answer = answer
            self.end("the box sent a malformed frame")
            return
        if not answer.done():
            answer.set_result(fields)
