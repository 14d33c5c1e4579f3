"""The sandbox contract: what a leased box promises, whoever provides it.

Owns: `Sandbox`, `SandboxProvider`, `BoxSpec`, `CommandResult`, `Listing`, `Capability`.
Invariant: every call has a deadline; a command that fails is a result, a box that fails is a `SandboxError`;
a control that was asked for and cannot be had is an error at create, never a silent no-op.
Must not know: tasks, rewards, policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from practicum.records.task import Limits
from practicum.records.tree import Tree

Capability = Literal[
    "isolation",  # own namespaces, unprivileged, empty environment
    "no-network",
    "memory-limit",  # for the box as a whole; without it only per process
    "pids-limit",
    "disk-limit",
    "cpu-limit",
    "oom-report",
    "snapshot",
    "fork",
]
SnapshotId = str  # digest of the workspace tree (`records.tree.tree_digest`)


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """What a box is made of.

    `create_id` names the request: providers use it as the box's name in ownership records.
    `layer` names the root file system. `files` are laid at `workdir`, writable. `readonly` maps absolute
    mount points to trees that the box can read and not write, and `scratch` names further folders that start empty
    and are writable, each within `limits.disk_bytes`. `env` is the whole environment of commands
    beside PATH, HOME and LANG.
    """

    create_id: str
    layer: str = "python"
    workdir: str = "/app"
    files: Tree = field(default_factory=dict)
    readonly: Mapping[str, Tree] = field(default_factory=dict)
    limits: Limits = Limits()
    env: Mapping[str, str] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What one command did.

    `exit_code` is the status as a shell shows it (128 + signal where killed; 124 where `timed_out`).
    `stdout` and `stderr` keep head and tail within `limits.output_bytes` each; `truncated` says if any was
    dropped. Seconds are wall and cpu of the command's process tree as far as it was reaped.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    timed_out: bool = False
    oom_killed: bool = False
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """Content of a folder in the box. `irregular` names what is not a plain file (path → kind)."""

    files: Tree
    irregular: Mapping[str, str] = field(default_factory=dict)


class Sandbox(Protocol):
    """A leased box. Calls raise `SandboxError` (infrastructure), `BoxPathError` or `BoxOutOfMemory` (data).

    `BoxOutOfMemory` takes the capability `oom-report`; without it, such a death is a `SandboxDied` like others.
    """

    @property
    def id(self) -> str: ...

    async def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Run `command` (an argv); when it ends or times out, its whole process group is gone.

        stdin is empty by default. A background child that left the group dies with the box.
        """
        ...

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """Content of a regular file; `BoxPathError` if it is missing, irregular or larger than `max_bytes`."""
        ...

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Create or replace a regular file, making folders as needed; never follows a link."""
        ...

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        """All files below `path`, links not followed; `BoxPathError` above `max_bytes` in total."""
        ...

    async def snapshot(self) -> SnapshotId:
        """Keep the workspace as it is now in the provider's snapshot store."""
        ...

    async def close(self) -> None:
        """End the box; afterwards none of its processes is alive. Idempotent."""
        ...


class SandboxProvider(Protocol):
    """Makes boxes."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def snapshots(self) -> SnapshotStore: ...

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh box; raises `CreateFailed` or `UnsupportedControl`. On exit the box is gone."""
        ...

    def fork(self, snapshot: SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh box like `spec`, whose workspace is `snapshot`; `CreateFailed` if that is unknown."""
        ...


class SnapshotStore(Protocol):
    """Workspace trees by digest."""

    def put(self, tree: Tree) -> SnapshotId: ...

    def get(self, snapshot: SnapshotId) -> Tree:
        """Raises `StoreError` if the snapshot is unknown or does not match its digest."""
        ...
