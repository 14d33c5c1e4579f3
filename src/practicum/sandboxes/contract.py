"""The sandbox contract: what a leased box promises, whoever provides it.

Owns: `Sandbox`, `SandboxProvider`, `BoxSpec`, `CommandResult`, `Listing`, `Snapshot`, `BoxStatus`, `Capability`.
Invariant: every call has a deadline; a command that fails is a result, a box that fails is a `SandboxError`;
a control that was asked for and cannot be had is an error at create, never a silent no-op.
Must not know: tasks, rewards, policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from practicum.records.recipe import Recipe
from practicum.records.task import Limits
from practicum.records.tree import Tree
from practicum.sandboxes.profile import Profile

Capability = Literal[
    "isolation",  # own namespaces, unprivileged, empty environment
    "lasting",  # what runs in a box cannot end it; without it, a command can pass off its failure as a lost box
    "no-network",
    "memory-limit",  # for the box as a whole; without it only per process
    "pids-limit",
    "disk-limit",
    "cpu-limit",
    "oom-report",
    "snapshot",
    "fork",
    "reset",
    "warm",  # a process that is kept warm, see `BoxSpec.warm`
    "copy-on-write",  # snapshot, fork and reset cost the same whatever the number of files
]
SnapshotId = str  # digest of the workspace tree (`records.tree.tree_digest`)
BoxState = Literal["creating", "idle", "running", "snapshotting", "resetting", "quarantined", "destroying", "gone"]


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """What a box is made of.

    `create_id` names the request: providers use it as the box's name in ownership records.
    `layer` names the root file system, or says how it is made. `files` are laid at `workdir`, writable. `readonly`
    maps absolute mount points to trees that the box can read and not write, and `scratch` names further folders that
    start empty and are writable; all that is writable shares `limits.disk_bytes` where the provider has
    `copy-on-write`, else each has as much. `env` is the whole environment of commands beside what the layer sets
    (PATH, HOME, LANG).
    `user` is who commands are inside: uid 1000, or 0, which is root over nothing. `sockets` maps places in the box to
    unix sockets of the host: the one way out. `keep` maps places to folders of the host, which must be empty and
    writable for the sandbox's user, and whose `upper` receives what the box changes below that place: how layers are
    built. `warm` is the argv of a process that is started with the box and survives resets, of which `run_warm` makes
    copies; see `sandboxes/inside/warm.py` for what is asked of it. `profile` is for audits.
    """

    create_id: str
    layer: str | Recipe = "python"
    workdir: str = "/app"
    files: Tree = field(default_factory=dict)
    readonly: Mapping[str, Tree] = field(default_factory=dict)
    limits: Limits = Limits()
    env: Mapping[str, str] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    user: Literal["agent", "root"] = "agent"
    sockets: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    warm: tuple[str, ...] = ()
    profile: Profile = Profile()


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The writable places of a box as they were at one moment. Lives until it is released, or its provider closes.

    `cwd` and `env` are those that commands of the box start with. `running` names processes that were left running:
    they are not part of the snapshot, and what they were writing may be half-written in it.
    """

    id: str
    cwd: str
    env: Mapping[str, str]
    running: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoxStatus:
    """What a box is doing. `running` names its processes beside the first; `reason` says why it is quarantined."""

    state: BoxState
    running: tuple[str, ...] = ()
    reason: str = ""


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
        action: str | None = None,
    ) -> CommandResult:
        """Run `command` (an argv); when it ends or times out, its whole process group is gone.

        stdin is empty by default. A background child that left the group dies with the box. A request that names an
        `action` which the box has carried out lately returns the result of that time: whoever did not hear an answer
        may ask again. `SandboxError` where that action was cut short, since nobody knows what it had done.
        """
        ...

    async def run_warm(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> CommandResult:
        """As `run` in the workdir, by a copy of the box's warm process, which is given `arguments`.

        `SandboxDied` where there is no such process any more: what runs in a box can end it.
        """
        ...

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """Content of a regular file; `BoxPathError` if it is missing, irregular or larger than `max_bytes`."""
        ...

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Create or replace a regular file, making folders as needed; never follows a link."""
        ...

    async def upload(self, path: str, tree: Tree) -> None:
        """Create or replace all files of `tree` below `path`, as `write` does each."""
        ...

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        """All files below `path`, links not followed; `BoxPathError` above `max_bytes` in total."""
        ...

    async def save(self) -> SnapshotId:
        """Keep the workspace as it is now, by content, in the provider's store. Costs with its size.

        `BoxPathError` where it holds what is no plain file, which a box made from what was saved would not have.
        """
        ...

    async def snapshot(self) -> Snapshot:
        """Freeze all writable places as they are now; `SnapshotRefused` while a command runs."""
        ...

    async def supply(self, readonly: Mapping[str, Tree]) -> None:
        """Put other trees at read-only places of the box, until its next reset. Takes the capability `copy-on-write`.

        `SnapshotRefused` while a command runs.
        """
        ...

    async def restore(self, snapshot: Snapshot) -> None:
        """Become what `snapshot` holds, without a process; a later reset still goes back to the creation.

        `CreateFailed` if it is unknown; `SnapshotRefused` while a command runs; otherwise as `reset`.
        """
        ...

    async def reset(self) -> None:
        """Back to how the box was created: no process, no change of a file; `SnapshotRefused` while a command runs.

        A box that cannot be brought there is quarantined, and says so by `SandboxError`.
        """
        ...

    async def quiet(self) -> None:
        """End every process that commands left running. `SnapshotRefused` while a command runs."""
        ...

    async def status(self) -> BoxStatus: ...

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

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh box like `spec` that starts from `snapshot`; `CreateFailed` if that is unknown.

        From a `Snapshot`, all writable places, which must be those of `spec`; from the id of a saved tree, the
        workspace. `spec.files` are not used.
        """
        ...

    def release(self, snapshot: Snapshot) -> None:
        """Forget a snapshot. Boxes forked from it live on. Idempotent."""
        ...


class SnapshotStore(Protocol):
    """Workspace trees by digest."""

    def put(self, tree: Tree) -> SnapshotId: ...

    def get(self, snapshot: SnapshotId) -> Tree:
        """Raises `StoreError` if the snapshot is unknown or does not match its digest."""
        ...
