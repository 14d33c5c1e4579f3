"""What this machine can do for boxes, and the line that fixes what it cannot.

Owns: `check_host`, `HostCheck`, the classification of bubblewrap's failures into named obstacles.
Invariant: whether boxes work is found out by running one; the reason is looked for only when that failed.
Must not know: the command line, configuration files.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import PracticumError
from practicum.sandboxes.bubblewrap import filter_file
from practicum.sandboxes.cgroups import CgroupsMissing, find_cgroups
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.launch import bwrap_arguments, drop_root, find_bwrap, launch_argv
from practicum.sandboxes.layers import LayerCache

_LEAST_DISK = 2 << 30
_APPARMOR_FIX = (
    r"printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile bwrap /usr/bin/bwrap"
    r" flags=(unconfined) {\n  userns,\n}\n'"
    " | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap"
)


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One finding. `fix` is a line to run or to write, empty where there is nothing to fix.

    `required` says whether boxes cannot be had without it.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Switches that decide about user namespaces; None where the kernel does not have them."""

    max_user_namespaces: int | None = None
    unprivileged_userns_clone: int | None = None
    apparmor_restrict_unprivileged_userns: int | None = None
    container: bool = False


def read_kernel_facts() -> KernelFacts:
    """The switches of this host."""

    def number(path: str) -> int | None:
        try:
            return int(Path(path).read_text())
        except (OSError, ValueError):
            return None

    return KernelFacts(
        number("/proc/sys/user/max_user_namespaces"),
        number("/proc/sys/kernel/unprivileged_userns_clone"),
        number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    )


def classify_failure(text: str, facts: KernelFacts) -> HostCheck:
    """Name the obstacle behind bubblewrap's last words. Pure."""

    def obstacle(name: str, detail: str, fix: str) -> HostCheck:
        return HostCheck(name, False, f"{detail} ({text.strip() or 'no message'})", fix)

    no_namespace = "new namespace" in text or "uid map" in text
    if "ENOSPC" in text or (no_namespace and facts.max_user_namespaces == 0):
        return obstacle(
            "user namespaces switched off",
            f"user.max_user_namespaces is {facts.max_user_namespaces}",
            "sudo sysctl -w user.max_user_namespaces=15000  (and a file in /etc/sysctl.d to keep it)",
        )
    if no_namespace and facts.unprivileged_userns_clone == 0:
        return obstacle(
            "user namespaces switched off for ordinary users",
            "kernel.unprivileged_userns_clone is 0",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1  (and a file in /etc/sysctl.d to keep it)",
        )
    if facts.apparmor_restrict_unprivileged_userns == 1 and (no_namespace or "RTM_NEW" in text):
        return obstacle(
            "user namespaces restricted by AppArmor",
            "kernel.apparmor_restrict_unprivileged_userns is 1 and bwrap has no profile that allows them",
            _APPARMOR_FIX,
        )
    if "mount proc" in text:
        return obstacle(
            "nested in a container that masks /proc",
            "the kernel refuses a new /proc while the host's is partly covered",
            "start the outer container with --security-opt systempaths=unconfined, or run on the host itself",
        )
    if no_namespace:
        where = "the container's system-call filter" if facts.container else "the kernel or a security module"
        return obstacle(
            "user namespaces refused",
            f"{where} does not allow new user namespaces",
            "in a container: --security-opt seccomp=unconfined; on a host: ask for user namespaces to be allowed",
        )
    if "RTM_NEW" in text:
        return obstacle(
            "network namespace refused",
            "the loopback of a new network namespace could not be brought up",
            "allow CAP_NET_ADMIN within user namespaces (an AppArmor or SELinux policy denies it)",
        )
    if "setpriv" in text:
        return obstacle("root cannot be dropped", "setpriv failed", "run practicum as an ordinary user")
    return obstacle("a box does not start", "bubblewrap failed for a reason not known here", "see the message")


def _python() -> HostCheck:
    version = platform.python_version()
    ok = sys.version_info >= (3, 11)  # a packager may have lifted the bound
    return HostCheck("python", ok, version, "" if ok else "install python 3.11 or newer")


def _cache() -> tuple[HostCheck, LayerCache | None]:
    try:
        cache = LayerCache()
        probe = cache.root / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except PracticumError as error:
        return HostCheck("cache folder", False, error.message, error.fix or ""), None
    except OSError as error:
        fix = "set PRACTICUM_CACHE to a folder that can be written"
        return HostCheck("cache folder", False, f"{error.filename}: {error.strerror}", fix), None
    return HostCheck("cache folder", True, str(cache.root)), cache


def _disk(folder: Path) -> HostCheck:
    free = shutil.disk_usage(folder).free
    return HostCheck(
        "free disk",
        free >= _LEAST_DISK,
        f"{free / (1 << 30):.1f} GiB at {folder}",
        "" if free >= _LEAST_DISK else "free some space, or set PRACTICUM_CACHE to another disk",
        required=False,
    )


def _box(cache: LayerCache) -> HostCheck:
    """Run a whole box once: its agent greets, and ends because its input is empty."""
    try:
        layer = cache.layer("python")
        drop, bwrap = drop_root(), find_bwrap()
        args = [*bwrap_arguments(BoxSpec("doctor"), layer, {}), "--", *layer.agent]
        argv = launch_argv([], drop, bwrap.path, args, filter_file(cache))
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, env={}, cwd="/")
    except PracticumError as error:
        return HostCheck("a box runs", False, error.message, error.fix or "")
    except (OSError, subprocess.SubprocessError) as error:
        return HostCheck("a box runs", False, str(error), "see the message")
    if done.returncode == 0 and b"hello" in done.stdout:
        return HostCheck("a box runs", True, f"python {layer.info['python']} ({layer.info['origin']}) inside")
    return classify_failure(done.stderr.decode(errors="replace"), read_kernel_facts())


def _bwrap() -> HostCheck:
    try:
        bwrap = find_bwrap()
    except PracticumError as error:
        return HostCheck("bubblewrap", False, error.message, error.fix or "")
    return HostCheck("bubblewrap", True, f"{bwrap.path} {bwrap.version}")


def _limits() -> HostCheck:
    try:
        groups = find_cgroups(f"doctor-{os.getpid()}")
    except CgroupsMissing as error:
        return HostCheck(
            "limits for whole boxes",
            False,
            f"only limits for each process ({error})",
            "systemd-run --user --scope -p Delegate=yes practicum …  (or run as root)",
            required=False,
        )
    groups.remove()
    return HostCheck("limits for whole boxes", True, f"control groups, version {groups.version}", required=False)


def check_host() -> list[HostCheck]:
    """All findings about this host, in the order a person would fix them. Takes some 50 ms."""
    cache_check, cache = _cache()
    found = [_python(), _bwrap(), cache_check]
    if cache is not None:
        found.append(_disk(cache.root))
        if found[1].ok:
            found.append(_box(cache))
    found.append(_limits())
    return found
