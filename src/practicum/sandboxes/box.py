"""One box, from start to end.

Owns: `Box`.
Invariant: the box's first process answers one request at a time; a call that is cut short kills its command; when
`close` returns, nothing of the box is left; a box that could not be reset is never used again.
Must not know: how the shared parts were found, how its processes are kept on the host, which runtime made it.
Longer than 300 lines, since a box's life is one state machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

from practicum.errors import (
    BoxOutOfMemory,
    BoxPathError,
    CreateFailed,
    SandboxDied,
    SandboxError,
    SnapshotRefused,
    StoreError,
    UnsupportedControl,
    WarmEnded,
)
from practicum.records.tree import Tree
from practicum.sandboxes.actions import Actions
from practicum.sandboxes.commands import Commands
from practicum.sandboxes.contract import BoxSpec, BoxState, BoxStatus, CommandResult, Listing, Snapshot, SnapshotId
from practicum.sandboxes.disks import Disk, Frozen
from practicum.sandboxes.furnish import Furnished, furnish
from practicum.sandboxes.line import Line
from practicum.sandboxes.messages import (
    encode,
    list_answer,
    read_answer,
    write_request,
)
from practicum.sandboxes.process import BoxProcess, Host

_NAMES_BYTES = 100 << 20  # room for the names of as many files as a listing may hold


class Box:
    """One box. Made by `HostProvider.create`."""

    def __init__(self, name: str, spec: BoxSpec, host: Host, forget: Callable[[Box], None]) -> None:
        self._name = name
        self._spec = spec
        self._host = host
        self._forget = forget
        self._line = Line(name, self._death)
        self._commands = Commands(name, spec, self._ask, limited_by_groups=host.cgroups is not None)
        self._actions = Actions()
        self._process = BoxProcess(name, host)
        self._furnished: Furnished | None = None
        self._closing: asyncio.Task[None] | None = None
        self._state: BoxState = "creating"
        self._reason = ""
        self._files: Tree = spec.files
        self._origin: Frozen | None = None

    @property
    def id(self) -> str:
        return self._name

    @property
    def _disk(self) -> Disk | None:
        """None before the box is furnished, and where files are copied."""
        return self._furnished.disk if self._furnished else None

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self, frozen: Frozen | None = None) -> None:
        """Bring the box up, with its files or with what `frozen` holds; `CreateFailed` says what the runtime said."""
        self._origin = frozen
        try:
            await self._boot()
        except (CreateFailed, UnsupportedControl):
            raise
        except SandboxError as error:
            raise CreateFailed(f"box {self._name} could not be started: {error.message}") from error
        try:
            await self._furnish(self._files, frozen)
        except SandboxError as error:
            raise CreateFailed(f"box {self._name} could not take its files: {error.message}") from error
        self._state = "idle"

    async def _boot(self) -> None:
        """From nothing to a first process that answers, without a disk."""
        host, spec = self._host, self._spec
        self._furnished = furnish(spec, host)
        self._commands.env, self._commands.oom = self._furnished.env, self._process.oom_since_last
        mounts = self._furnished.mounts
        argv = host.runtime.argv(self._name, spec, self._furnished.layer, mounts, spec.profile)
        try:
            pipes = self._process.start(spec.limits, argv, self._furnished.slots, limited=spec.profile.limits)
        except OSError as error:
            raise CreateFailed(f"box {self._name} could not be started: {error}") from error
        try:
            await self._line.open(*pipes)
        except SandboxError as error:
            words = await self._process.last_words()
            raise CreateFailed(f"box {self._name} did not come up: {words or error}") from error
        self._process.up()

    async def _furnish(self, files: Tree, frozen: Frozen | None = None) -> None:
        """Give a booted box its disk and its files."""
        if self._disk is not None:
            self._disk.start(frozen)
        if files and frozen is None:
            await self._ask(write_request(self._spec.workdir, files))
        if self._spec.warm:
            await self._commands.warm_up()

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._state = "destroying"
        self._line.hang_up("the box is closed")
        self._actions.forget()
        await self._process.end(self._unmount)
        self._forget(self)
        self._state = "gone"

    def _unmount(self) -> None:
        disk = self._disk
        if disk is not None and self._host.hub.alive:  # with the hub, its mounts have gone
            disk.remove()

    # --- calls --------------------------------------------------------------------------------------------

    async def _ask(self, fields: Sequence[bytes], *, timeout_s: float | None = None, max_bytes: int = 0) -> list[bytes]:
        if self._state == "quarantined":
            raise SandboxError(f"box {self._name} is quarantined: {self._reason}")
        return await self._line.ask(fields, timeout_s=timeout_s, max_bytes=max_bytes)

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
        action: str | None = None,
    ) -> CommandResult:
        async def carry_out() -> CommandResult:
            with self._doing("running"):
                return await self._commands.run(command, timeout_s, stdin, env or {}, cwd)

        return await self._actions.once(action, carry_out)

    async def run_warm(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> CommandResult:
        with self._doing("running"):
            return await self._commands.run_warm(arguments, timeout_s, stdin)

    @contextlib.contextmanager
    def _doing(self, state: BoxState) -> Iterator[None]:
        """`state` for as long as the block takes, unless the box has come to an end by then."""
        self._state = state if self._state == "idle" else self._state
        try:
            yield
        finally:
            if self._state == state:
                self._state = "idle"

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        request = [b"read", self._absolute(path), b"%d" % max_bytes]
        with _about(f"cannot read {path!r}"):
            return read_answer(await self._ask(request, max_bytes=max_bytes))

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        with _about(f"cannot write {path!r}"):
            await self._ask([b"write", self._absolute(path), b"%d" % mode, data])

    async def upload(self, path: str, tree: Tree) -> None:
        with _about(f"cannot write below {path!r}"):
            await self._ask(write_request(path if path.startswith("/") else f"{self._spec.workdir}/{path}", tree))

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        request = [b"list", self._absolute(path), b"%d" % max_bytes]
        with _about(f"cannot list {path!r}"):
            return list_answer(await self._ask(request, max_bytes=max_bytes + _NAMES_BYTES))

    # --- states of the disk -------------------------------------------------------------------------------

    async def save(self) -> SnapshotId:
        listing = await self._workspace()
        if listing.irregular:
            path, kind = min(listing.irregular.items())
            raise BoxPathError(f"cannot save {self._spec.workdir!r}: {path!r} in it is no plain file ({kind})")
        return self._host.snapshots.put(listing.files)

    async def _workspace(self) -> Listing:
        return await self.list_tree(self._spec.workdir, max_bytes=self._spec.limits.disk_bytes)

    async def supply(self, readonly: Mapping[str, Tree]) -> None:
        self._refuse_while_busy("supplying files")
        disk = self._disk
        if disk is None:
            raise UnsupportedControl("read-only files cannot be exchanged where files are copied")
        for place in readonly:
            if place not in self._spec.readonly:
                raise UnsupportedControl(f"{place!r} is no read-only place of box {self._name}")
        async with self._becoming("supplied"):
            for place, tree in readonly.items():
                disk.open_place(place)
                if tree:
                    await self._ask(write_request(place, tree))
                disk.seal_place(place)

    async def _processes(self) -> tuple[str, ...]:
        return tuple(name.decode(errors="replace") for name in await self._ask([b"procs"], max_bytes=1 << 20))

    async def snapshot(self) -> Snapshot:
        self._refuse_while_busy("a snapshot")
        disk = self._disk
        with self._doing("snapshotting"):
            running = await self._processes()
            if disk is not None and not running:
                async with self._becoming("frozen", unless=lambda: not disk.broken):
                    frozen: Frozen | str = disk.stack()
            else:  # what runs has files open, which must stay its own
                frozen = self._host.snapshots.put((await self._workspace()).files)
        snapshot = Snapshot(f"{self._name}/{uuid.uuid4().hex[:12]}", self._spec.workdir, self._commands.env, running)
        self._host.keep(snapshot.id, frozen)
        return snapshot

    def _refuse_while_busy(self, what: str) -> None:
        if self._line.busy:
            raise SnapshotRefused(f"{what} of box {self._name} was asked for while a command runs in it")

    async def restore(self, snapshot: Snapshot) -> None:
        self._refuse_while_busy("restoring")
        frozen = self._host.frozen.get(snapshot.id)
        if frozen is None:
            raise CreateFailed(f"there is no snapshot {snapshot.id}")
        self._actions.forget()
        async with self._becoming("restored"):
            files = self._host.snapshots.get(frozen) if isinstance(frozen, str) else {}
            if self._disk is None:
                await self._begin_anew(files)
                return
            if not await self._cleared():
                await self._begin_anew({})
            # What was saved by content lies on the layer alone, whatever the box itself began from.
            self._disk.attach(self._disk.bare if isinstance(frozen, str) else frozen)
            if files:
                await self._ask(write_request(self._spec.workdir, files))

    async def reset(self) -> None:
        self._refuse_while_busy("a reset")
        self._actions.forget()
        async with self._becoming("reset"):
            await self._reset()

    @contextlib.asynccontextmanager
    async def _becoming(self, what: str, *, unless: Callable[[], bool] = lambda: False) -> AsyncIterator[None]:
        """A box that does not become what it should is quarantined, unless it is as it was before."""
        with self._doing("resetting"):
            try:
                yield
            except (SandboxError, StoreError) as error:
                if unless():
                    raise
                self._state, self._reason = "quarantined", f"it could not be {what}: {error.message}"
                raise SandboxError(f"box {self._name} could not be {what}: {error.message}") from error

    async def _reset(self) -> None:
        disk = self._disk
        if disk is None or not await self._cleared():
            await self._begin_anew(self._files)
            return
        disk.reset()
        if self._files and not disk.forked:
            await self._ask(write_request(self._spec.workdir, self._files))

    async def _begin_anew(self, files: Tree) -> None:
        """Other processes and other places take the place of those there are."""
        before = self._disk
        self._line.hang_up("the box is being reset")
        await self._process.end(lambda: None)
        self._process = BoxProcess(self._name, self._host)
        try:
            await self._boot()
            await self._furnish(files, self._origin)
        finally:
            if before is not None:  # until now it held what a fork began from
                before.remove()

    async def quiet(self) -> None:
        self._refuse_while_busy("ending its processes")
        await self._ask([b"quiet"])
        self._process.oom_since_last()

    async def _cleared(self) -> bool:
        """Whether nothing is left of what ran, in processes or in the kernel; a box that has died is not revived."""
        try:
            await self.quiet()
            if await self._processes():
                return False
            await self._ask([b"pristine"])
            if self._spec.warm:
                await self._commands.check_warm()
        except (BoxPathError, WarmEnded):
            return False
        return True

    async def status(self) -> BoxStatus:
        idle = self._state == "idle" and not self._line.busy
        return BoxStatus(self._state, await self._processes() if idle else (), self._reason)


@contextlib.contextmanager
def _about(what: str) -> Iterator[None]:
    """Put what was asked for before the box's answer about a path."""
    try:
        yield
    except BoxPathError as error:
        raise BoxPathError(f"{what}: {error.message}") from error
