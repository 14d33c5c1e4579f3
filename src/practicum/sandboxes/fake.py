"""Boxes in memory: the sandbox contract without a process, for tests and for trying things out.

Owns: `FakeProvider`, `FakeBox`, `FakeCall`, the built-in programs.
Invariant: behaves as the contract says wherever no process is needed, and claims no capability that would need
one; it isolates nothing, so it runs only Python callables that its user registered.
Must not know: hosts, bubblewrap.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from practicum.errors import BoxPathError, CreateFailed, SandboxDied, StoreError, UnsupportedControl
from practicum.records.tree import File
from practicum.sandboxes.contract import (
    BoxSpec,
    Capability,
    CommandResult,
    Listing,
    Sandbox,
    SnapshotId,
    SnapshotStore,
)
from practicum.sandboxes.inside.commands import Capture
from practicum.sandboxes.messages import NUL_RESULT, has_nul
from practicum.sandboxes.snapshots import MemorySnapshots

BASE_ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


@dataclass(slots=True)
class FakeCall:
    """What a program is given. `files` maps absolute paths to the box's files; changes to it are kept."""

    argv: tuple[str, ...]
    stdin: bytes
    env: Mapping[str, str]
    cwd: str
    files: dict[str, File]


Outcome = tuple[int, bytes, bytes]  # exit code, stdout, stderr
Program = Callable[[FakeCall], Outcome | Awaitable[Outcome]]


def _cat(call: FakeCall) -> Outcome:
    if len(call.argv) == 1:
        return 0, call.stdin, b""
    out, err = b"", b""
    for name in call.argv[1:]:
        file = call.files.get(name if name.startswith("/") else f"{call.cwd}/{name}")
        if file is None:
            err += f"cat: {name}: No such file or directory\n".encode()
        else:
            out += file.data
    return int(bool(err)), out, err


async def _sleep(call: FakeCall) -> Outcome:
    await asyncio.sleep(float(call.argv[1]))
    return 0, b"", b""


PROGRAMS: Mapping[str, Program] = {
    "true": lambda call: (0, b"", b""),
    "false": lambda call: (1, b"", b""),
    "echo": lambda call: (0, " ".join(call.argv[1:]).encode("utf-8", "surrogateescape") + b"\n", b""),
    "pwd": lambda call: (0, f"{call.cwd}\n".encode(), b""),
    "env": lambda call: (0, "".join(f"{k}={v}\n" for k, v in call.env.items()).encode(), b""),
    "cat": _cat,
    "sleep": _sleep,
}


class FakeBox:
    """A box in memory. Made by `FakeProvider.create`."""

    def __init__(self, spec: BoxSpec, provider: FakeProvider) -> None:
        self._spec = spec
        self._provider = provider
        self._lock = asyncio.Lock()
        self._closed = False
        self._files = {f"{spec.workdir}/{path}": file for path, file in spec.files.items()}
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
    ) -> CommandResult:
        if not command:
            raise ValueError("a command needs at least its program")
        self._check_open()
        environment = BASE_ENV | dict(self._spec.env) | dict(env or {})
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

    def _cap(self, data: bytes) -> tuple[bytes, bool]:
        capture = Capture(self._spec.limits.output_bytes)
        capture.add(data)
        return capture.result()

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

    async def snapshot(self) -> SnapshotId:
        listing = await self.list_tree(self._spec.workdir, max_bytes=self._spec.limits.disk_bytes)
        return self._provider.snapshots.put(listing.files)

    async def close(self) -> None:
        self._closed = True


class FakeProvider:
    """A `SandboxProvider` in memory. `programs` come on top of `PROGRAMS`, by name."""

    name = "fake"
    capabilities: frozenset[Capability] = frozenset({"no-network", "snapshot", "fork"})

    def __init__(self, programs: Mapping[str, Program] | None = None, snapshots: SnapshotStore | None = None) -> None:
        self.programs: dict[str, Program] = {**PROGRAMS, **(programs or {})}
        self.created = 0
        self._snapshots = snapshots if snapshots is not None else MemorySnapshots()
        self._live: set[str] = set()

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

    def fork(self, snapshot: SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._fork(snapshot, spec)

    @asynccontextmanager
    async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        if spec.layer != "python":
            raise CreateFailed(f"there is no layer named {spec.layer!r}", fix='use layer = "python"')
        for place in (spec.workdir, *spec.scratch, *spec.readonly):
            if not place.startswith("/") or any(part in ("", ".", "..") for part in place.split("/")[1:]):
                raise UnsupportedControl(f"{place!r} is not a plain absolute path")
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
    async def _fork(self, snapshot: SnapshotId, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        try:
            tree = self._snapshots.get(snapshot)
        except StoreError as error:
            raise CreateFailed(f"cannot fork: {error.message}") from error
        async with self._create(replace(spec, files=tree)) as box:
            yield box
