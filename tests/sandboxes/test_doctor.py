"""Obstacles are named from what runtimes and the kernel really say, and each has a fix of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from practicum.sandboxes.doctor import check_host, describe_bwrap, tried
from practicum.sandboxes.launch import SANDBOX_UID, Runtime
from practicum.sandboxes.obstacles import (
    KernelFacts,
    classify_failure,
    classify_groups,
    classify_stacking,
    wrong_system,
)
from practicum.sandboxes.oci_runtime import find_program

# As printed by bubblewrap 0.8 (Debian) and 0.9 (Ubuntu 24.04), runc 1.1 and the native program.
REFUSED = (
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user"
    " namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>."
)
EXHAUSTED = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
UID_MAP = "bwrap: setting up uid map: Permission denied"
LOOPBACK = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
MASKED = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
RUNC_REFUSED = 'level=fatal msg="nsexec-1[16911]: failed to unshare user namespace: Operation not permitted"'
RUNC_EXHAUSTED = 'level=fatal msg="nsexec-1[16899]: failed to unshare user namespace: No space left on device"'
RUNSC_REFUSED = "executing inside namespace: re-executing self: fork/exec /proc/self/exe: operation not permitted"
RUNSC_EXHAUSTED = "executing inside namespace: re-executing self: fork/exec /proc/self/exe: no space left on device"
HOLD_REFUSED, HOLD_EXHAUSTED = "a user namespace was refused: errno 1", "a user namespace was refused: errno 28"
RUNC_MASKED = 'error during container init: error mounting "proc" to rootfs at "/proc": operation not permitted'
HUB_REFUSED = "the hub was refused a user and mount namespace: Operation not permitted"
HUB_EXHAUSTED = "the hub was refused a user and mount namespace: No space left on device"
HUB_ROOT = "the hub was refused another user: Operation not permitted"


@pytest.mark.parametrize(
    ("text", "facts", "name", "fix"),
    [
        (EXHAUSTED, KernelFacts(max_user_namespaces=0), "switched off", "user.max_user_namespaces="),
        (REFUSED, KernelFacts(max_user_namespaces=0), "switched off", "user.max_user_namespaces="),
        *(
            (text, KernelFacts(max_user_namespaces=9), "switched off", "user.max_user_namespaces=")
            for text in (RUNC_EXHAUSTED, RUNSC_EXHAUSTED, HOLD_EXHAUSTED)
        ),
        (HUB_EXHAUSTED, KernelFacts(max_user_namespaces=0), "switched off", "user.max_user_namespaces="),
        (REFUSED, KernelFacts(9, 0), "switched off for ordinary users", "kernel.unprivileged_userns_clone=1"),
        (UID_MAP, KernelFacts(9, None, 1), "restricted by AppArmor", "/etc/apparmor.d/bwrap"),
        (LOOPBACK, KernelFacts(9, 1, 1), "restricted by AppArmor", "apparmor_parser"),
        (LOOPBACK, KernelFacts(9, 1, 0), "network namespace refused", "CAP_NET_ADMIN"),
        (MASKED, KernelFacts(9), "masks /proc", "systempaths=unconfined"),
        (RUNC_MASKED, KernelFacts(9), "masks /proc", "systempaths=unconfined"),
        (REFUSED, KernelFacts(9, 1, 0, container=True), "user namespaces refused", "seccomp=unconfined"),
        (RUNC_REFUSED, KernelFacts(9, 1, 0), "user namespaces refused", "ask for user namespaces"),
        (RUNSC_REFUSED, KernelFacts(9, 1, 0), "user namespaces refused", "ask for user namespaces"),
        (HOLD_REFUSED, KernelFacts(9, 1, 0), "user namespaces refused", "ask for user namespaces"),
        (HUB_REFUSED, KernelFacts(9, 1, 0), "user namespaces refused", "seccomp=unconfined"),
        (HUB_ROOT, KernelFacts(9), "root cannot be dropped", "ordinary user"),
        ("bwrap: something new", KernelFacts(9), "a box does not start", "see the message"),
    ],
)
def test_obstacles_are_named(text: str, facts: KernelFacts, name: str, fix: str) -> None:
    """Each known failure text, with the kernel's switches, becomes its own obstacle with its own fix."""
    found = classify_failure(text, facts)
    assert not found.ok
    assert name in found.name
    assert fix in found.fix
    assert text in found.detail


def test_apparmor_profile_is_for_the_program_that_failed() -> None:
    """The profile to install names the runtime that was refused, and is one that a shell can write."""
    found = classify_failure(RUNC_REFUSED, KernelFacts(9, 1, 1), "/usr/sbin/runc")
    assert "profile runc /usr/sbin/runc flags=(unconfined) {\\n  userns,\\n}" in found.fix
    written = found.fix.partition(" | ")[0]
    shown = subprocess.run(["sh", "-c", written], capture_output=True, text=True, timeout=10, check=True).stdout
    assert shown.splitlines()[2:] == ["profile runc /usr/sbin/runc flags=(unconfined) {", "  userns,", "}"]


