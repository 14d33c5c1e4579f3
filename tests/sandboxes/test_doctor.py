"""Obstacles are named from what bubblewrap really says, and each has a fix of its own."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from practicum.sandboxes.doctor import KernelFacts, check_host, classify_failure
from practicum.sandboxes.launch import SANDBOX_UID

# As printed by bubblewrap 0.8 (Debian) and 0.9 (Ubuntu 24.04).
REFUSED = (
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user"
    " namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>."
)
EXHAUSTED = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
UID_MAP = "bwrap: setting up uid map: Permission denied"
LOOPBACK = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
MASKED = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"


@pytest.mark.parametrize(
    ("text", "facts", "name", "fix"),
    [
        (EXHAUSTED, KernelFacts(max_user_namespaces=0), "switched off", "user.max_user_namespaces="),
        (REFUSED, KernelFacts(max_user_namespaces=0), "switched off", "user.max_user_namespaces="),
        (REFUSED, KernelFacts(9, 0), "switched off for ordinary users", "kernel.unprivileged_userns_clone=1"),
        (UID_MAP, KernelFacts(9, None, 1), "restricted by AppArmor", "/etc/apparmor.d/bwrap"),
        (LOOPBACK, KernelFacts(9, 1, 1), "restricted by AppArmor", "apparmor_parser"),
        (LOOPBACK, KernelFacts(9, 1, 0), "network namespace refused", "CAP_NET_ADMIN"),
        (MASKED, KernelFacts(9), "masks /proc", "systempaths=unconfined"),
        (REFUSED, KernelFacts(9, 1, 0, container=True), "user namespaces refused", "seccomp=unconfined"),
        ("setpriv: setresuid failed", KernelFacts(9), "root cannot be dropped", "ordinary user"),
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
    """On a host where the other tests run, every required finding is good and names what was found."""
    found = {check.name: check for check in check_host()}
    assert [check for check in found.values() if check.required and not check.ok] == []
    assert "inside" in found["a box runs"].detail
    assert all(check.ok or check.fix for check in found.values())
