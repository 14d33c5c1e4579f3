"""Probes of the file system: what can be written, what of the host can be found, devices, kernel settings.

Invariant: what is the host's, or the kernel's, is opened for writing and never written.
Must not know: how the box was made.
"""

import errno
import os
import socket
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .registry import REFUSALS, UNREACHED, Attempt, Facts, Finding, blocked, judge, opened, opens, probe

_GROUP = "files"
_HOST = "code reaches files of the host"
_SETTINGS = "code changes the host's kernel or devices"
_HARMLESS = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2)}  # null zero full random urandom tty


def _creates(folder: str) -> tuple[str, Callable[[], object]]:
    def attempt() -> object:
        path = f"{folder.rstrip('/')}/.audit-{os.getpid()}"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(path)
        return None

    return folder, attempt


@probe("P40", _GROUP, "make a file outside the writable places", "EROFS, EACCES or EPERM", threat=_HOST)
def write_outside(facts: Facts) -> Finding:
    folders = ["/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/opt", "/opt/practicum", "/bin", "/var", "/home", "/dev"]
    found = [folder for folder in [*folders, "/proc", "/sys", "/root", *facts["host_roots"]] if os.path.isdir(folder)]
    return judge([_creates(folder) for folder in found])


def _roots(facts: Facts) -> list[str]:
    return ["", *facts["host_roots"]]


@probe("P41", _GROUP, "find files of the host: homes, keys, passwords, a marked file", "ENOENT or EACCES", threat=_HOST)
def host_files(facts: Facts) -> Finding:
    names = [facts["canary"], "/etc/shadow", "/etc/ssh", "/root/.ssh", "/etc/machine-id", "/var/log", "/boot"]
    attempts = [(root + name, partial(_peek, root + name)) for root in _roots(facts) for name in names]
    homes = [(root + "/home", partial(_entries, root + "/home")) for root in _roots(facts)]
    return judge(attempts + homes)


def _peek(path: str) -> None:
    if os.path.isdir(path):
        _entries(path)
    else:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def _entries(path: str) -> None:
    """A folder without entries is as good as none."""
    if not os.listdir(path):
        raise FileNotFoundError(errno.ENOENT, "empty")


@probe("P42", _GROUP, "reach sockets of the host: container runtimes, buses, a marked one", "ENOENT", threat=_HOST)
def host_sockets(facts: Facts) -> Finding:
    names = [
        "docker.sock",
        "containerd/containerd.sock",
        "crio/crio.sock",
        "podman/podman.sock",
        "dbus/system_bus_socket",
    ]
    paths = [f"{folder}/{name}" for folder in ("/run", "/var/run") for name in [*names, "systemd/private"]]
    attempts = []
    for root in _roots(facts):
        for path in (*paths, facts["unix_socket"]):
            attempts.append((root + path, partial(_connects, root + path)))
    return judge(attempts, refusals=REFUSALS | UNREACHED | {errno.ENOTDIR})


