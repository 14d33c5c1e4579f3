"""Boxes by bubblewrap on this host.

Owns: `open_bubblewrap`, `BubblewrapProvider`.
Invariant: when the provider's context ends, none of its boxes, groups or records is left; what it cannot
enforce it does not claim, and what was asked for and cannot be had is an error at once.
Must not know: tasks, rewards, policies.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from practicum.errors import ConfigError, CreateFailed, StoreError, UnsupportedControl
from practicum.sandboxes.box import BubblewrapBox
from practicum.sandboxes.cgroups import Cgroups, CgroupsMissing, find_cgroups
from practicum.sandboxes.contract import BoxSpec, Capability, Sandbox, SnapshotId, SnapshotStore
from practicum.sandboxes.janitor import reconcile, start_sidecar
from practicum.sandboxes.launch import check_place, drop_root, find_bwrap
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Owner
from practicum.sandboxes.process import Host
from practicum.sandboxes.seccomp import seccomp_filter
from practicum.sandboxes.snapshots import MemorySnapshots

LimitsBy = Literal["cgroup", "rlimit", "cgroup-or-rlimit"]
_ALWAYS: frozenset[Capability] = frozenset({"isolation", "no-network", "disk-limit", "snapshot", "fork"})
_BY_GROUPS: frozenset[Capability] = frozenset({"memory-limit", "pids-limit", "cpu-limit", "oom-report"})


class BubblewrapProvider:
    """A `SandboxProvider`. Made by `open_bubblewrap`."""

    name = "bubblewrap"

    def __init__(self, host: Host, capabilities: frozenset[Capability]) -> None:
        self._host = host
        self._boxes: dict[str, BubblewrapBox] = {}
        self.capabilities = capabilities
        self.created = 0

    @property
    def snapshots(self) -> SnapshotStore:
        return self._host.snapshots

    @property
    def live(self) -> int:
        """How many boxes there are now."""
        return len(self._boxes)

    def layer_info(self, name: str) -> dict[str, str]:
        """What to record about a layer: digest, interpreter version, origin."""
        return self._host.cache.layer_info(name)

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._create(spec)

    def fork(self, snapshot: SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._fork(snapshot, spec)

    @asynccontextmanager
    async def _fork(self, snapshot: SnapshotId, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        try:
            tree = self._host.snapshots.get(snapshot)
        except StoreError as error:
            raise CreateFailed(f"cannot fork: {error.message}") from error
        async with self._create(replace(spec, files=tree)) as box:
            yield box

    @asynccontextmanager
    async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        check_place(spec.workdir, "workdir")
        for place in spec.readonly:
            check_place(place, "read-only folder")
        for place in spec.scratch:
            check_place(place, "scratch folder")
        name = _box_name(spec.create_id)
        if name in self._boxes:
            raise CreateFailed(f"there is a living box for create_id {spec.create_id!r} already")
        box = BubblewrapBox(name, spec, self._host, self._forget)
        self._boxes[name] = box
        self.created += 1
        try:
            await box.start()
            yield box
        finally:
            await _finish(box)

    def _forget(self, box: BubblewrapBox) -> None:
        self._boxes.pop(box.id, None)

    async def close(self) -> None:
        """End all boxes."""
        await asyncio.gather(*(_finish(box) for box in list(self._boxes.values())))


async def _finish(box: BubblewrapBox) -> None:
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


def _groups(limits_by: LimitsBy, owner: Owner) -> Cgroups | None:
    if limits_by == "rlimit":
        return None
    try:
        return find_cgroups(owner.id)
    except CgroupsMissing as error:
        if limits_by == "cgroup-or-rlimit":
            return None
        raise UnsupportedControl(
            f"limits by control groups cannot be had here ({error})",
            fix="run as root or in a delegated group (systemd-run --user --scope -p Delegate=yes …), or set "
            'sandbox.limits_by = "rlimit" to be content with limits for each process',
        ) from error


def filter_file(cache: LayerCache) -> str:
    """The system-call filter as a file, for bubblewrap to read."""
    program = seccomp_filter()
    if program is None:
        raise UnsupportedControl("there is no system-call filter for this machine's architecture yet")
    target = cache.root / "layers" / f"seccomp-{hashlib.sha256(program).hexdigest()[:16]}.bpf"
    if not target.exists():
        temporary = target.with_suffix(f".{id(program)}.new")
        temporary.write_bytes(program)
        temporary.replace(target)
    return str(target)


def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", Path("/proc/sys/kernel/osrelease").read_text())
    return (int(found[1]), int(found[2])) if found else (0, 0)


@asynccontextmanager
async def open_bubblewrap(
    *,
    run_id: str = "adhoc",
    limits_by: LimitsBy = "cgroup",
    cache: LayerCache | None = None,
    snapshots: SnapshotStore | None = None,
    box_ttl_s: float = 3600.0,
    owner_ttl_s: float = 7 * 86400.0,
) -> AsyncIterator[BubblewrapProvider]:
    """A provider whose boxes are run by this process.

    `limits_by`: `cgroup` limits the box as a whole; `rlimit` each process; `cgroup-or-rlimit` the first where it
    can be had. A box older than `box_ttl_s` is ended by the sidecar, whatever its owner does.
    Raises `UnsupportedControl` (and its `fix`) where bubblewrap, the filter or the limits cannot be had.
    """
    if limits_by not in ("cgroup", "rlimit", "cgroup-or-rlimit"):
        raise ConfigError(f"sandbox.limits_by = {limits_by!r}", fix='use "cgroup", "rlimit" or "cgroup-or-rlimit"')
    cache = cache or LayerCache()
    bwrap, drop = find_bwrap(), tuple(drop_root())
    filter_path = filter_file(cache)
    reconcile(cache.state)
    owner = Owner(cache.state, run_id, owner_ttl_s)
    cgroups: Cgroups | None = None
    try:
        cgroups = _groups(limits_by, owner)
        if cgroups is not None:
            owner.groups(cgroups.folders)
        capabilities = _ALWAYS | (_BY_GROUPS if cgroups else frozenset())
        if cgroups is None and _kernel() >= (5, 14):  # from then on RLIMIT_NPROC counts within a user namespace
            capabilities |= {"pids-limit"}
        host = Host(bwrap, drop, filter_path, cache, snapshots or MemorySnapshots(), owner, cgroups, box_ttl_s)
        provider = BubblewrapProvider(host, capabilities)
        sidecar = start_sidecar(owner.path)
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
                if cgroups is not None:
                    cgroups.remove()
                owner.close()
                assert sidecar.stdin is not None
                sidecar.stdin.close()
                await asyncio.to_thread(sidecar.wait, 10.0)
    finally:
        if cgroups is not None:
            cgroups.remove()
        owner.close()
