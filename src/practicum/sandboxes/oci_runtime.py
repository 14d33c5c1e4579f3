"""Boxes by an OCI runtime: runc, or gVisor's runsc, which puts a kernel of its own beneath the box.

Owns: `Runc`, `Runsc`, `find_runtime`, the folder in which each box's bundle and state are.
Invariant: the runtime runs as the sandbox's user, never as root; what it keeps about a box lies in one folder of that
box, and goes with it; what a runtime cannot honour is refused by name before anything is written.
Must not know: the wire, how control groups are made, disks.

Both are run detached, beneath the native program's `hold`, which adopts what the runtime leaves running and ends when
that has ended. Otherwise the runtime itself, a program of ten threads and as many megabytes, would live and be counted
as long as the box does, and break when the box has used up the processes that are allowed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from practicum.errors import CreateFailed, SandboxError, UnsupportedControl
from practicum.sandboxes.contract import BoxSpec, Capability
from practicum.sandboxes.launch import AGENT, PROGRAM, Mount
from practicum.sandboxes.layers import Layer
from practicum.sandboxes.oci_config import DEVICES, OWN_ROOT, USER_IDS, Config, runc_config, runsc_config
from practicum.sandboxes.profile import Profile
from practicum.sandboxes.trial import try_runtime

_FILTER_FD = "3"  # where a box's first program finds the system-call filter: `hold` has put it there
_UNIFIED = "/sys/fs/cgroup/cgroup.controllers"
_DELETE_S = 10.0
_OLDEST_RUNC = (1, 1)
_SYSTRAP_SINCE = 20230801  # older builds of gVisor have no platform that works everywhere but ptrace
# The processes of the host are its own threads, and seconds of cpu are counted by its own clock.
_GVISOR_LACKS: frozenset[Capability] = frozenset({"pids-limit", "cpu-limit", "oom-report"})
_DEV_LINKS = (
    ("pts/ptmx", "dev/ptmx"),
    ("/proc/self/fd", "dev/fd"),
    *((f"/proc/self/fd/{number}", f"dev/std{name}") for number, name in enumerate(("in", "out", "err"))),
)
_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FIX = {
    "runc": "apt-get install runc (or your distribution's package of that name)",
    "runsc": "apt-get install runsc, or see https://gvisor.dev/docs/user_guide/install",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A runtime's program, and the words with which it names its version."""

    path: str
    version: str


def find_program(name: str, places: str = "") -> Found:
    """The program of an OCI runtime, by running it; `UnsupportedControl` where there is none that runs.

    `places` are folders joined by colons: the usual ones and those of PATH, if none are given.
    """
    path = shutil.which(name, path=places or f"{_PLACES}:{os.environ.get('PATH', '')}")
    if path is None:
        raise UnsupportedControl(f"{name} is not installed", fix=_FIX.get(name, f"install {name}"))
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=10, check=True, env={}, cwd="/")
    except (OSError, subprocess.SubprocessError) as error:
        raise UnsupportedControl(f"{path} does not run: {error}", fix=_FIX.get(name, f"install {name}")) from error
    words = re.search(rb"version (\S+)", done.stdout)
    return Found(path, words[1].decode() if words else "unknown")


@dataclass(slots=True)
class _Bundles:
    """A folder for each box: `config.json`, `rootfs`, `dev` and `state`, of which all but the first are `user`'s."""

    folder: Path
    user: int

    def create(self, box: str, layer: Layer, mounts: Sequence[Mount], config: Config) -> None:
        """Write a bundle; `CreateFailed` where it cannot be, or something is left of a box of that name."""
        place = self.folder / box
        try:
            place.mkdir(parents=True)
            place.chmod(0o755)
            for name in (OWN_ROOT, "state", "dev"):
                (place / name).mkdir()
            for target, link in (*((target, f"{OWN_ROOT}{link}") for target, link in layer.links), *_DEV_LINKS):
                (place / link).parent.mkdir(parents=True, exist_ok=True)
                (place / link).symlink_to(target)
            for name in DEVICES:
                (place / "dev" / name).touch()
            for name in ("/dev/pts", *(mount.place for mount in mounts if mount.place.startswith("/dev/"))):
                (place / name[1:]).mkdir()
            file = place / "config.json"
            file.write_text(json.dumps(config))
            file.chmod(0o644)
            self._give(place)
        except OSError as error:
            raise CreateFailed(f"the bundle of box {box} cannot be written: {error}") from error

    def _give(self, place: Path) -> None:
        """Folders open to be entered whatever the umask, and all of them the user's: the runtime adds to them."""
        for name in (OWN_ROOT, "state", "dev"):
            for path in (place / name, *(place / name).rglob("*")):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o755)
                if os.geteuid() != self.user:
                    os.chown(path, self.user, self.user, follow_symlinks=False)

    def remove(self, box: str) -> None:
        """Idempotent. Entries are removed without following links, whoever writes there."""
        place = self.folder / box
        if place.is_dir():
            shutil.rmtree(place)


