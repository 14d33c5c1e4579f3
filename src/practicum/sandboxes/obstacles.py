"""What stands in the way of boxes, by name, with the line that removes it.

Owns: `HostCheck`, `KernelFacts`, the classification of what programs and the kernel say. Pure, but for switches.
Invariant: every obstacle that has a name has a fix of its own; the words it was recognised by are kept.
Must not know: how boxes are run. Imports nothing that exists on Linux only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_APPARMOR_FIX = (
    r"printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile {name} {path}"
    r" flags=(unconfined) {{\n  userns,\n}}\n'"
    " | sudo tee /etc/apparmor.d/{name} && sudo apparmor_parser -r /etc/apparmor.d/{name}"
)
_NO_NAMESPACE = ("new namespace", "uid map", "user namespace", "mount namespace", "inside namespace")
_NO_PROC = ("mount proc", 'mounting "proc"')
_ELSEWHERE = "use a Linux virtual machine, WSL2 (on Windows) or a Linux container"
STACKS_FROM, XATTRS_FROM = (5, 11), (6, 6)  # overlay mounts in user namespaces; their attributes in memory


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
    version: tuple[int, int] = (0, 0)


def read_kernel_facts() -> KernelFacts:
    """The switches of this host."""

    def number(path: str) -> int | None:
        try:
            return int(Path(path).read_text())
        except (OSError, ValueError):
            return None

    release = re.match(r"(\d+)\.(\d+)", Path("/proc/sys/kernel/osrelease").read_text())
    return KernelFacts(
        number("/proc/sys/user/max_user_namespaces"),
        number("/proc/sys/kernel/unprivileged_userns_clone"),
        number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
        (int(release[1]), int(release[2])) if release else (0, 0),
    )


def wrong_system(system: str) -> HostCheck | None:
    """The refusal of an operating system, as `platform.system()` names it; None for Linux."""
    if system == "Linux":
        return None
    known = {"Darwin": "macOS"}.get(system, system or "unknown")
    return HostCheck("operating system", False, f"{known}: boxes are made of what the Linux kernel has", _ELSEWHERE)


def _named(text: str, name: str, detail: str, fix: str) -> HostCheck:
    return HostCheck(name, False, f"{detail} ({text.strip() or 'no message'})", fix)


def classify_failure(text: str, facts: KernelFacts, program: str = "/usr/bin/bwrap") -> HostCheck:
    """Name the obstacle behind the last words of `program`, a runtime."""
    lower = text.lower()
    no_namespace = any(words in lower for words in _NO_NAMESPACE)
    exhausted = "ENOSPC" in text or (no_namespace and ("no space left" in lower or "errno 28" in lower))
    if exhausted or (no_namespace and facts.max_user_namespaces == 0):
        return _named(
            text,
            "user namespaces switched off",
            f"user.max_user_namespaces is {facts.max_user_namespaces}",
            "sudo sysctl -w user.max_user_namespaces=15000  (and a file in /etc/sysctl.d to keep it)",
        )
    if no_namespace and facts.unprivileged_userns_clone == 0:
        return _named(
            text,
            "user namespaces switched off for ordinary users",
            "kernel.unprivileged_userns_clone is 0",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1  (and a file in /etc/sysctl.d to keep it)",
        )
    if facts.apparmor_restrict_unprivileged_userns == 1 and (no_namespace or "RTM_NEW" in text):
        name = program.rpartition("/")[2]
        return _named(
            text,
            "user namespaces restricted by AppArmor",
            f"kernel.apparmor_restrict_unprivileged_userns is 1 and {name} has no profile that allows them",
            _APPARMOR_FIX.format(name=name, path=program),
        )
    if any(words in lower for words in _NO_PROC):
        return _named(
            text,
            "nested in a container that masks /proc",
            "the kernel refuses a new /proc while the host's is partly covered",
            "start the outer container with --security-opt systempaths=unconfined, or run on the host itself",
        )
    return _rest(text, no_namespace, facts)


def _rest(text: str, no_namespace: bool, facts: KernelFacts) -> HostCheck:
    if no_namespace:
        where = "the container's system-call filter" if facts.container else "the kernel or a security module"
        return _named(
            text,
            "user namespaces refused",
            f"{where} does not allow new user namespaces",
            "in a container: --security-opt seccomp=unconfined; on a host: ask for user namespaces to be allowed",
        )
    if "RTM_NEW" in text:
        return _named(
            text,
            "network namespace refused",
            "the loopback of a new network namespace could not be brought up",
            "allow CAP_NET_ADMIN within user namespaces (an AppArmor or SELinux policy denies it)",
        )
    if "another user" in text:
        return _named(
            text, "root cannot be dropped", "root may not become another", "run practicum as an ordinary user"
        )
    return _named(text, "a box does not start", "the runtime failed for a reason not known here", "see the message")


def classify_groups(text: str, *, root: bool, facts: KernelFacts) -> HostCheck:
    """Why limits for whole boxes cannot be had, from what the kernel said to the attempt."""

    def missing(name: str, detail: str, fix: str) -> HostCheck:
        return HostCheck(name, False, f"{detail}; only limits for each process ({text})", fix, required=False)

    lower = text.lower()
    outer = "start the outer container with --cgroupns=private -v /sys/fs/cgroup:/sys/fs/cgroup:rw, or run on the host"
    if "read-only file system" in lower:
        return missing("control groups are read-only here", "the container shows them only", outer)
    if "no memory, pids and cpu controllers" in lower:
        fix = outer if facts.container else "mount control groups (systemd does), with memory, pids and cpu switched on"
        return missing("control groups are not there", "no hierarchy with memory, pids and cpu is mounted", fix)
    if not root and ("permission denied" in lower or "operation not permitted" in lower):
        fix = "systemd-run --user --scope -p Delegate=yes practicum …  (or run as root)"
        return missing("control groups are not delegated", "this user may not make groups", fix)
    if "busy" in lower:
        fix = "systemd-run --scope -p Delegate=yes practicum …  (a group of its own)"
        return missing("the control group is shared", "other processes are in the group it would be limited in", fix)
    return missing("limits for whole boxes", "the kernel refused them", "run as root, or in a delegated group")


def classify_stacking(facts: KernelFacts, program: str) -> HostCheck:
    """Why files are copied instead of stacked. `program` is the one that would mount."""

    def copied(name: str, detail: str, fix: str) -> HostCheck:
        return HostCheck(name, False, f"{detail}: files are copied, which takes longer", fix, required=False)

    version = ".".join(map(str, facts.version))
    if facts.version < STACKS_FROM:
        return copied(
            "kernel too old to stack files",
            f"Linux {version} has no overlay in user namespaces",
            "use Linux 6.6 or newer",
        )
    if facts.version < XATTRS_FROM:
        detail = f"Linux {version} keeps no overlay attributes in memory"
        return copied("kernel too old to stack files", detail, "use Linux 6.6 or newer")
    if facts.apparmor_restrict_unprivileged_userns == 1:
        fix = _APPARMOR_FIX.format(name="practicum", path=program)
        return copied("stacking restricted by AppArmor", "no profile allows it to mount in a namespace of its own", fix)
    return copied("stacking refused", "the kernel or a security module refused to mount", "see `user namespaces` above")