@pytest.mark.parametrize(
    ("text", "root", "facts", "name", "fix"),
    [
        ("version 2: /sys/fs/cgroup/x: Permission denied", False, KernelFacts(), "not delegated", "Delegate=yes"),
        ("version 1: /sys/fs/cgroup/x: Read-only file system", True, KernelFacts(), "read-only", "/sys/fs/cgroup:rw"),
        ("no memory, pids and cpu controllers are mounted", True, KernelFacts(), "not there", "systemd"),
        ("no memory, pids and cpu controllers are mounted", True, KernelFacts(container=True), "not there", "outer"),
        ("version 2: write: Device or resource busy", True, KernelFacts(), "shared", "--scope"),
        ("version 2: write: Invalid argument", True, KernelFacts(), "limits for whole boxes", "delegated group"),
    ],
)
def test_missing_groups_are_named(text: str, root: bool, facts: KernelFacts, name: str, fix: str) -> None:
    """Why there are no limits for whole boxes is told apart, and boxes can be had without."""
    found = classify_groups(text, root=root, facts=facts)
    assert (found.ok, found.required) == (False, False)
    assert name in found.name
    assert fix in found.fix
    assert text in found.detail


@pytest.mark.parametrize(
    ("facts", "name", "fix"),
    [
        (KernelFacts(version=(5, 10)), "kernel too old", "6.6"),
        (KernelFacts(version=(6, 5)), "kernel too old", "6.6"),
        (KernelFacts(9, 1, 1, version=(6, 8)), "AppArmor", "profile practicum /cache/box"),
        (KernelFacts(9, 1, 0, version=(6, 8)), "refused", "user namespaces"),
    ],
)
def test_copying_has_a_reason(facts: KernelFacts, name: str, fix: str) -> None:
    """Where files cannot be stacked it is said why, and boxes can be had without."""
    found = classify_stacking(facts, "/cache/box")
    assert (found.ok, found.required) == (False, False)
    assert name in found.name
    assert fix in found.fix


def test_other_systems_are_refused_by_name() -> None:
    """macOS and Windows are told where practicum runs; Linux is not refused."""
    for system, shown in (("Darwin", "macOS"), ("Windows", "Windows"), ("FreeBSD", "FreeBSD")):
        refusal = wrong_system(system)
        assert refusal is not None
        assert shown in refusal.detail
        assert "WSL2" in refusal.fix
    assert wrong_system("Linux") is None


ELSEWHERE = """
import platform, sys
platform.system = lambda: "Windows"
for name in ("fcntl", "resource", "pwd", "grp", "termios", "_posixsubprocess"):
    sys.modules[name] = None
from practicum.sandboxes.doctor import check_host
print([(check.name, check.ok) for check in check_host()])
"""


def test_refusal_needs_nothing_of_linux() -> None:
    """The refusal comes before anything is imported that other systems do not have."""
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == "[('python', True), ('operating system', False)]\n", done.stderr


def test_a_third_partys_bubblewrap_is_named() -> None:
    """A bubblewrap that came with a python package is said to be another's build; the system's is not."""
    assert "third party" in describe_bwrap("/env/lib/site-packages/bubblewrap/bwrap", "0.11", ("/env",))
    assert describe_bwrap("/usr/bin/bwrap", "0.8.0", ("/env",)) == "/usr/bin/bwrap 0.8.0"


def test_real_exhaustion_is_recognised() -> None:
    """What the installed bubblewrap says where user namespaces are switched off is classified as such."""
    script = "echo 0 > /proc/sys/user/max_user_namespaces; exec bwrap --unshare-all --unshare-user --ro-bind / / true"
    drop = ["setpriv", "--reuid", str(SANDBOX_UID), "--regid", str(SANDBOX_UID), "--clear-groups"]
    unshare = shutil.which("unshare")
    assert unshare is not None
    argv = [*(drop if os.geteuid() == 0 else []), unshare, "-U", "-r", "sh", "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode != 0
    assert classify_failure(done.stderr, KernelFacts(max_user_namespaces=0)).name == "user namespaces switched off"


def test_this_host_passes() -> None:
    """On a host where the other tests run, every required finding is good, and what is missing has a fix."""
    found = {check.name: check for check in check_host()}
    assert [check for check in found.values() if check.required and not check.ok] == []
    assert "bubblewrap" in found["a box runs"].detail
    assert {"a box runs by runc", "a box runs by runsc"} <= set(found)
    assert all(check.ok or check.fix for check in found.values())


def test_a_runtime_that_is_not_installed_is_optional(tmp_path: Path) -> None:
    """Without runc, boxes can be had all the same, and the package to install is named."""

    def search() -> Runtime:
        find_program("runc", str(tmp_path))
        raise AssertionError("found in an empty folder")

    found = tried("a box runs by runc", search, required=False)
    assert (found.ok, found.required) == (False, False)
    assert "not installed" in found.detail
    assert "apt-get install runc" in found.fix