@dataclass(slots=True)
class Runc:
    """The runtime of Docker and Kubernetes, without root.

    `folder` receives bundles; `user`, the uid that boxes run as on this host, must be able to enter it. `program` is
    the native program. `grouped` says whether boxes are put in control groups of version 2 that belong to `user`:
    runc would leave them for one beside them, without limits, were it not told to stay below. `starting_pids` is what
    it needs of processes while it makes a box; `lacks` names what cannot be limited or reported by this runtime.
    """

    found: Found
    folder: Path
    user: int
    program: Path
    grouped: bool = False
    name: Literal["runc"] = field(default="runc", init=False)
    follows: bool = field(default=True, init=False)
    lacks: frozenset[Capability] = field(default=frozenset(), init=False)
    starting_pids: int = field(default=24, init=False)

    def __post_init__(self) -> None:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.found.version)[:2])
        if numbers < _OLDEST_RUNC:
            raise UnsupportedControl(f"{self.found.path} {self.found.version} is older than 1.1", fix=_FIX["runc"])

    @property
    def version(self) -> str:
        return self.found.version

    @property
    def _may_regroup(self) -> bool:
        """Whether runc makes a control group where it can: as an ordinary user on a host of version 2."""
        return os.geteuid() == self.user and Path(_UNIFIED).exists()

    def argv(self, box: str, spec: BoxSpec, layer: Layer, mounts: Sequence[Mount], profile: Profile) -> list[str]:
        """Write the bundle, and give the whole command that runs it."""
        args: Sequence[str] = AGENT
        keep: Sequence[str] = ()
        if spec.user != "root":
            filter_fd = _FILTER_FD if profile.seccomp else "-"
            args = (PROGRAM, "become", str(USER_IDS[spec.user]), filter_fd, *AGENT)
            keep = ("--preserve-fds", "1") if profile.seccomp else ()
        place = self.folder / box
        config = runc_config(spec, mounts, profile, args, user=self.user, dev=f"{place}/dev")
        own_root = config["root"]["path"] == OWN_ROOT
        if self.grouped and profile.limits and self._may_regroup:
            config["linux"]["cgroupsPath"] = f"{box}/in"  # beside the group it is started in, which is the box's
        _Bundles(self.folder, self.user).create(box, layer, mounts, config)
        run = [self.found.path, "--root", f"{place}/state", "run", "--detach", *keep, "--bundle", str(place), box]
        return [str(self.program), "hold", f"{place}/{OWN_ROOT}" if own_root else "-", *run]

    def forget(self, box: str) -> None:
        """Remove the bundle and the state; the box has ended."""
        state = self.folder / box / "state"
        if self._may_regroup and not self.grouped and (state / box).exists():
            delete = [self.found.path, "--root", str(state), "delete", "--force", box]
            try:
                subprocess.run(delete, timeout=_DELETE_S, capture_output=True, check=True, env={}, cwd="/")
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxError(f"runc did not remove what is left of box {box}: {error}") from error
        _Bundles(self.folder, self.user).remove(box)


@dataclass(slots=True)
class Runsc:
    """gVisor. What the box does is done by a kernel in user space, which itself is confined.

    Parameters as of `Runc`. It sees nothing that is mounted later, so the writable places are in its own memory and
    files are copied. A box that needs more memory than it may have ends as a whole. Root can write in
    its /dev, which is in that memory too. Builds of 2022 let a command kill the first process of the box.
    """

    found: Found
    folder: Path
    user: int
    program: Path
    name: Literal["runsc"] = field(default="runsc", init=False)
    follows: bool = field(default=False, init=False)
    starting_pids: int = field(default=64, init=False)

    @property
    def _old(self) -> bool:
        built = re.search(r"20\d{6}", self.found.version)
        return built is not None and int(built[0]) < _SYSTRAP_SINCE

    @property
    def lacks(self) -> frozenset[Capability]:
        """Old builds let a command kill the first process of its box."""
        return _GVISOR_LACKS | {"lasting"} if self._old else _GVISOR_LACKS

    @property
    def version(self) -> str:
        return self.found.version

    def argv(self, box: str, spec: BoxSpec, layer: Layer, mounts: Sequence[Mount], profile: Profile) -> list[str]:
        """Write the bundle, and give the whole command that runs it."""
        place = self.folder / box
        _Bundles(self.folder, self.user).create(box, layer, mounts, runsc_config(spec, mounts, profile, AGENT))
        options = ["--rootless", "--network=none", "--ignore-cgroups", f"--root={place}/state", "--overlay2=none"]
        options += ["--platform=ptrace"] if self._old else []
        options += ["--oci-seccomp"] if profile.seccomp else []
        options += ["--host-uds=open"] if spec.sockets else []
        return [str(self.program), "hold", "-", self.found.path, *options, "run", "--detach", f"--bundle={place}", box]

    def forget(self, box: str) -> None:
        """Remove the bundle and the state; the box has ended."""
        _Bundles(self.folder, self.user).remove(box)


OCI_RUNTIMES = ("runc", "runsc")


def find_runtime(name: str, folder: Path, user: int, program: Path, *, grouped: bool = False) -> Runc | Runsc:
    """The OCI runtime of that name, proven by running an empty box. Parameters as of `Runc`.

    Raises `UnsupportedControl` with what to do where it is not installed, too old, or does not run a box here.
    """
    if name not in OCI_RUNTIMES:
        raise UnsupportedControl(f"there is no runtime {name!r}", fix=f"use one of {', '.join(OCI_RUNTIMES)}")
    found = find_program(name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    runtime = Runc(found, folder, user, program, grouped) if name == "runc" else Runsc(found, folder, user, program)
    try_runtime(runtime, found.path, program, user)
    return runtime
