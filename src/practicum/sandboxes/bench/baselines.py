"""The same box by the tools themselves: a hardened `bwrap … true`, `runc run`, `podman run`.

Owns: `Baseline`, `open_baselines`.
Invariant: each is started by the same harness, as the same user where the tool can, with what boxes of the same
specification are started with; one that does not run here is named with the reason, never guessed.
Must not know: how boxes are measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from practicum.errors import SandboxError, UnsupportedControl
from practicum.sandboxes.cgroups import remove_folders
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.furnish import furnish
from practicum.sandboxes.launch import AGENT, FILTER_FD, PROGRAM, Bubblewrap, Mount
from practicum.sandboxes.layers import Layer
from practicum.sandboxes.native import program_in
from practicum.sandboxes.oci_runtime import Runc, find_program
from practicum.sandboxes.process import Host

COMMAND = "/usr/bin/true"
_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """A tool that makes a box, runs `COMMAND` in it and removes it. `filter_fd` is passed on, read from its start."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    filter_fd: int = -1

    def run(self) -> None:
        """Once; `SandboxError` with its words if it fails."""
        passed: tuple[int, ...] = ()
        if self.filter_fd >= 0:
            os.lseek(self.filter_fd, 0, os.SEEK_SET)
            passed = (self.filter_fd,)
        try:
            done = subprocess.run(
                self.argv,
                env=self.env,
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=_DEADLINE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxError(f"{self.name}: {error}") from error
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise SandboxError(f"{self.name} ended with {done.returncode}: {' '.join(words[-1:])}")


@dataclass(frozen=True, slots=True)
class _Given:
    """What each is made from. `folder` is for what it keeps, `group` a control group for those that insist on one."""

    spec: BoxSpec
    host: Host
    layer: Layer
    mounts: tuple[Mount, ...]
    folder: Path
    group: str


@contextlib.contextmanager
def open_baselines(spec: BoxSpec, host: Host, group: str) -> Iterator[tuple[list[Baseline], dict[str, str]]]:
    """Those that run here, each tried once, and why the others do not. `SandboxError` if bubblewrap does not."""
    furnished = furnish(spec, replace(host, disks=None))  # writable places as the runtimes make them
    mounts = tuple(mount for mount in furnished.mounts if mount.place != PROGRAM)
    with contextlib.ExitStack() as opened:
        fd = os.open(host.filter_file, os.O_RDONLY | os.O_CLOEXEC)
        opened.callback(os.close, fd)
        folder = Path(tempfile.mkdtemp(prefix=f"practicum-bench-{os.getpid()}-"))
        opened.callback(shutil.rmtree, folder)
        opened.callback(_remove_groups, group)
        folder.chmod(0o755)
        given = _Given(spec, host, furnished.layer, mounts, folder, group)
        found = [_bubblewrap(given, fd)]
        found[0].run()
        missing: dict[str, str] = {}
        for name, make in (("runc", _runc), ("podman", _podman)):
            try:
                baseline = make(given)
                baseline.run()
            except (SandboxError, UnsupportedControl) as error:
                missing[name] = error.message
                continue
            found.append(baseline)
        yield found, missing


def _remove_groups(group: str) -> None:
    """A runtime makes groups of this name in every hierarchy."""
    remove_folders([str(place) for place in Path("/sys/fs/cgroup").glob(f"*/{group.strip('/')}/*")])
    remove_folders([str(place) for place in Path("/sys/fs/cgroup").glob(f"*/{group.strip('/')}")], 0.0)


def _as_user(user: int) -> list[str]:
    """What starts a program as `user`, where this process is another."""
    if user == os.geteuid():
        return []
    return ["/usr/bin/setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "--no-new-privs"]


def _bubblewrap(given: _Given, fd: int) -> Baseline:
    host, spec = given.host, given.spec
    runtime = host.runtime if isinstance(host.runtime, Bubblewrap) else Bubblewrap()
    argv = runtime.argv("bench", spec, given.layer, given.mounts, spec.profile)[: -len(AGENT)]
    at = argv.index("--seccomp") + 1
    assert argv[at] == str(FILTER_FD)
    argv[at] = str(fd)
    return Baseline("bwrap", (*_as_user(host.user), *argv, COMMAND), {}, fd)


def _runc(given: _Given) -> Baseline:
    """The bundle of our own boxes, with another program. Its user is root inside: that spares it one to become it."""
    host, spec = given.host, given.spec
    runtime = Runc(find_program("runc"), given.folder / "runc", host.user, program_in(host.cache.root))
    argv = runtime.argv("bench", replace(spec, user="root"), given.layer, given.mounts, spec.profile)
    file = given.folder / "runc" / "bench" / "config.json"
    config = json.loads(file.read_text())
    config["process"]["args"] = [COMMAND]
    file.write_text(json.dumps(config))
    run = [part for part in argv[argv.index(runtime.found.path) :] if part != "--detach"]
    return Baseline("runc", (*_as_user(host.user), *run), {"PATH": os.defpath})


def _podman(given: _Given) -> Baseline:
    """As this process's user, with places of its own for what it keeps; without control groups, or below ours."""
    path = find_program("podman").path
    place = given.folder / "podman"
    root = place / "rootfs"
    root.mkdir(parents=True)
    for target, link in given.layer.links:
        (root / link.lstrip("/")).symlink_to(target)
    own = [f"--root={place}/storage", f"--runroot={place}/run", f"--tmpdir={place}/tmp"]
    own += ["--events-backend=none", "--storage-driver=vfs"]  # other drivers leave a mount behind
    run = ["run", "--rm", "--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
    run += ["--log-driver=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
    run += [
        f"--volume={mount.source}:{mount.place}:ro" if mount.source else f"--tmpfs={mount.place}:size={mount.size}"
        for mount in given.mounts
        if mount.place.split("/")[1] not in ("etc", "proc", "sys")  # it puts files of its own there
    ]
    run += ["--rootfs", str(root), COMMAND]
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(place), "XDG_RUNTIME_DIR": str(place)}
    without = Baseline("podman", (path, *own, run[0], "--cgroups=disabled", *run[1:]), env)
    try:
        without.run()
    except SandboxError:  # some runtimes insist on groups
        own.append("--cgroup-manager=cgroupfs")
        return replace(without, argv=(path, *own, run[0], f"--cgroup-parent={given.group}", *run[1:]))
    return without
