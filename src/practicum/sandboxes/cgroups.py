"""Limits for a whole box by control groups, version 1 or 2, found by doing.

Owns: `Cgroups` (one folder per owner, one below it per box), killing and removing such folders.
Invariant: `find_cgroups` returns only what really took a limit; what cannot be had is named, never skipped.
Must not know: bubblewrap. Imports little, since the janitor's process starts with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable

_ROOT = "/sys/fs/cgroup"
_PERIOD_US = 100_000
_MARGIN = 1 << 20
_V2_CONTROLLERS = ("memory", "pids", "cpu")


class CgroupsMissing(Exception):
    """Why control groups cannot be used here."""


class BoxCgroup:
    """The groups of one box. `folders` holds one per hierarchy."""

    def __init__(self, folders: list[str], memory: str, pids: str, version: int) -> None:
        self.folders = folders
        self._memory = memory
        self._pids = pids
        self._version = version
        self._events = -1  # open while the box is in use: it is read after every command

    @property
    def procs_files(self) -> list[str]:
        """Files to which a process writes its number to join."""
        return [f"{folder}/cgroup.procs" for folder in self.folders]

    def limit_pids(self, most: int) -> None:
        """From now on; what there is already stays."""
        _write(f"{self._pids}/pids.max", str(most))

    def oom_kills(self) -> int:
        """How many processes of the box were killed for memory so far, for want of it in the box or on the host."""
        return self._event("oom_kill")

    def was_full(self) -> bool:
        """Whether the box ever needed more memory than its limit."""
        if self._version == 1:
            # The count of failures stands still in newer kernels. A charge is of several pages, hence the margin.
            limit, most = (int(_read(f"{self._memory}/memory.{name}_in_bytes") or 0) for name in ("limit", "max_usage"))
            return most >= limit - _MARGIN
        return self._event("oom") > 0

    def _event(self, name: str) -> int:
        file = "memory.oom_control" if self._version == 1 else "memory.events"
        try:
            if self._events < 0:
                self._events = os.open(f"{self._memory}/{file}", os.O_RDONLY | os.O_CLOEXEC)
            text = os.pread(self._events, 4096, 0).decode()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
            return 0  # the janitor has ended the box, and removed its group
        for line in text.splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
        return 0

    def close(self) -> None:
        """Nothing more is asked about it."""
        if self._events >= 0:
            os.close(self._events)
            self._events = -1


class Cgroups:
    """The owner's groups. `memory`, `pids` and `cpu` are folders, the same one in version 2."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version = version
        self._folders = folders

    @property
    def folders(self) -> list[str]:
        return list(dict.fromkeys(self._folders.values()))

    def create(self, name: str, *, memory_bytes: int, pids: int, cpus: float) -> BoxCgroup:
        """Groups for one box; OSError where a limit is refused."""
        values = limit_values(self.version, memory_bytes=memory_bytes, pids=pids, cpus=cpus)
        made: list[str] = []
        try:
            for parent in self.folders:
                os.mkdir(f"{parent}/{name}")  # noqa: PTH102  on the hot path of a box
                made.append(f"{parent}/{name}")
            for controller, file, value, required in values:
                target = f"{self._folders[controller]}/{name}/{file}"
                if required or os.path.exists(target):  # noqa: PTH110
                    _write(target, value)
        except OSError:
            remove_folders(made)
            raise
        return BoxCgroup(made, f"{self._folders['memory']}/{name}", f"{self._folders['pids']}/{name}", self.version)

    def remove(self) -> None:
        remove_folders(self.folders)


def limit_values(version: int, *, memory_bytes: int, pids: int, cpus: float) -> list[tuple[str, str, str, bool]]:
    """What to write: (controller, file, value, required), in order."""
    quota = max(1000, int(cpus * _PERIOD_US))
    if version == 1:
        return [
            ("memory", "memory.limit_in_bytes", str(memory_bytes), True),
            ("memory", "memory.memsw.limit_in_bytes", str(memory_bytes), False),
            ("pids", "pids.max", str(pids), True),
            ("cpu", "cpu.cfs_period_us", str(_PERIOD_US), True),
            ("cpu", "cpu.cfs_quota_us", str(quota), True),
        ]
    return [
        ("memory", "memory.max", str(memory_bytes), True),
        ("memory", "memory.swap.max", "0", False),
        ("pids", "pids.max", str(pids), True),
        ("cpu", "cpu.max", f"{quota} {_PERIOD_US}", True),
    ]


