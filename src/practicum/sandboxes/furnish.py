"""What is mounted in a box, from its specification.

Owns: `furnish`, `Furnished`.
Invariant: a box sees its layer, its own writable places and what the specification names, and nothing else; a place
that cannot be had is refused before anything is started.
Must not know: processes, the wire, which runtime mounts.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import CreateFailed, UnsupportedControl
from practicum.records.task import MIB
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.disks import Disk, Place
from practicum.sandboxes.hub import Slots
from practicum.sandboxes.launch import PROGRAM, Mount, check_place
from practicum.sandboxes.layers import Layer, LayerCache
from practicum.sandboxes.native import program_in
from practicum.sandboxes.process import Host

_STICKY = 0o1777
# Below these nothing can be started, or the kernel takes the number for "without limit".
_LEAST = {"cpus": 0.01, "memory_bytes": 4 * MIB, "pids": 1, "disk_bytes": 1 << 16, "output_bytes": 0}
_USERS = ("agent", "root")


@dataclass(frozen=True, slots=True)
class Furnished:
    """What a box is started with. `disk` is None where the runtime makes the writable places, which are then empty."""

    layer: Layer
    mounts: tuple[Mount, ...]
    slots: Slots | None
    disk: Disk | None
    env: dict[str, str]


def furnish(spec: BoxSpec, host: Host) -> Furnished:
    """Everything a box of `spec` sees. Raises `UnsupportedControl` or `CreateFailed`."""
    _check(spec)
    layer = host.cache.layer(spec.layer)
    for place in (spec.workdir, *spec.scratch, *spec.readonly, *spec.sockets):
        covered = any(place.startswith(part + "/") for part in layer.parts)
        if covered and not layer.at(place):
            raise CreateFailed(
                f"layer {layer.name!r} has nothing at {place!r}, and cannot be changed",
                fix="make it in the Dockerfile (WORKDIR does), or use another folder",
            )
    places = _places(spec, layer)
    fixed = {place: str(host.cache.readonly_tree(tree)) for place, tree in spec.readonly.items()}
    files, env = _processors(host.cache, spec.limits.cpus)
    files = {PROGRAM: str(program_in(host.cache.root))} | files
    env = dict(layer.env) | env | dict(spec.env)
    sockets = [Mount(place, source, writable=True) for place, source in spec.sockets.items()]
    if host.disks is None:
        mounts = [Mount(place, _single(folders)) for place, folders in layer.parts.items()]
        mounts += [_in_memory(place, spec) for place in places]
        mounts += [Mount(place, source) for place, source in (fixed | files).items()]
        return Furnished(layer, (*mounts, *sockets), None, None, env)
    places += [Place(place, fixed=folder) for place, folder in fixed.items()]
    disk = host.disks.new(places, spec.limits.disk_bytes)
    if not (spec.profile.readonly_root and spec.profile.own_filesystem):  # these take a root of their own
        slots, shown = disk.show("")
        mounts = [Mount(place, _single(folders)) for place, folders in layer.parts.items()]
        mounts += [*shown, *(Mount(place, source) for place, source in files.items())]
        return Furnished(layer, (*mounts, *sockets), slots, disk, env)
    late = {place: source for place, source in files.items() if place.startswith("/proc/")}
    early = {place: source for place, source in files.items() if place not in late} | dict.fromkeys(spec.sockets, "")
    root = host.disks.roots.root(layer, [place.path for place in places if not place.path.startswith("/dev/")], early)
    slots, shown = disk.show(root)
    mounts = [Mount("/", f"{host.hub.folder}/{root}"), *shown]
    mounts += [Mount(place, source) for place, source in late.items()]
    return Furnished(layer, (*mounts, *sockets), slots, disk, env)


def _check(spec: BoxSpec) -> None:
    for name, least in _LEAST.items():
        if not getattr(spec.limits, name) >= least:
            raise UnsupportedControl(
                f"limits.{name} = {getattr(spec.limits, name)} is less than a box needs", fix=f"at least {least}"
            )
    if spec.user not in _USERS:
        raise UnsupportedControl(f"user {spec.user!r}: a box has only {' and '.join(_USERS)}")
    check_place(spec.workdir, "workdir")
    for what, places in (
        ("read-only folder", spec.readonly),
        ("scratch folder", spec.scratch),
        ("socket", spec.sockets),
    ):
        for place in places:
            check_place(place, what)
    every = [spec.workdir, *spec.readonly, *spec.scratch]
    for place in every:
        if inner := [other for other in every if other.startswith(place + "/")]:
            raise UnsupportedControl(f"{inner[0]!r} lies within {place!r}", fix="use a folder outside of it")
    for place, source in spec.sockets.items():
        if not Path(source).is_socket():
            raise UnsupportedControl(f"socket {place!r}: {source!r} is not a unix socket of this host")
    for place, folder in spec.keep.items():
        if not Path(folder).is_dir() or os.listdir(folder):  # noqa: PTH208
            raise UnsupportedControl(f"what changes at {place!r} cannot be kept in {folder!r}: not an empty folder")


def _places(spec: BoxSpec, layer: Layer) -> list[Place]:
    """The writable places, each once."""
    modes = {spec.workdir: 0o755} | dict.fromkeys(spec.scratch, 0o755) | {"/tmp": _STICKY, "/dev/shm": _STICKY}
    modes |= dict.fromkeys(spec.keep, 0o755)
    return [
        Place(path, layer.folders_at(path), mode, spec.keep.get(path, ""), frozen=path != "/dev/shm")
        for path, mode in modes.items()
    ]


def _in_memory(place: Place, spec: BoxSpec) -> Mount:
    """A place where files are copied instead of stacked."""
    if place.lowers or place.keep:
        raise UnsupportedControl(
            f"{place.path!r} holds files of the layer, and this host cannot stack files",
            fix="see `practicum doctor`: overlay mounts in user namespaces need Linux 6.6 or newer",
        )
    return Mount(place.path, "", writable=True, size=spec.limits.disk_bytes, mode=place.mode)


def _single(folders: tuple[str, ...]) -> str:
    if len(folders) == 1:
        return folders[0]
    raise UnsupportedControl(
        "this layer is a stack of folders, which cannot be stacked for this box",
        fix="see `practicum doctor`: overlay mounts in user namespaces need Linux 6.6 or newer",
    )


def _processors(cache: LayerCache, cpus: float) -> tuple[dict[str, str], dict[str, str]]:
    """Show as many processors as the limit allows to who asks by file or variable; affinity stays the host's."""
    count = max(1, math.ceil(cpus))
    if count >= (os.cpu_count() or 1):
        return {}, {}
    blocks = Path("/proc/cpuinfo").read_text().split("\n\n")[:count]
    # Speeds change from one moment to the next, and would make a new folder each time.
    lines = [
        line for line in "\n\n".join(blocks).splitlines() if not line.startswith(("cpu MHz", "bogomips", "BogoMIPS"))
    ]
    online = f"0-{count - 1}\n" if count > 1 else "0\n"
    tree = {"cpuinfo": File(("\n".join(lines) + "\n\n").encode(), 0o444), "online": File(online.encode(), 0o444)}
    folder = cache.readonly_tree(tree)
    shown = {"/proc/cpuinfo": f"{folder}/cpuinfo", "/sys/devices/system/cpu/online": f"{folder}/online"}
    return shown, {"OMP_NUM_THREADS": str(count), "PYTHON_CPU_COUNT": str(count)}
