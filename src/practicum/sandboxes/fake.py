"""Boxes in memory: the sandbox contract without a process, for tests and for trying things out.

Owns: `FakeProvider`, `FakeBox`.
Invariant: behaves as the contract says wherever no process is needed, and claims no capability that would need
one; it isolates nothing, so it runs only Python callables that its user registered.
Must not know: hosts, bubblewrap.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from practicum import errors
from practicum.errors import BoxPathError, CreateFailed, SandboxDied
from practicum.records.tree import File, Tree
from practicum.sandboxes.actions import Actions
from practicum.sandboxes.contract import (
    BoxSpec,
    BoxStatus,
    Capability,
    CommandResult,
    Listing,
    Sandbox,
    Snapshot,
    SnapshotId,
    SnapshotStore,
)
from practicum.sandboxes.fake_programs import BASE_ENV, PROGRAMS, FakeCall, Program
from practicum.sandboxes.messages import NUL_RESULT, has_nul
from practicum.sandboxes.snapshots import MemorySnapshots


class FakeBox:
    """A box in memory. Made by `FakeProvider.create`."""

    def __init__(self, spec: BoxSpec, provider: FakeProvider) -> None:
        self._spec = spec
        self._provider = provider
        self._lock = asyncio.Lock()
        self._actions = Actions()
        self._closed = False
        self._start = {f"{spec.workdir}/{path}": file for path, file in spec.files.items()}
        self._files = dict(self._start)
        self._fixed = {f"{place}/{path}": file for place, tree in spec.readonly.items() for path, file in tree.items()}

    @property
    def id(self) -> str:
        return self._spec.create_id

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
        self._check_open()
        return await self._actions.once(action, lambda: self._run(command, timeout_s, stdin, env or {}, cwd))

    async def _run(
        self, command: Sequence[str], timeout_s: float, stdin: bytes | None, env: Mapping[str, str], cwd: str | None
    ) -> CommandResult:
        if not command:
            raise ValueError("a command needs at least its program")
        environment = BASE_ENV | dict(self._spec.env) | dict(env)
        if has_nul(command, environment, cwd or ""):
            return NUL_RESULT
        program = self._provider.programs.get(command[0].rpartition("/")[2])
        if program is None:
            return CommandResult(127, b"", f"practicum: cannot run {command[0]!r}: no such program\n".encode())
        async with self._lock:
            files = self._fixed | self._files
            where = self._absolute(cwd) if cwd else self._spec.workdir
            call = FakeCall(tuple(command), stdin or b"", environment, where, files)
            start = time.monotonic()
            try:
                async with asyncio.timeout(timeout_s):
                    outcome = program(call)
                    code, out, err = await outcome if isinstance(outcome, Awaitable) else outcome
                timed_out = False
            except TimeoutError:
                code, out, err, timed_out = 124, b"", b"", True
            self._files = {path: file for path, file in files.items() if path not in self._fixed}
        (out, cut_out), (err, cut_err) = self._cap(out), self._cap(err)
        wall = time.monotonic() - start
        return CommandResult(code, out, err, truncated=cut_out or cut_err, timed_out=timed_out, wall_s=wall)

    async def run_warm(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> CommandResult:
        raise errors.UnsupportedControl("a box in memory has no warm process")

    def _cap(self, data: bytes) -> tuple[bytes, bool]:
        cap = self._spec.limits.output_bytes
        if len(data) <= cap:
            return data, False
        mark = b"\n[practicum: %d bytes in all, the middle left out]\n" % len(data)
        half = cap // 2
        mark = mark if len(mark) <= half else b""
        return data[: cap - half] + mark + data[len(data) - half + len(mark) :], True

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxDied(f"box {self.id}: the box is closed")

    def _absolute(self, path: str) -> str:
        full = path if path.startswith("/") else f"{self._spec.workdir}/{path}"
        parts = [part for part in full.split("/") if part not in ("", ".")]
        if ".." in parts or "\0" in path:
            raise BoxPathError(f"cannot use {path!r}: the path is not absolute and plain")
        return "/" + "/".join(parts)

    def _is_folder(self, path: str) -> bool:
        prefix = path.rstrip("/") + "/"
        return path in (self._spec.workdir, *self._spec.scratch) or any(
            name.startswith(prefix) for name in (*self._fixed, *self._files)
        )

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        self._check_open()
        full = self._absolute(path)
        file = self._files.get(full) or self._fixed.get(full)
        if file is None:
            raise BoxPathError(f"cannot read {path!r}: {'a folder' if self._is_folder(full) else 'no such file'}")
        if len(file.data) > max_bytes:
            raise BoxPathError(f"cannot read {path!r}: it is larger than {max_bytes} bytes")
        return file.data

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._check_open()
        full = self._absolute(path)
        if any(full == place or full.startswith(place + "/") for place in self._spec.readonly):
            raise BoxPathError(f"cannot write {path!r}: read-only")
        above = {full[:i] for i, c in enumerate(full) if c == "/"}
        if self._is_folder(full) or above & (self._fixed | self._files).keys():
            raise BoxPathError(f"cannot write {path!r}: a file and a folder cannot have one name")
        others = sum(len(file.data) for name, file in self._files.items() if name != full)
        if others + len(data) > self._spec.limits.disk_bytes:
            raise BoxPathError(f"cannot write {path!r}: no space left")
        self._files[full] = File(data, mode & 0o777)

    async def upload(self, path: str, tree: Tree) -> None:
        for name, file in tree.items():
            await self.write(f"{path}/{name}", file.data, mode=file.mode)

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        self._check_open()
        full = self._absolute(path)
        if not self._is_folder(full):
            raise BoxPathError(f"cannot list {path!r}: no such folder")
        prefix = full.rstrip("/") + "/"
        found = {n[len(prefix) :]: file for n, file in (self._fixed | self._files).items() if n.startswith(prefix)}
        if sum(len(file.data) for file in found.values()) > max_bytes:
            raise BoxPathError(f"cannot list {path!r}: it holds more than {max_bytes} bytes")
        return Listing(found)

    async def save(self) -> SnapshotId:
        listing = await self.list_tree(self._spec.workdir, max_bytes=self._spec.limits.disk_bytes)
        return self._provider.snapshots.put(listing.files)

    async def snapshot(self) -> Snapshot:
        self._refuse_while_busy("a snapshot")
        env = BASE_ENV | dict(self._spec.env)
        snapshot = Snapshot(f"{self.id}/{next(self._provider.numbers)}", self._spec.workdir, env)
        self._provider.frozen[snapshot.id] = dict(self._files)
        return snapshot

    async def supply(self, readonly: Mapping[str, Tree]) -> None:
        raise errors.UnsupportedControl("read-only files of a box in memory cannot be exchanged")

    async def restore(self, snapshot: Snapshot) -> None:
        self._refuse_while_busy("restoring")
        if snapshot.id not in self._provider.frozen:
            raise CreateFailed(f"there is no snapshot {snapshot.id}")
        self._files = dict(self._provider.frozen[snapshot.id])
        self._actions.forget()

    async def reset(self) -> None:
        self._refuse_while_busy("a reset")
        self._files = dict(self._start)
        self._actions.forget()

    def begin_at(self, files: Mapping[str, File]) -> None:
        """Hold these files, by absolute path, now and after a reset."""
        self._start, self._files = dict(files), dict(files)

    def _refuse_while_busy(self, what: str) -> None:
        self._check_open()
        if self._lock.locked():
            raise errors.SnapshotRefused(f"{what} of box {self.id} was asked for while a command runs in it")

    async def quiet(self) -> None:
        self._refuse_while_busy("ending its processes")

    async def status(self) -> BoxStatus:
        return BoxStatus("gone" if self._closed else "running" if self._lock.locked() else "idle")

    async def close(self) -> None:
        self._closed = True


class FakeProvider:
    """A `SandboxProvider` in memory. `programs` come on top of `PROGRAMS`, by name."""

    name = "fake"
    capabilities: frozenset[Capability] = frozenset({"lasting", "no-network", "snapshot", "fork", "reset"})

    def __init__(self, programs: Mapping[str, Program] | None = None, snapshots: SnapshotStore | None = None) -> None:
        self.programs: dict[str, Program] = {**PROGRAMS, **(programs or {})}
        self.created = 0
        self._snapshots = snapshots if snapshots is not None else MemorySnapshots()
        self._live: set[str] = set()
        self.frozen: dict[str, dict[str, File]] = {}
        self.numbers = itertools.count()

    @property
    def snapshots(self) -> SnapshotStore:
        return self._snapshots

    @property
    def live(self) -> int:
        return len(self._live)

    def make_box(self, spec: BoxSpec) -> FakeBox:
        """Made so that a test can have a box that misbehaves."""
        return FakeBox(spec, self)

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._create(spec)

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._fork(snapshot, spec)

    def release(self, snapshot: Snapshot) -> None:
        self.frozen.pop(snapshot.id, None)

    @asynccontextmanager
    async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        if spec.layer != "python":
            raise CreateFailed(f"there is no layer named {spec.layer!r}", fix='use layer = "python"')
        for place in (spec.workdir, *spec.scratch, *spec.readonly):
            if not place.startswith("/") or any(part in ("", ".", "..") for part in place.split("/")[1:]):
                raise errors.UnsupportedControl(f"{place!r} is not a plain absolute path")
        if spec.create_id in self._live:
            raise CreateFailed(f"there is a living box for create_id {spec.create_id!r} already")
        box = self.make_box(spec)
        self._live.add(spec.create_id)
        self.created += 1
        try:
            yield box
        finally:
            await box.close()
            self._live.discard(spec.create_id)

    @asynccontextmanager
    async def _fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        try:
            if isinstance(snapshot, str):
                files = {f"{spec.workdir}/{path}": file for path, file in self._snapshots.get(snapshot).items()}
            else:
                files = self.frozen[snapshot.id]
        except errors.StoreError as error:
            raise CreateFailed(f"cannot fork: {error.message}") from error
        except KeyError:
            raise CreateFailed(f"cannot fork: there is no snapshot {snapshot}") from None
        async with self._create(replace(spec, files={})) as box:
            assert isinstance(box, FakeBox)
            box.begin_at(files)
            yield box
