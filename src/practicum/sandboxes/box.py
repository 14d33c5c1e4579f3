"""One box by bubblewrap, from start to end.

Owns: `BubblewrapBox`.
Invariant: the box's first process answers one request at a time; a call that is cut short kills its command; when
`close` returns, nothing of the box is left.
Must not know: how the shared parts were found, how its processes are kept on the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from practicum.errors import BoxOutOfMemory, BoxPathError, CreateFailed, SandboxDied, SandboxError
from practicum.sandboxes.channel import Channel
from practicum.sandboxes.contract import BoxSpec, CommandResult, Listing, SnapshotId
from practicum.sandboxes.launch import bwrap_arguments
from practicum.sandboxes.messages import (
    NUL_RESULT,
    encode,
    has_nul,
    list_answer,
    read_answer,
    run_answer,
    run_request,
    write_request,
)
from practicum.sandboxes.process import BoxProcess, Host

_START_S = 30.0
_CALL_S = 30.0  # for what should take milliseconds
_SLACK_S = 5.0  # what an answer may take beyond the command's own deadline
_NAMES_BYTES = 100 << 20  # room for the names of as many files as a listing may hold


class BubblewrapBox:
    """One box. Made by `BubblewrapProvider.create`."""

    def __init__(self, name: str, spec: BoxSpec, host: Host, forget: Callable[[BubblewrapBox], None]) -> None:
        self._name = name
        self._spec = spec
        self._host = host
        self._forget = forget
        self._lock = asyncio.Lock()
        self._process = BoxProcess(name, host)
        self._channel: Channel | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self._name

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Bring the box up; `CreateFailed` says what bubblewrap said."""
        host, spec = self._host, self._spec
        readonly = {place: str(host.cache.readonly_tree(tree)) for place, tree in spec.readonly.items()}
        layer = host.cache.layer(spec.layer)
        try:
            pipes = self._process.start(spec.limits, [*bwrap_arguments(spec, layer, readonly), "--", *layer.agent])
        except OSError as error:
            raise CreateFailed(f"box {self._name} could not be started: {error}") from error
        self._channel = Channel(*pipes)
        try:
            await self._channel.wait(self._channel.expect(), _START_S)
        except SandboxError as error:
            words = await self._process.last_words()
            raise CreateFailed(f"box {self._name} did not come up: {words or error}") from error
        self._process.up()
        if spec.files:
            try:
                await self._ask(write_request(spec.workdir, spec.files))
            except SandboxError as error:
                raise CreateFailed(f"box {self._name} could not take its files: {error.message}") from error

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._channel is not None:
            self._channel.end("the box is closed")
        await self._process.end()
        self._forget(self)

    # --- calls --------------------------------------------------------------------------------------------

    async def _ask(self, fields: Sequence[bytes], *, timeout_s: float = _CALL_S, max_bytes: int = 0) -> list[bytes]:
        """One request, one answer; the first field of the answer is taken off."""
        async with self._lock:
            channel = self._channel
            if channel is None:
                raise SandboxDied(f"box {self._name} is not running")
            try:
                answer = channel.start(fields, max_bytes)
                try:
                    status, *rest = await channel.wait(answer, timeout_s)
                except asyncio.CancelledError:
                    await self._abandon(channel, answer)
                    raise
            except SandboxDied as error:
                raise self._death(error.message) from error
        if status == b"path":
            raise BoxPathError(rest[0].decode(errors="replace"))
        if status != b"ok":
            raise SandboxError(f"box {self._name}: {rest[0].decode(errors='replace') if rest else 'no answer'}")
        return rest

    async def _abandon(self, channel: Channel, answer: asyncio.Future[list[bytes]]) -> None:
        """The caller has gone: kill the command, so that the box can be used again, or else end the box."""
        channel.cancel()
        try:
            async with asyncio.timeout(_SLACK_S):
                await asyncio.shield(answer)
        except (TimeoutError, asyncio.CancelledError, SandboxError):
            channel.end("a call was cut short and the box did not come to rest")

    def _death(self, reason: str) -> SandboxDied:
        if self._closing is None and self._process.died_for_memory():
            return BoxOutOfMemory(
                f"box {self._name}: {reason}: it used all of its {self._spec.limits.memory_bytes} bytes of memory"
            )
        return SandboxDied(f"box {self._name}: {reason}")

    def _absolute(self, path: str) -> bytes:
        return encode(path if path.startswith("/") else f"{self._spec.workdir}/{path}")

    async def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        if not command:
            raise ValueError("a command needs at least its program")
        environment = self._host.cache.layer(self._spec.layer).env | dict(self._spec.env) | dict(env or {})
        where = self._absolute(cwd or self._spec.workdir)
        if has_nul(command, environment, cwd or ""):
            return NUL_RESULT
        limit = self._spec.limits.output_bytes
        request = run_request(
            command,
            cwd=where,
            env=environment,
            stdin=stdin,
            timeout_s=timeout_s,
            output_bytes=limit,
            rlimits=self._rlimits(timeout_s),
        )
        answer = await self._ask(request, timeout_s=timeout_s + _SLACK_S, max_bytes=2 * limit)
        return run_answer(answer, oom_killed=self._process.oom_since_last())

    def _rlimits(self, timeout_s: float) -> dict[str, int]:
        """Limits of each process. They are the only ones where there are no control groups."""
        limits = self._spec.limits
        seconds = math.ceil(timeout_s * max(1.0, limits.cpus)) + 2
        found = {"FSIZE": limits.disk_bytes, "CORE": 0, "NOFILE": 1024, "CPU": seconds}
        if self._host.cgroups is None:
            found |= {"AS": limits.memory_bytes, "NPROC": limits.pids + 1}
        return found

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        request = [b"read", self._absolute(path), b"%d" % max_bytes]
        with _about(f"cannot read {path!r}"):
            return read_answer(await self._ask(request, max_bytes=max_bytes))

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        with _about(f"cannot write {path!r}"):
            await self._ask([b"write", self._absolute(path), b"%d" % mode, data])

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        request = [b"list", self._absolute(path), b"%d" % max_bytes]
        with _about(f"cannot list {path!r}"):
            return list_answer(await self._ask(request, max_bytes=max_bytes + _NAMES_BYTES))

    async def snapshot(self) -> SnapshotId:
        listing = await self.list_tree(self._spec.workdir, max_bytes=self._spec.limits.disk_bytes)
        return self._host.snapshots.put(listing.files)


@contextlib.contextmanager
def _about(what: str) -> Iterator[None]:
    """Put what was asked for before the box's answer about a path."""
    try:
        yield
    except BoxPathError as error:
        raise BoxPathError(f"{what}: {error.message}") from error
