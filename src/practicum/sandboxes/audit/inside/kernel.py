"""Probes of the kernel's surface: the system-call filter, and the calls that it and the kernel must refuse.

Invariant: a call that could change the host is made with arguments with which it cannot: a null pointer, a wrong
magic number, the value that is set already. The kernel's complaint about those then says that the call got there.
Must not know: how the filter is written.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct

from . import calls
from .calls import attempt, call
from .registry import REFUSALS, Facts, Finding, blocked, judge, opened, probe, status_line, unclear

_GROUP = "kernel calls"
_KERNEL = "code attacks the kernel"
_AGENT = "code takes over the agent that serves the host"
_REACHED = (errno.EFAULT, errno.EINVAL, errno.ENXIO, errno.EBADF)  # complaints about arguments


@probe("P16", _GROUP, "read whether a system-call filter is active", "mode 2", threat=_KERNEL)
def filter_active(facts: Facts) -> Finding:
    value = status_line(facts, "Seccomp")
    return blocked("mode 2") if value == "2" else opened(f"Seccomp is {value!r}")


@probe("P23", _GROUP, "trace or read the first process and itself", "EPERM", threat=_KERNEL)
def trace(facts: Facts) -> Finding:
    first, room = 1, ctypes.create_string_buffer(8)
    vector = struct.pack("=QQ", ctypes.addressof(room), 8)
    reads = ("process_vm_readv", lambda: call("process_vm_readv", os.getpid(), vector, 1, vector, 1, 0))
    writes = ("process_vm_writev", lambda: call("process_vm_writev", os.getpid(), vector, 1, vector, 1, 0))

    def descriptor() -> None:
        call("pidfd_getfd", call("pidfd_open", first, 0), 0, 0)

    return judge(
        [
            ("ptrace of the first", lambda: call("ptrace", 0x4206, first, 0, 0)),  # PTRACE_SEIZE
            ("process_vm_readv of the first", lambda: call("process_vm_readv", first, vector, 1, vector, 1, 0)),
            ("pidfd_getfd", descriptor),
            reads,
            writes,
            ("ptrace of itself", lambda: call("ptrace", 0, 0, 0, 0)),
        ]
    )


@probe("P110", _GROUP, "limit, slow or bind the first process, or all of its user", "EPERM", threat=_AGENT)
def steer_the_first(facts: Facts) -> Finding:
    """With the values that are set already."""
    first, unlimited = 1, struct.pack("=qq", -1, -1)
    return judge(
        [
            ("prlimit", lambda: call("prlimit64", first, 10, unlimited, 0)),  # RLIMIT_LOCKS, which nothing heeds
            ("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, first, 0)),
            ("setpriority of a user", lambda: os.setpriority(os.PRIO_USER, 0, 0)),
            ("sched_setaffinity", lambda: os.sched_setaffinity(first, os.sched_getaffinity(0))),
            ("sched_setscheduler", lambda: os.sched_setscheduler(first, os.SCHED_OTHER, os.sched_param(0))),
            ("ioprio_set", lambda: call("ioprio_set", 1, first, 0)),
            ("ioprio_set of a user", lambda: call("ioprio_set", 3, 0, 0)),
        ]
    )


@probe("P24", _GROUP, "load a bpf map", "EPERM", threat=_KERNEL)
def bpf(facts: Facts) -> Finding:
    attributes = struct.pack("=IIII", 2, 4, 4, 1) + bytes(56)  # an array of one number
    return judge([attempt("bpf", 0, attributes, len(attributes))])


@probe("P25", _GROUP, "open a performance event of itself", "EPERM", threat=_KERNEL)
def performance_event(facts: Facts) -> Finding:
    exclude_kernel_and_hypervisor = 1 << 5 | 1 << 6
    attributes = struct.pack("=IIQQQQQ", 1, 112, 0, 0, 0, 0, exclude_kernel_and_hypervisor) + bytes(64)
    return judge([attempt("perf_event_open", attributes, 0, -1, -1, 0)])


@probe("P26", _GROUP, "use the kernel's key rings", "EPERM", threat=_KERNEL)
def key_rings(facts: Facts) -> Finding:
    ring = -2  # the process's own
    return judge(
        [
            attempt("keyctl", 0, ring, 1),
            attempt("add_key", b"user", b"practicum-audit", b"x", 1, ring),
            attempt("request_key", b"user", b"practicum-audit", None, ring),
        ]
    )


@probe("P27", _GROUP, "handle page faults in user space", "EPERM", threat=_KERNEL)
def user_faults(facts: Facts) -> Finding:
    return judge([attempt("userfaultfd", 1)])  # user mode only, which asks for the least


@probe("P28", _GROUP, "set up io_uring", "EPERM", threat=_KERNEL)
def io_uring(facts: Facts) -> Finding:
    return judge([attempt("io_uring_setup", 1, bytes(120))])


@probe("P29", _GROUP, "load a module, a kernel or swap; restart", "EPERM", threat=_KERNEL)
def modules(facts: Facts) -> Finding:
    """All with arguments that cannot succeed: nothing is loaded, and the magic numbers of reboot are wrong."""
    return judge(
        [
            attempt("init_module", None, 0, None),
            attempt("delete_module", None, 0),
            attempt("kexec_load", 0, 0, None, 1 << 30),
            attempt("swapon", None, 0),
            attempt("swapoff", None),
            attempt("reboot", 0, 0, 0, 0),
        ],
        past=_REACHED,
    )


@probe("P30", _GROUP, "open a file by its handle", "EPERM", threat=_KERNEL)
def file_handles(facts: Facts) -> Finding:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 136)
    mount = ctypes.c_int()
    return judge(
        [
            attempt("name_to_handle_at", -100, b"/tmp", handle, ctypes.byref(mount), 0),
            attempt("open_by_handle_at", -100, handle, 0),
        ],
        past=(errno.EOPNOTSUPP, errno.ESTALE),
    )


@probe("P31", _GROUP, "set the clock or the host name", "EPERM", threat=_KERNEL)
def clock_and_name(facts: Facts) -> Finding:
    """The clock from an address that is not one, the name to what it is already: nothing changes."""
    name = socket.gethostname().encode()
    return judge(
        [
            attempt("clock_settime", 0, 1),
            attempt("settimeofday", 1, None),
            attempt("sethostname", name, len(name)),
        ],
        past=(errno.EFAULT,),
    )


@probe("P32", _GROUP, "put input into a terminal", "EPERM", threat=_KERNEL)
def terminal_injection(facts: Facts) -> Finding:
    """Into a terminal that the probe makes itself. EIO is the kernel's own refusal, from behind the filter."""
    inner = None
    try:
        _, inner = os.openpty()
        os.setsid()
        fcntl.ioctl(inner, 0x540E, 0)  # make it the controlling terminal
    except OSError:
        inner = inner if inner is not None else 0
    terminal = inner
    return judge(
        [
            ("TIOCSTI", lambda: call("ioctl", terminal, 0x5412, b"x")),
            ("TIOCSTI, high half set", lambda: call("ioctl", terminal, 0x100005412, b"x")),
        ],
        past=(errno.EIO, errno.ENOTTY),
    )


