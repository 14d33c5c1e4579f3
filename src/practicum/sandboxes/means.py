"""What this host can offer to boxes: control groups, the system-call filter, a hub that stacks files.

Owns: `groups`, `filter_file`, `start_hub`, `capabilities_of`.
Invariant: what is offered was tried; what cannot be had is named, or claimed by nobody.
Must not know: boxes.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal

from practicum.errors import UnsupportedControl
from practicum.sandboxes.cgroups import Cgroups, CgroupsMissing, find_cgroups
from practicum.sandboxes.contract import Capability
from practicum.sandboxes.disks import Disks
from practicum.sandboxes.hub import Hub, HubRefused
from practicum.sandboxes.launch import Runtime
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.native import program_in
from practicum.sandboxes.ownership import Owner
from practicum.sandboxes.seccomp import seccomp_filter

LimitsBy = Literal["cgroup", "rlimit", "cgroup-or-rlimit"]
_ALWAYS: frozenset[Capability] = frozenset(
    {"isolation", "lasting", "no-network", "disk-limit", "snapshot", "fork", "reset", "warm"}
)
_BY_GROUPS: frozenset[Capability] = frozenset({"memory-limit", "pids-limit", "cpu-limit", "oom-report"})
_BY_STACKS: frozenset[Capability] = frozenset({"copy-on-write"})


def groups(limits_by: LimitsBy, owner: Owner) -> Cgroups | None:
    if limits_by == "rlimit":
        return None
    try:
        return find_cgroups(owner.id, owner.groups)
    except CgroupsMissing as error:
        if limits_by == "cgroup-or-rlimit":
            return None
        raise UnsupportedControl(
            f"limits by control groups cannot be had here ({error})",
            fix="run as root or in a delegated group (systemd-run --user --scope -p Delegate=yes …), or set "
            'limits_by = "rlimit" (in a configuration, under [sandbox]) to be content with limits for each process',
        ) from error


def filter_file(cache: LayerCache) -> str:
    """The system-call filter as a file, for the runtime to read."""
    program = seccomp_filter()
    if program is None:
        raise UnsupportedControl("there is no system-call filter for this machine's architecture yet")
    target = cache.root / "layers" / f"seccomp-{hashlib.sha256(program).hexdigest()[:16]}.bpf"
    if not target.exists():
        temporary = target.with_suffix(f".{id(program)}.new")
        temporary.write_bytes(program)
        temporary.replace(target)
    return str(target)


def start_hub(cache: LayerCache, user: int, *, stacks: bool) -> tuple[Hub, Disks | None]:
    """A hub, and disks by it where `stacks` are wanted and this kernel can stack files; else without.

    Found out by stacking some: a folder is removed and made again above another, which takes attributes that file
    systems in memory have from Linux 6.6 on.
    """
    program, folder = program_in(cache.root), cache.root / "hub"
    folder.mkdir(exist_ok=True, mode=0o755)
    if stacks:
        try:
            hub = Hub(program, folder, user)
        except HubRefused:
            return Hub(program, folder, user, stacks=False), None
        try:
            hub.do(_PROBE)
        except HubRefused:
            hub.close()
            return Hub(program, folder, user, stacks=False), None
        hub.clear(["probe"])
        return hub, Disks(hub)
    return Hub(program, folder, user, stacks=False), None


_PROBE = (
    ("D", "probe", ""),
    ("T", "probe", "mode=755,size=1m"),
    *(("D", f"probe/{name}", "") for name in ("lower", "lower/x", "upper", "work", "top")),
    ("O", "probe/top", "userxattr,volatile,lowerdir=probe/lower,upperdir=probe/upper,workdir=probe/work"),
    ("R", "probe/top/x", ""),
    ("D", "probe/top/x", ""),
)


def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", Path("/proc/sys/kernel/osrelease").read_text())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def capabilities_of(runtime: Runtime, cgroups: Cgroups | None, disks: Disks | None) -> frozenset[Capability]:
    found = _ALWAYS | (_BY_GROUPS if cgroups else frozenset()) | (_BY_STACKS if disks else frozenset())
    if cgroups is None and _kernel() >= (5, 14):  # from then on RLIMIT_NPROC counts within a user namespace
        found |= {"pids-limit"}
    return found - runtime.lacks
