"""A box for the time of one lease.

Owns: `Leased`, `shape_of` (which boxes can take each other's place).
Invariant: when the lease has ended, whoever had the box can do nothing more with it.
Must not know: the pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from practicum.errors import SandboxDied
from practicum.records.tree import Tree, digest_of, tree_digest
from practicum.sandboxes.contract import (
    BoxSpec,
    BoxStatus,
    Capability,
    CommandResult,
    Listing,
    Sandbox,
    Snapshot,
    SnapshotId,
)


def shape_of(spec: BoxSpec, *, supplied: bool) -> str:
    """Names what boxes must have in common to take each other's place: everything but id and files.

    With `supplied`, what is in read-only places does not matter either, since it can be exchanged.
    """
    return digest_of(
        [
            str(spec.layer),
            spec.workdir,
            sorted(spec.readonly) if supplied else {place: tree_digest(tree) for place, tree in spec.readonly.items()},
            repr(spec.limits),
            sorted(spec.env.items()),
            sorted(spec.scratch),
            spec.user,
            sorted(spec.sockets.items()),
            spec.warm,
            repr(spec.profile),
        ]
    )


class Leased:
    """A box for the time of one lease: afterwards it is closed to whoever had it."""

    def __init__(self, box: Sandbox, spec: BoxSpec, supplied: Mapping[str, Tree]) -> None:
        """`supplied` are the read-only trees of `spec` that `box` was not created with."""
        self._box: Sandbox | None = box
        self._spec = spec
        self._supplied = supplied
        self._start: Snapshot | None = None
        self.id = box.id
        self.spoiled = ""  # why the box must not be leased again
        self.taken: set[str] = set()  # snapshots of it, by id

    def start_at(self, snapshot: Snapshot) -> None:
        """From now on, a reset goes back to `snapshot`."""
        self._start = snapshot

    async def begin(self) -> None:
        """Give the box, which is as it was created, what `spec` says."""
        await self._supply()
        if self._spec.files:
            await self._open().upload(self._spec.workdir, self._spec.files)

    async def _supply(self) -> None:
        """A box that becomes another has at its read-only places what it was created with."""
        if self._supplied:
            await self._open().supply(self._supplied)

    def unfit(self, capabilities: Set[Capability]) -> str:
        """Why the box must not be leased again, or nothing. `capabilities` are those of its provider."""
        if self.taken and {"copy-on-write", "memory-limit"} <= capabilities:
            return "a snapshot of it holds some of its memory"
        return self.spoiled

    def end(self) -> None:
        self._box = None

    def _open(self) -> Sandbox:
        if self._box is None:
            raise SandboxDied(f"box {self.id}: the lease has ended")
        return self._box

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
        box = self._open()
        return self._seen(await box.run(command, timeout_s=timeout_s, stdin=stdin, env=env, cwd=cwd, action=action))

    async def run_warm(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> CommandResult:
        return self._seen(await self._open().run_warm(arguments, timeout_s=timeout_s, stdin=stdin))

    def _seen(self, result: CommandResult) -> CommandResult:
        if result.oom_killed:  # its group remembers that it was full
            self.spoiled = "a command ran out of memory"
        return result

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        return await self._open().read(path, max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._open().write(path, data, mode=mode)

    async def upload(self, path: str, tree: Tree) -> None:
        await self._open().upload(path, tree)

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        return await self._open().list_tree(path, max_bytes=max_bytes)

    async def save(self) -> SnapshotId:
        return await self._open().save()

    async def snapshot(self) -> Snapshot:
        snapshot = await self._open().snapshot()
        self.taken.add(snapshot.id)
        return snapshot

    async def supply(self, readonly: Mapping[str, Tree]) -> None:
        await self._open().supply(readonly)

    async def restore(self, snapshot: Snapshot) -> None:
        await self._open().restore(snapshot)
        await self._supply()

    async def reset(self) -> None:
        if self._start is not None:
            await self.restore(self._start)
            return
        await self._open().reset()
        await self.begin()

    async def quiet(self) -> None:
        await self._open().quiet()

    async def status(self) -> BoxStatus:
        return await self._open().status()

    async def close(self) -> None:
        """End the lease early; the box goes back when its context ends."""
        self.end()
