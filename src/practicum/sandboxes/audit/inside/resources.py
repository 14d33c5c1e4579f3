"""Probes of limits: each takes a little more than its box may have, and says how much it got.

Invariant: whatever the limits, none takes more than the small excess that it names, so that a box without limits
does no harm either; all of it is given back at the end of the probe's process.
Must not know: which mechanism limits.
"""

import errno
import fcntl
import os
import resource
import signal
import threading
import time

from .registry import Facts, Finding, blocked, name_of, opened, probe, unclear

GROUP = "resources"
MIB = 1 << 20
_TAKES = "code takes all memory, processors or processes"
_EXCESS = 48  # MiB of memory, or processes, beyond the limit
SMALL = {"memory_bytes": 64 * MIB, "pids": 24, "disk_bytes": 8 * MIB}
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.ENOMEM)


def _processes(many: int) -> tuple[list[int], int]:
    """Sleeping children, up to `many`, and the error that ended it (0 for none)."""
    pids: list[int] = []
    for _ in range(many):
        try:
            pid = os.fork()
        except OSError as error:
            return pids, error.errno or 0
        if pid == 0:
            signal.alarm(5)
            signal.pause()
            os._exit(0)
        pids.append(pid)
    return pids, 0


def _end(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


@probe(
    "P60",
    GROUP,
    "start processes without end",
    "EAGAIN at the limit",
    threat=_TAKES,
    limits=SMALL,
    needs=("pids-limit",),
)
def fork_bomb(facts: Facts) -> Finding:
    pids, error = _processes(facts["limits"]["pids"] + _EXCESS)
    _end(pids)
    if not error:
        return opened(f"{len(pids)} processes, {facts['limits']['pids']} allowed")
    return (blocked if error == errno.EAGAIN else unclear)(f"{name_of(error)} after {len(pids)}")


@probe(
    "P61",
    GROUP,
    "start threads without end",
    "EAGAIN at the limit",
    threat=_TAKES,
    limits=SMALL,
    needs=("pids-limit",),
)
def thread_bomb(facts: Facts) -> Finding:
    over = threading.Event()
    threading.stack_size(64 << 10)
    started = 0
    try:
        for _ in range(facts["limits"]["pids"] + _EXCESS):
            try:
                threading.Thread(target=over.wait, args=(5,), daemon=True).start()
            except RuntimeError as error:  # python's word for EAGAIN
                return blocked(f"{error} after {started}")
            started += 1
    finally:
        over.set()
    return opened(f"{started} threads, {facts['limits']['pids']} allowed")


def _touch(room: bytearray, size: int) -> None:
    for at in range(0, size, 4096):
        room[at] = 1


@probe("P62", GROUP, "take memory without end", "ENOMEM, or killed", threat=_TAKES, limits=SMALL, kills=True)
def memory(facts: Facts) -> Finding:
    most = facts["limits"]["memory_bytes"] // MIB + _EXCESS
    pieces = []
    for taken in range(0, most, 4):
        try:
            piece = bytearray(4 * MIB)
        except MemoryError:
            return blocked(f"ENOMEM after {taken} MiB")
        _touch(piece, len(piece))
        pieces.append(piece)
    return opened(f"{most} MiB, {facts['limits']['memory_bytes'] // MIB} allowed")


@probe(
    "P63",
    GROUP,
    "take memory by anonymous files that outlive no process",
    "ENOMEM, ENOSPC, EFBIG or killed",
    threat=_TAKES,
    limits=SMALL,
    needs=("memory-limit",),
    kills=True,
)
def shared_memory(facts: Facts) -> Finding:
    most = facts["limits"]["memory_bytes"] // MIB + _EXCESS
    for taken in range(0, most, 4):  # each file within the limit of a file's size
        fd = os.memfd_create("audit")
        try:
            for _ in range(4):
                os.write(fd, bytes(MIB))
        except OSError as error:
            return (blocked if error.errno in FULL else unclear)(f"{name_of(error.errno or 0)} after {taken} MiB")
    return opened(f"{most} MiB, {facts['limits']['memory_bytes'] // MIB} allowed")


@probe(
    "P64",
    GROUP,
    "take memory by pipes",
    "ENOMEM, EPERM or killed",
    threat=_TAKES,
    limits=SMALL | {"memory_bytes": 40 * MIB},
    needs=("memory-limit",),
    kills=True,
)
def pipes(facts: Facts) -> Finding:
    """Within 56 MiB, which is below what the kernel lets all processes of one user have in pipes."""
    for taken in range(56):
        _, inner = os.pipe()
        try:
            fcntl.fcntl(inner, fcntl.F_SETPIPE_SZ, MIB)
        except OSError as error:
            return (blocked if error.errno in (errno.EPERM, errno.ENOMEM) else unclear)(f"{error} after {taken} MiB")
        os.write(inner, bytes(MIB))
    return opened(f"56 MiB, {facts['limits']['memory_bytes'] // MIB} allowed")


@probe("P65", GROUP, "open files without end", "EMFILE", threat=_TAKES, limits=SMALL)
def descriptors(facts: Facts) -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = 2048
    for count in range(most):
        try:
            os.dup(0)
        except OSError as error:
            return (blocked if error.errno == errno.EMFILE else unclear)(f"{name_of(error.errno or 0)} after {count}")
    return opened(f"{most} descriptors in one process")


@probe(
    "P70",
    GROUP,
    "use more processor time than its share",
    "two busy processes share a tenth of a processor",
    threat=_TAKES,
    limits=SMALL | {"cpus": 0.1},
    needs=("cpu-limit",),
)
def processor(facts: Facts) -> Finding:
    wall, before = 0.6, os.times()
    pids = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            end = time.monotonic() + wall
            while time.monotonic() < end:
                pass
            os._exit(0)
        pids.append(pid)
    start = time.monotonic()
    for pid in pids:
        os.waitpid(pid, 0)
    after, passed = os.times(), time.monotonic() - start
    used = after.children_user + after.children_system - before.children_user - before.children_system
    share = used / passed
    text = f"{share:.2f} of a processor, {facts['limits']['cpus']:g} allowed"
    return opened(text) if share > 2 * facts["limits"]["cpus"] else blocked(text)


@probe("P72", GROUP, "raise its own limits", "EPERM", threat=_TAKES)
def raise_limits(facts: Facts) -> Finding:
    names = {"NOFILE": resource.RLIMIT_NOFILE, "FSIZE": resource.RLIMIT_FSIZE, "CPU": resource.RLIMIT_CPU}
    seen = []
    for name, which in names.items():
        _, hard = resource.getrlimit(which)
        if hard == resource.RLIM_INFINITY:
            return opened(f"{name} is unlimited")
        try:
            resource.setrlimit(which, (hard, hard + 1))
        except (OSError, ValueError):  # python's word for EPERM here is ValueError
            seen.append(name)
        else:
            return opened(f"{name} was raised")
    return blocked(f"EPERM for {', '.join(seen)}")
