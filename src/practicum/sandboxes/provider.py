"""Boxes on this host.

Owns: `open_provider`, `HostProvider`.
Invariant: when the provider's context ends, none of its boxes, groups, mounts or records is left; what it cannot
enforce it does not claim, and what was asked for and cannot be had is an error at once.
Must not know: tasks, rewards, policies; what differs between runtimes.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Literal

from practicum.errors import ConfigError, CreateFailed, LayerFailed, StoreError
from practicum.records.recipe import Recipe
from practicum.sandboxes.box import Box
from practicum.sandboxes.cgroups import Cgroups
from practicum.sandboxes.contract import BoxSpec, Capability, Sandbox, Snapshot, SnapshotId, SnapshotStore
from practicum.sandboxes.disks import Frozen
from practicum.sandboxes.janitor import reconcile, start_sidecar
from practicum.sandboxes.launch import Bubblewrap, Runtime, sandbox_user
from practicum.sandboxes.layering.build import build_layer
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.means import LimitsBy, capabilities_of, filter_file, groups, start_hub
from practicum.sandboxes.native import program_in
from practicum.sandboxes.oci_runtime import find_runtime
from practicum.sandboxes.ownership import Owner
from practicum.sandboxes.process import Host
from practicum.sandboxes.snapshots import MemorySnapshots

RuntimeName = Literal["bubblewrap", "runc", "runsc"]


class HostProvider:
    """A `SandboxProvider`. Made by `open_provider`."""

    def __init__(self, host: Host, capabilities: frozenset[Capability]) -> None:
        self._host = host
        self._boxes: dict[str, Box] = {}
        self._unmade: dict[Recipe, LayerFailed] = {}
        self.capabilities = capabilities
        self.name = host.runtime.name
        self.created = 0

    @property
    def host(self) -> Host:
        """What its boxes share, for who measures or watches them."""
        return self._host

    @property
    def snapshots(self) -> SnapshotStore:
        return self._host.snapshots

    @property
    def live(self) -> int:
        """How many boxes there are now."""
        return len(self._boxes)

    def layer_info(self, name: str | Recipe) -> dict[str, str]:
        """What to record about a layer: digest, interpreter version, origin."""
        return self._host.cache.layer_info(name)

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._create(spec)

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._fork(snapshot, spec)

    def release(self, snapshot: Snapshot) -> None:
        self._host.release(snapshot.id)

    @asynccontextmanager
    async def _fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        frozen: Frozen | str | None = snapshot if isinstance(snapshot, str) else self._host.frozen.get(snapshot.id)
        if frozen is None:
            raise CreateFailed(f"cannot fork: there is no snapshot {snapshot}")
        stacks = frozen if isinstance(frozen, Frozen) else None
        if isinstance(frozen, str):
            try:
                spec = replace(spec, files=self._host.snapshots.get(frozen))
            except StoreError as error:
                raise CreateFailed(f"cannot fork: {error.message}") from error
        async with self._create(spec, stacks) as box:
            yield box

    @asynccontextmanager
    async def _create(self, spec: BoxSpec, frozen: Frozen | None = None) -> AsyncIterator[Sandbox]:
        name = _box_name(spec.create_id)
        if name in self._boxes:
            raise CreateFailed(f"there is a living box for create_id {spec.create_id!r} already")
        if not self._host.hub.alive:
            raise CreateFailed("the process that starts boxes has ended; all of them have ended with it")
        box = Box(name, spec, self._host, self._forget)
        self._boxes[name] = box
        self.created += 1
        try:
            if isinstance(spec.layer, Recipe):
                await self._make_layer(spec.layer)
            await box.start(frozen)
            yield box
        finally:
            await _finish(box)

    async def _make_layer(self, recipe: Recipe) -> None:
        """Make a layer, or say at once what it said the first time that it could not be made."""
        if failure := self._unmade.get(recipe):
            raise failure
        try:
            await build_layer(self._host.cache, self, recipe)
        except LayerFailed as error:
            self._unmade[recipe] = error
            raise

    def _forget(self, box: Box) -> None:
        self._boxes.pop(box.id, None)

    async def close(self) -> None:
        """End all boxes."""
        await asyncio.gather(*(_finish(box) for box in list(self._boxes.values())))


async def _finish(box: Box) -> None:
    """Close, and do so to the end even when the caller is cancelled meanwhile."""
    closing = asyncio.ensure_future(box.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise


def _box_name(create_id: str) -> str:
    """A name for folders and records: readable, and as distinct as the id."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", create_id)[:60]
    if plain and plain == create_id:
        return plain
    digest = hashlib.sha256(create_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain or 'box'}-{digest[:8]}"


