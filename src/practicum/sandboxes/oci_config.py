"""The configuration that an OCI runtime is given for a box.

Owns: `runc_config`, `runsc_config`, `seccomp_section`. Pure.
Invariant: by the default profile every namespace is new, no capability is held, nothing but the writable places can be
written, and the system calls are those of the box's filter; a control that the runtime cannot weaken or honour is
refused by name.
Must not know: where bundles are, how the runtime is started.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Sequence
from typing import Any

from practicum.errors import UnsupportedControl
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.launch import Mount
from practicum.sandboxes.profile import Profile
from practicum.sandboxes.syscalls import ALLOWED, MISSING, RULES, Rule

Config = dict[str, Any]
USER_IDS = {"agent": 1000, "root": 0}
_NEW_USER_NAMESPACE = 0x10000000
_WORD = 0xFFFFFFFF
_ALL_CAPABILITIES = (
    "AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE "
    "DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE "
    "MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG "
    "SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE "
    "SYS_TIME SYS_TTY_CONFIG WAKE_ALARM"
)
_READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
_CLOSED = ["nosuid", "nodev"]
OWN_ROOT = "rootfs"  # the root within the bundle, where no mount is one
DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_IN_MEMORY = ["nosuid", "nodev", "strictatime"]
_GVISOR_OWN = ("/proc/", "/sys/")  # drawn by its kernel, whatever is mounted there


def runc_config(
    spec: BoxSpec, mounts: Sequence[Mount], profile: Profile, args: Sequence[str], *, user: int, dev: str
) -> Config:
    """For runc, run by `user` of the host. Inside, that user is 0: runc maps no single user but to that.

    `dev` is a folder that becomes the box's /dev. It holds whatever is to be mounted on there: DEVICES, `pts` and such.
    A mount at / is the root, with all that is mounted in it; else it is OWN_ROOT, in which runc makes the places.
    Where `spec.user` is another, `args` must first become it, for which the filter lets one kind of namespace be made;
    the program that becomes it must end that. Raises `UnsupportedControl`.
    """
    becomes = spec.user != "root"
    if not profile.new_session:
        raise UnsupportedControl("runc always starts a new session: `new_session` cannot be left out")
    if becomes and not profile.drop_capabilities:
        raise UnsupportedControl("under runc, capabilities can be left to root only", fix='use user = "root"')
    wanted = {
        "pid": profile.pid_namespace,
        "network": profile.net_namespace,
        "ipc": profile.ipc_namespace,
        "uts": profile.uts_namespace,
        "cgroup": profile.cgroup_namespace,
        "mount": True,
        "user": True,
    }
    identity = [{"containerID": 0, "hostID": user, "size": 1}]
    linux: Config = {
        "namespaces": [{"type": kind} for kind, on in wanted.items() if on],
        "uidMappings": identity,
        "gidMappings": identity,
    }
    if profile.pid_namespace:  # nothing is masked: the covers would be mounts that are not closed to privileges
        linux["readonlyPaths"] = _READONLY
    if profile.seccomp:
        linux["seccomp"] = seccomp_section(namespaces=not profile.no_nested_userns, user_namespace=becomes)
    inner = [mount for mount in mounts if mount.place != "/"]
    shown = [*_kernel_mounts(profile, dev), *(_runc_mount(mount, profile) for mount in inner)]
    roots = [mount.source for mount in mounts if mount.place == "/"]
    # A namespace may map the user that is root in the one before it only if its maker could have marked files so.
    config = _common(profile, args, 0, ["CAP_SETFCAP"] if becomes else []) | {"mounts": shown, "linux": linux}
    config["root"]["path"] = roots[-1] if roots else OWN_ROOT
    return config | ({"hostname": "box"} if profile.uts_namespace else {})


def runsc_config(spec: BoxSpec, mounts: Sequence[Mount], profile: Profile, args: Sequence[str]) -> Config:
    """For gVisor, whose own kernel is beneath the box: its namespaces, devices and users are its own.

    Files of the host belong to root there, so that another user cannot write them. Raises `UnsupportedControl`.
    """
    always = ("pid_namespace", "net_namespace", "ipc_namespace", "uts_namespace", "cgroup_namespace", "new_session")
    for name in (*always, "no_nested_userns", "minimal_dev"):
        if not getattr(profile, name):
            raise UnsupportedControl(f"gVisor's kernel is the box's own: `{name}` cannot be left out")
    user = USER_IDS[spec.user]
    shown = []
    for mount in mounts:
        if mount.follows:
            raise UnsupportedControl(f"{mount.place!r}: gVisor does not see what is mounted later")
        if mount.source and mount.writable and user and mount.place not in spec.sockets:
            raise UnsupportedControl(f"{mount.place!r}: under gVisor only root can write files of the host")
        if not mount.place.startswith(_GVISOR_OWN):
            shown.append(_runsc_mount(mount, profile, user))
    linux: Config = {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]}
    if profile.seccomp:
        linux["seccomp"] = seccomp_section()
    if not profile.own_filesystem:
        shown.append(_mount("/host", "bind", "/", ["rbind", "ro", *_CLOSED]))
    shown.insert(0, _mount("/proc", "proc", "proc", [*_CLOSED, "noexec"]))
    return _common(profile, args, user) | {"mounts": shown, "linux": linux, "hostname": "box"}


def _common(profile: Profile, args: Sequence[str], user: int, needed: Sequence[str] = ()) -> Config:
    held = list(needed) if profile.drop_capabilities else [f"CAP_{name}" for name in _ALL_CAPABILITIES.split()]
    rlimits = [{"type": "RLIMIT_CORE", "hard": 0, "soft": 0}] if profile.limits else []
    process: Config = {
        "terminal": False,
        "user": {"uid": user, "gid": user},
        "args": list(args),
        "env": [] if profile.clear_environment else ["PRACTICUM_HOST_SECRET=left-by-the-launcher"],
        "cwd": "/",
        "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), held),
        "rlimits": rlimits,
        "noNewPrivileges": True,
    }
    root = {"path": OWN_ROOT, "readonly": profile.readonly_root}
    return {"ociVersion": "1.0.2", "process": process, "root": root}


def _mount(place: str, kind: str, source: str, options: Sequence[str]) -> Config:
    return {"destination": place, "type": kind, "source": source, "options": list(options)}


def _kernel_mounts(profile: Profile, dev: str) -> list[Config]:
    """/proc, /dev and what is in it, and the host's root where the profile shows it."""
    found = [_mount("/proc", "proc", "proc", [*_CLOSED, "noexec"])]
    if not profile.pid_namespace:  # a new /proc cannot be had of the host's processes
        found = [_mount("/proc", "bind", "/proc", ["rbind", *_CLOSED])]
    if profile.minimal_dev:  # a folder of ours, since the devices that runc makes itself are not closed to privileges
        closed = ["ro"] if profile.readonly_root else []
        found.append(_mount("/dev", "bind", dev, ["bind", "nosuid", "noexec", *closed]))
        found += [_mount(f"/dev/{name}", "bind", f"/dev/{name}", ["bind", "nosuid", "noexec"]) for name in DEVICES]
        terminals = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]
        found.append(_mount("/dev/pts", "devpts", "devpts", terminals))
    else:
        found.append(_mount("/dev", "bind", "/dev", ["rbind", "nosuid"]))
    if not profile.own_filesystem:
        found.append(_mount("/host", "bind", "/", ["rbind", "rro", *_CLOSED]))
    return found


