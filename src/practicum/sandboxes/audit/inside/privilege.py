"""Probes of privilege: capabilities, identities, mounts and namespaces.

Invariant: where an attempt works after all, what it changes is the box's own.
Must not know: how privilege was taken away.
"""

import errno
import os
import struct
from functools import partial
from pathlib import Path

from . import calls
from .calls import attempt, call, forking
from .registry import REFUSALS, Facts, Finding, blocked, judge, opened, probe, status_line, unclear

_GROUP = "privilege"
_ROOT = "code gains privilege"
_REACHED = (errno.EFAULT, errno.EINVAL, errno.ENXIO, errno.EBADF)  # complaints about arguments


@probe("P13", _GROUP, "read its own capability sets", "all five are empty", threat=_ROOT)
def no_capabilities(facts: Facts) -> Finding:
    held = {name: status_line(facts, name) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    if not all(held.values()):
        return unclear(f"the kernel does not tell: {held}")
    full = [f"{name} {value}" for name, value in held.items() if int(value, 16)]
    return opened(", ".join(full)) if full else blocked("all five are empty")


@probe("P14", _GROUP, "read whether a program may add privileges", "no-new-privileges is set", threat=_ROOT)
def no_new_privileges(facts: Facts) -> Finding:
    value = status_line(facts, "NoNewPrivs")
    return blocked("set") if value == "1" else opened(f"NoNewPrivs is {value!r}")


@probe("P15", _GROUP, "find a mount on which set-user-id counts", "every mount is nosuid", threat=_ROOT)
def no_setuid(facts: Facts) -> Finding:
    mounts = [line.split(" - ")[0].split() for line in Path(facts["mountinfo"]).read_text().splitlines()]
    loose = [fields[4] for fields in mounts if "nosuid" not in fields[5].split(",")]
    return opened(f"without nosuid: {', '.join(loose[:5])}") if loose else blocked(f"{len(mounts)} mounts, all nosuid")


@probe("P17", _GROUP, "mount, remount and unmount", "EPERM", threat=_ROOT)
def mounts(facts: Facts) -> Finding:
    """Onto a folder of its own, in which no other probe has an interest; `umount2` of what is no mount."""
    place, remount_bind = b"/tmp/audit-mounts", 0x1000 | 0x20
    os.makedirs(place, exist_ok=True)
    return judge(
        [
            attempt("umount2", place, 2),
            attempt("mount", b"none", place, b"tmpfs", 0, None),
            ("mount of a folder", lambda: call("mount", b"/usr", place, None, 0x1000, None)),
            ("mount, again writable", lambda: call("mount", None, b"/usr", None, remount_bind, None)),
            ("mount of proc", lambda: call("mount", b"proc", place, b"proc", 0, None)),
        ],
        past=(errno.EINVAL,),
    )


@probe("P18", _GROUP, "mount by the newer calls", "EPERM or ENOSYS", threat=_ROOT)
def new_mounts(facts: Facts) -> Finding:
    attributes = struct.pack("=QQQQ", 0, 1, 0, 0)  # clear read-only
    return judge(
        [
            attempt("fsopen", b"tmpfs", 1),
            attempt("open_tree", -100, b"/usr", 1),
            attempt("move_mount", -1, b"", -1, b"", 0),
            attempt("mount_setattr", -100, b"/usr", 0, attributes, len(attributes)),
        ],
        past=_REACHED,
    )


@probe("P19", _GROUP, "change its root", "EPERM", threat=_ROOT)
def root_changes(facts: Facts) -> Finding:
    return judge([attempt("chroot", b"/tmp"), attempt("pivot_root", b"/", b"/tmp")], past=(errno.EBUSY,))


@probe("P20", _GROUP, "make a further user namespace, by each call", "EPERM, ENOSYS or ENOSPC", threat=_ROOT)
def nested_user_namespace(facts: Facts) -> Finding:
    arguments = struct.pack("=8Q", calls.NEW_USER, 0, 0, 0, 17, 0, 0, 0)
    return judge(
        [
            forking("clone", calls.NEW_USER | 17, 0, 0, 0, 0),
            forking("clone3", arguments, len(arguments)),
            attempt("unshare", calls.NEW_USER),
        ],
        refusals=REFUSALS | {errno.ENOSPC},
    )


@probe("P21", _GROUP, "make other namespaces", "EPERM", threat=_ROOT)
def other_namespaces(facts: Facts) -> Finding:
    kinds = {
        "mount": calls.NEW_MOUNT,
        "net": calls.NEW_NET,
        "pid": calls.NEW_PID,
        "uts": calls.NEW_UTS,
        "ipc": calls.NEW_IPC,
    }
    return judge([(f"unshare {kind}", partial(call, "unshare", flag)) for kind, flag in kinds.items()])


@probe("P22", _GROUP, "join a namespace", "EPERM", threat=_ROOT)
def join_namespace(facts: Facts) -> Finding:
    return judge(
        [
            ("setns of its own uts", lambda: call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0)),
            ("open of the first process's", lambda: os.open(f"/proc/{facts['first']}/ns/mnt", os.O_RDONLY)),
        ]
    )


@probe("P38", _GROUP, "raise its priority, run in real time, avoid the memory killer", "EPERM or EACCES", threat=_ROOT)
def priority(facts: Facts) -> Finding:
    def schedule() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

    def spare() -> None:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("-1000")

    niceness = facts["niceness"]
    attempts = [(f"niceness {niceness}", lambda: os.setpriority(os.PRIO_PROCESS, 0, niceness))]
    return judge([*attempts, ("real time", schedule), ("oom_score_adj -1000", spare)])


@probe("P39", _GROUP, "become another user, give a file a capability", "EPERM", threat=_ROOT)
def identities(facts: Facts) -> Finding:
    path = "/tmp/audit-capability"
    Path(path).write_bytes(b"")
    capability = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0, 0)

    def mapping() -> None:
        with open("/proc/self/uid_map", "wb", buffering=0) as file:
            file.write(b"0 0 1\n")

    return judge(
        [
            ("setgroups", lambda: os.setgroups([0])),
            ("a further user mapping", mapping),
            ("a file capability", lambda: os.setxattr(path, "security.capability", capability)),
            ("a trusted attribute", lambda: os.setxattr(path, "trusted.audit", b"x")),
        ],
        refusals=REFUSALS | {errno.EOPNOTSUPP},
    )