def _connects(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(0.5)
        client.connect(path)


@probe("P43", _GROUP, "find a device beyond the harmless ones", "null, zero, random, tty only", threat=_SETTINGS)
def devices_present(facts: Facts) -> Finding:
    odd, seen = [], 0
    for folder in facts["device_folders"]:
        for name in sorted(os.listdir(folder)):
            status = os.lstat(f"{folder}/{name}")
            if not stat.S_ISCHR(status.st_mode) and not stat.S_ISBLK(status.st_mode):
                continue
            seen += 1
            number = (os.major(status.st_rdev), os.minor(status.st_rdev))
            if stat.S_ISBLK(status.st_mode) or number not in _HARMLESS:
                odd.append(name)
    return opened(f"also {', '.join(odd[:8])}") if odd else blocked(f"{seen} devices, all harmless")


@probe("P44", _GROUP, "make device nodes; open memory, disks, kvm, fuse", "EPERM, EACCES or ENOENT", threat=_SETTINGS)
def devices_opened(facts: Facts) -> Finding:
    def node(kind: int, major: int, minor: int) -> Callable[[], object]:
        def attempt() -> object:
            path = f"/tmp/audit-node-{major}-{minor}"
            os.mknod(path, kind | 0o600, os.makedev(major, minor))
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # a node that does not open is of no use
            finally:
                os.unlink(path)
            return None

        return attempt

    made = [("mknod of memory", node(stat.S_IFCHR, 1, 1)), ("mknod of a disk", node(stat.S_IFBLK, 254, 0))]
    return judge(made + [(path, opens(path, os.O_RDWR)) for path in facts["devices"]])


@probe("P45", _GROUP, "open kernel settings for writing", "EACCES or EROFS", threat=_SETTINGS)
def kernel_settings(facts: Facts) -> Finding:
    return judge([(path, opens(path, os.O_WRONLY)) for path in facts["settings"]])


@probe(
    "P46", _GROUP, "open the magic key, kernel memory and the cache drop", "EACCES, EROFS or ENOENT", threat=_SETTINGS
)
def kernel_triggers(facts: Facts) -> Finding:
    writes = [(path, opens(path, os.O_WRONLY)) for path in facts["triggers"]]
    return judge([*writes, *((path, opens(path, os.O_RDONLY)) for path in facts["kernel_memory"])])


@probe("P47", _GROUP, "find a control-group tree: limits, release agent", "ENOENT, EROFS or EACCES", threat=_SETTINGS)
def control_groups(facts: Facts) -> Finding:
    roots = _roots(facts)
    attempts = [(root + path, opens(root + path, os.O_WRONLY)) for root in roots for path in facts["cgroup_files"]]
    return judge([*attempts, *((f"{root}/sys/fs/cgroup", _creates(f"{root}/sys/fs/cgroup")[1]) for root in roots)])


@probe("P48", _GROUP, "read kernel file systems: sysfs, debugfs, firmware", "ENOENT or EACCES", threat=_SETTINGS)
def kernel_file_systems(facts: Facts) -> Finding:
    return judge([(path, partial(_entries, path)) for path in facts["kernel_folders"]])


@probe("P49", _GROUP, "leave its root by links, `..` and /proc", "the host's marked file is not found", threat=_HOST)
def links_out(facts: Facts) -> Finding:
    canary = facts["canary"]
    link = f"/tmp/audit-link-{os.getpid()}"
    os.symlink("../" * 40 + canary.lstrip("/"), link)
    Path("/tmp/audit-depth/a/b").mkdir(parents=True, exist_ok=True)
    places = ["/proc/1/root", "/proc/self/root", "/proc/1/cwd/../../..", "/proc/thread-self/root", "/tmp/../../../.."]
    places += [f"{root}/proc/1/root" for root in facts["host_roots"]] + list(facts["host_roots"])
    attempts: list[Attempt] = [(place, partial(os.stat, place + canary)) for place in places]
    attempts.append(("a link", lambda: os.stat(link)))
    for name in os.listdir("/proc"):
        if name.isdigit():
            attempts.append((f"/proc/{name}/root", partial(os.stat, f"/proc/{name}/root{canary}")))
    return judge(attempts, refusals=REFUSALS | {errno.ESRCH})


@probe(
    "P50",
    "judge",
    "change a read-only folder laid into the box",
    "EROFS or EACCES for each way",
    threat="the agent changes the tests",
)
def readonly_folder(facts: Facts) -> Finding:
    folder = facts["readonly"]
    file = f"{folder}/{facts['readonly_file']}"
    return judge(
        [
            _creates(folder),
            ("append", opens(file, os.O_WRONLY | os.O_APPEND)),
            ("truncate", lambda: os.truncate(file, os.stat(file).st_size)),
            ("change of mode", lambda: os.chmod(file, 0o755)),
            ("rename", lambda: os.rename(file, f"{folder}/renamed")),
            ("deletion", lambda: os.rmdir(f"{folder}/{facts['readonly_folder']}")),
            ("link over it", lambda: os.symlink("/tmp", f"{folder}/link")),
            ("times", lambda: os.utime(file)),
        ],
        refusals=REFUSALS,
    )


@probe(
    "P51",
    "judge",
    "put a program before the judge's own on PATH",
    "no folder of PATH can be written",
    threat="the submission configures the judge",
)
def program_path(facts: Facts) -> Finding:
    path = facts["path"] or os.environ["PATH"]
    return judge([_creates(folder) for folder in path.split(":") if folder])