def _runc_mount(mount: Mount, profile: Profile) -> Config:
    if not mount.source:
        return _mount(mount.place, "tmpfs", "tmpfs", [*_IN_MEMORY, f"mode={mount.mode:o}", f"size={mount.size}"])
    options = ["rbind", *_CLOSED]
    if not mount.follows and not mount.writable and profile.readonly_root:
        options.append("rro")
    return _mount(mount.place, "bind", mount.source, [*options, *(["rslave"] if mount.follows else [])])


def _runsc_mount(mount: Mount, profile: Profile, user: int) -> Config:
    if not mount.source:
        owner = [f"uid={user}", f"gid={user}"]
        return _mount(mount.place, "tmpfs", "tmpfs", [*_CLOSED, f"mode={mount.mode:o}", f"size={mount.size}", *owner])
    writable = mount.writable or not profile.readonly_root
    return _mount(mount.place, "bind", mount.source, ["rbind", *_CLOSED, *([] if writable else ["ro"])])


def seccomp_section(*, namespaces: bool = False, user_namespace: bool = False, missing: bool = True) -> Config:
    """The filter of `seccomp.py` in the words of an OCI runtime, of which each knows the numbers for itself.

    What is not listed is refused. `namespaces` lets all kinds of namespaces be made, `user_namespace` only that one
    and only by `unshare`; without `missing`, no call is said to be missing.
    """
    open_calls = [*ALLOWED, *(("clone", "unshare") if namespaces else ())]
    entries = [_entry(open_calls, "SCMP_ACT_ALLOW")]
    if missing:
        entries.append(_entry(MISSING, "SCMP_ACT_ERRNO") | {"errnoRet": errno.ENOSYS})
    for call in dict.fromkeys(rule.call for rule in RULES if rule.call not in open_calls):
        rules = [rule for rule in RULES if rule.call == call]
        for ways in itertools.product(*(_ways(rule) for rule in rules)):
            args = [_argument(rule.position, *way) for rule, way in zip(rules, ways, strict=True)]
            entries.append(_entry([call], "SCMP_ACT_ALLOW") | {"args": args})
    if user_namespace and not namespaces:
        args = [_argument(0, _WORD, _NEW_USER_NAMESPACE)]
        entries.append(_entry(["unshare"], "SCMP_ACT_ALLOW") | {"args": args})
    return {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": errno.EPERM, "syscalls": entries}


def _entry(names: Sequence[str], action: str) -> Config:
    return {"names": list(names), "action": action}


def _argument(position: int, mask: int, value: int) -> Config:
    """The argument under `mask` must be `value`."""
    return {"index": position, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value}


def _ways(rule: Rule) -> list[tuple[int, int]]:
    """(mask, value) pairs, of which an allowed argument fits one."""
    if rule.without:
        return [(rule.without, 0)]
    return [(_WORD, value) for value in rule.only] or _others(frozenset(rule.never))


def _others(values: frozenset[int], bit: int = 31, mask: int = 0, value: int = 0) -> list[tuple[int, int]]:
    """The words beside `values`, as the branches of the tree of bits that none of them is in.

    In this way, since a runtime compares all 64 bits of an argument where it is not told a mask, and the kernel looks
    at 32: a value with one of the upper bits set would pass as another.
    """
    if not values:
        return [(mask, value)]
    found: list[tuple[int, int]] = []
    for one in (0, 1) if bit >= 0 else ():
        inside = frozenset(v for v in values if v >> bit & 1 == one)
        found += _others(inside, bit - 1, mask | 1 << bit, value | one << bit)
    return found