def find_cgroups(owner: str, announce: Callable[[list[str]], None] = lambda folders: None) -> Cgroups:
    """Groups named `practicum-<owner>` that take limits; `CgroupsMissing` says what is in the way.

    `announce` is told the folders before they are made, so that it can write down whose they are.
    """
    problems: list[str] = []
    for version, bases in _candidates():
        folders: dict[str, str] = {}
        wanted = {controller: f"{base}/practicum-{owner}" for controller, base in bases.items()}
        announce(list(dict.fromkeys(wanted.values())))
        try:
            for controller, folder in wanted.items():
                if version == 2:
                    _delegate(bases[controller])
                os.makedirs(folder, exist_ok=True)  # noqa: PTH103
                if version == 2:
                    _write(f"{folder}/cgroup.subtree_control", " ".join(f"+{c}" for c in _V2_CONTROLLERS))
                folders[controller] = folder
            groups = Cgroups(version, folders)
            probe = groups.create("probe", memory_bytes=64 << 20, pids=16, cpus=1.0)
            remove_folders(probe.folders)
            return groups
        except OSError as error:
            problems.append(f"version {version}: {error.filename or 'write'}: {error.strerror}")
            remove_folders(list(dict.fromkeys(folders.values())))
    raise CgroupsMissing("; ".join(problems) or "no memory, pids and cpu controllers are mounted")


def _candidates() -> list[tuple[int, dict[str, str]]]:
    """Where groups could be made: (version, controller → folder), best first."""
    mounts: dict[str, tuple[str, str]] = {}  # controller, or "" for version 2 → (mount point, root of the mount)
    for line in _read("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2":
            mounts.setdefault("", (point, root))
        elif kind == "cgroup":
            for option in options.split(","):
                mounts.setdefault(option, (point, root))
    own: dict[str, str] = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path

    def place(controller: str) -> str:
        point, root = mounts[controller]
        path = own.get(controller, "/")
        inner = path[len(root) :] if root != "/" and path.startswith(root) else path
        folder = point + inner.rstrip("/")
        return folder if os.path.isdir(folder) else point  # noqa: PTH112

    found: list[tuple[int, dict[str, str]]] = []
    if all(c in mounts for c in _V2_CONTROLLERS):
        found.append((1, {c: place(c) for c in _V2_CONTROLLERS}))
    if "" in mounts and set(_V2_CONTROLLERS) <= set(_read(f"{mounts[''][0]}/cgroup.controllers").split()):
        bases = [place("")]
        if os.geteuid() == 0:  # groups with processes cannot have limited children, except the topmost
            bases.insert(0, mounts[""][0])
        found += [(2, dict.fromkeys(_V2_CONTROLLERS, base)) for base in dict.fromkeys(bases)]
    return found


def _delegate(base: str) -> None:
    """Let children of `base` have limits. A delegated group must first be emptied: we move to a leaf of it."""
    control = f"{base}/cgroup.subtree_control"
    wanted = [c for c in _V2_CONTROLLERS if c not in _read(control).split()]
    if not wanted:
        return
    try:
        _write(control, " ".join(f"+{c}" for c in wanted))
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EOPNOTSUPP):
            raise
        leaf = f"{base}/practicum-host"
        os.makedirs(leaf, exist_ok=True)  # noqa: PTH103
        _write(f"{leaf}/cgroup.procs", str(os.getpid()))
        _write(control, " ".join(f"+{c}" for c in wanted))


def pids_in(folders: list[str]) -> set[int]:
    """Processes in the groups and everything below them."""
    found: set[int] = set()
    for folder in folders:
        for place, _, _ in os.walk(folder):
            found.update(int(line) for line in _read(f"{place}/cgroup.procs").split())
    return found


def kill_folders(folders: list[str], timeout_s: float = 5.0) -> bool:
    """Kill everything in the groups; whether they are empty now."""
    deadline = time.monotonic() + timeout_s
    while pids := pids_in(folders):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def remove_folders(folders: list[str], timeout_s: float = 2.0) -> list[str]:
    """Remove groups and what is below them; those that are still there after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    left = [place for folder in folders for place, _, _ in os.walk(folder, topdown=False)]
    while True:
        left = [place for place in left if not _remove(place)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.005)


def _remove(folder: str) -> bool:
    try:
        os.rmdir(folder)  # noqa: PTH106
    except FileNotFoundError:
        return True
    except OSError:  # busy: the last process has not been taken out of it yet
        return False
    return True


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):  # the latter where a group goes while it is read
            raise
        return ""


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, value.encode())
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)