def _sockets(*kinds: tuple[str, int, int, int]) -> Finding:
    tries = [(name, lambda a=a, b=b, c=c: socket.socket(a, b, c).close()) for name, a, b, c in kinds]
    return judge(tries, refusals=REFUSALS | {errno.EAFNOSUPPORT})


@probe("P33", _GROUP, "open raw and packet sockets", "EPERM", threat=_KERNEL)
def raw_sockets(facts: Facts) -> Finding:
    raw = int(socket.SOCK_RAW)
    return _sockets(
        ("raw", 2, raw, 1), ("raw, version 6", 10, raw, 58), ("packet", 17, raw, 0x300), ("packet, cooked", 17, 2, 0)
    )


@probe("P34", _GROUP, "open netlink, vsock, crypto and other odd sockets", "EPERM", threat=_KERNEL)
def odd_sockets(facts: Facts) -> Finding:
    stream, raw = int(socket.SOCK_STREAM), int(socket.SOCK_RAW)
    return _sockets(
        ("netlink", 16, raw, 0),
        ("netlink, audit", 16, raw, 9),
        ("vsock", 40, stream, 0),
        ("crypto", 38, 5, 0),
        ("bluetooth", 31, raw, 1),
        ("can", 29, raw, 1),
        ("x25", 9, 5, 0),
        ("xdp", 44, raw, 0),
    )


@probe("P35", _GROUP, "change the descriptor table, personality or port rights", "EPERM", threat=_KERNEL)
def execution_state(facts: Facts) -> Finding:
    attempts = [attempt("personality", 0x40000)]  # no address randomisation
    if calls.has("modify_ldt"):
        attempts += [attempt("modify_ldt", 0, bytes(16), 16), attempt("ioperm", 0, 1, 0)]
    return judge(attempts)


@probe(
    "P36", _GROUP, "make calls of a foreign architecture", "killed by the filter, or EPERM", threat=_KERNEL, kills=True
)
def foreign_calls(facts: Facts) -> Finding:
    """The 32-bit gate and the numbers of x32, each of which a filter of 64-bit numbers could miss."""
    if calls.MACHINE != "x86_64":
        return blocked("this architecture has no other calls")
    try:
        calls.raw(0x40000000 | 39)
    except OSError as error:
        if error.errno not in REFUSALS:
            return unclear(f"x32: {error}")
    else:
        return opened("x32 calls work")
    answer = calls.run_machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # eax = 20 (getpid); int 0x80
    if ctypes.c_int(answer).value == -errno.ENOSYS or ctypes.c_int(answer).value == -errno.EPERM:
        return blocked("the 32-bit gate refuses")
    return opened(f"the 32-bit gate answers {answer}")


@probe("P37", _GROUP, "read the kernel's log, accounting, quota, kernel objects", "EPERM or ENOSYS", threat=_KERNEL)
def kernel_state(facts: Facts) -> Finding:
    own = os.getpid()
    return judge(
        [
            attempt("syslog", 10, None, 0),
            attempt("acct", 1),
            attempt("quotactl", 0x800004 << 8, None, 0, None),
            attempt("kcmp", own, own, 0, 0, 0),
            attempt("memfd_secret", 0),
        ],
        past=(*_REACHED, errno.ENODEV),
    )