@contextmanager
def _runtime(name: RuntimeName, cache: LayerCache, owner: Owner, cgroups: Cgroups | None) -> Iterator[Runtime]:
    """The runtime of that name, with a folder for what it keeps about boxes."""
    if name == "bubblewrap":
        yield Bubblewrap()
        return
    folder = cache.state / "boxes" / owner.id
    folder.parent.mkdir(exist_ok=True, mode=0o755)
    owner.folders([str(folder)])
    grouped = cgroups is not None and cgroups.version == 2
    try:
        yield find_runtime(name, folder, sandbox_user(), program_in(cache.root), grouped=grouped)
    finally:
        if folder.exists():
            shutil.rmtree(folder)


@contextmanager
def _owned(cache: LayerCache, run_id: str, limits_by: LimitsBy, ttl_s: float) -> Iterator[tuple[Owner, Cgroups | None]]:
    """A record of this process and its control groups, for as long as the block takes."""
    owner = Owner(cache.state, run_id, ttl_s)
    cgroups: Cgroups | None = None
    sidecar = start_sidecar(owner.path)
    try:
        cgroups = groups(limits_by, owner)
        yield owner, cgroups
    finally:
        if cgroups is not None:
            cgroups.remove()
        owner.close()
        assert sidecar.stdin is not None
        sidecar.stdin.close()
        sidecar.wait(10.0)


@asynccontextmanager
async def open_provider(
    *,
    run_id: str = "adhoc",
    limits_by: LimitsBy = "cgroup",
    cache: LayerCache | None = None,
    snapshots: SnapshotStore | None = None,
    runtime: RuntimeName = "bubblewrap",
    stacks: bool = True,
    box_ttl_s: float = 3600.0,
    owner_ttl_s: float = 7 * 86400.0,
) -> AsyncIterator[HostProvider]:
    """A provider whose boxes are run by this process, by bubblewrap, runc or gVisor's runsc.

    `limits_by`: `cgroup` limits the box as a whole; `rlimit` each process; `cgroup-or-rlimit` the first where it
    can be had. `stacks=False` copies files even where they could be stacked. A box older than `box_ttl_s` is ended by
    the sidecar, whatever its owner does.
    Raises `UnsupportedControl` (and its `fix`) where the runtime, the filter or the limits cannot be had.
    """
    if limits_by not in ("cgroup", "rlimit", "cgroup-or-rlimit"):
        raise ConfigError(f"sandbox.limits_by = {limits_by!r}", fix='use "cgroup", "rlimit" or "cgroup-or-rlimit"')
    cache = cache or LayerCache()
    user, filter_path = sandbox_user(), filter_file(cache)
    reconcile(cache.state)
    with (
        _owned(cache, run_id, limits_by, owner_ttl_s) as (owner, cgroups),
        _runtime(runtime, cache, owner, cgroups) as maker,
    ):
        hub, disks = start_hub(cache, user, stacks=stacks and maker.follows)
        host = Host(
            maker, hub, user, filter_path, cache, snapshots or MemorySnapshots(), owner, cgroups, disks, box_ttl_s
        )
        provider = HostProvider(host, capabilities_of(maker, cgroups, disks))
        try:
            yield provider
        finally:
            closing = asyncio.ensure_future(provider.close())
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                await closing
                raise
            finally:
                hub.close()
