"""The warm process of a judge's box: drivers run as copies of it, which spares them loading what they need.

Invariant: no candidate ever runs in this process, and nothing that one does beside it stays: it is not dumpable, so its
memory and descriptors are closed to others of its user, and where its limits, priority or processors were changed
from outside it ends, and the box with it. A copy is as a process that was just started: own session, own streams,
environment, arguments and limits.
Must not know: what drivers do.

argv: names of drivers, then `--`, then a module to load, if any, and what the drivers' `prepare` is given. Descriptor 3
is a socket: a byte says "ready", then each message is a request of the box's agent (cwd, timeout, cap, limits,
has_stdin, stdin, argc, argv…, env…) with the three streams, and the answer is the copy's number, four bytes; or a frame
of one field, which asks for an answer.
"""

from __future__ import annotations

import array
import ctypes
import gc
import marshal
import os
import resource
import socket
import sys

TYPE_CHECKING = False  # `typing` itself would be loaded into every copy
if TYPE_CHECKING:
    from types import ModuleType

_HERE = __file__.rpartition("/")[0]
_PR_SET_DUMPABLE, _SOL_RIGHTS = 4, (socket.SOL_SOCKET, socket.SCM_RIGHTS)
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_MESSAGE = 1 << 20


def load(name: str) -> ModuleType:
    """A driver, as a module that has not been run."""
    path = f"{_HERE}/{name}.pyc"
    with open(path, "rb") as file:
        code = marshal.loads(file.read()[16:])
    module = type(sys)(name)
    module.__file__ = path
    exec(code, module.__dict__)
    return module


def load_framework(name: str) -> None:
    """Import what a run of the framework imports, found by one in a copy of this process."""
    __import__(name)
    if name != "pytest":
        return
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(source)
            _rehearse()
            os.write(sink, "\n".join(sys.modules).encode())
        finally:
            os._exit(0)
    os.close(sink)
    names = b""
    while part := os.read(source, 65536):
        names += part
    os.close(source)
    os.waitpid(pid, 0)
    for other in names.decode().split("\n"):
        try:
            __import__(other)
        except ImportError:  # made while running, or of the rehearsal itself
            continue


def _rehearse() -> None:
    import pytest

    folder = f"/tmp/rehearsal-{os.getpid()}"
    os.mkdir(folder)
    with open(f"{folder}/test_rehearsal.py", "w") as file:
        file.write("def test_right():\n    assert 1 + 1 == 2\n\ndef test_wrong():\n    assert [1] == [2]\n")
    null = os.open("/dev/null", os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    options = ["-c", f"{_HERE}/pytest.ini", "--rootdir", folder, "-q", "-p", "no:cacheprovider", "--noconftest"]
    pytest.main([*options, folder])
    for name in os.listdir(folder):
        os.unlink(f"{folder}/{name}")
    os.rmdir(folder)


def state() -> tuple[object, ...]:
    """What others of this user could change about this process, and its copies would inherit."""
    limits = [resource.getrlimit(which) for which in _LIMITS]
    return limits, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)


def split(frame: bytes) -> list[bytes]:
    fields, at = [], 4
    while at < len(frame):
        size = int.from_bytes(frame[at : at + 4], "little")
        fields.append(frame[at + 4 : at + 4 + size])
        at += 4 + size
    return fields


def become(fields: list[bytes], fds: list[int], told: int, drivers: dict[str, ModuleType]) -> None:
    """In the copy: turn into the driver that was asked for, closed to others as this process is. Does not return."""
    os.setsid()
    for target, source in enumerate(fds):
        os.dup2(source, target)
    told = os.dup(told) if told < 3 else told
    os.write(told, os.getpid().to_bytes(4, "little"))
    os.closerange(3, 1024)
    for item in fields[3].split():
        which, most = (int(number) for number in item.split(b"="))
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    os.chdir(fields[0])
    arguments = [os.fsdecode(part) for part in fields[7 : 7 + int(fields[6])]]
    driver = sys.modules["__main__"] = drivers[arguments[0]]
    driver.__name__ = "__main__"
    sys.argv[:] = [str(driver.__file__), *arguments[1:]]
    driver.main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def copy(fields: list[bytes], fds: list[int], drivers: dict[str, ModuleType]) -> bytes:
    """Make a copy whose parent has ended, so that it is a child of the box's first process; its number."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.fork() == 0:
                try:
                    become(fields, fds, sink, drivers)
                except SystemExit as error:
                    os._exit(error.code if type(error.code) is int else 1)
                except BaseException:  # noqa: BLE001  whatever it is, it is the driver's end
                    sys.excepthook(*sys.exc_info())
                    sys.stderr.flush()
        finally:
            os._exit(70)
    os.close(sink)
    os.waitpid(pid, 0)
    number = os.read(source, 4)
    os.close(source)
    return number


def main() -> None:
    cut = sys.argv.index("--")
    names, modules = sys.argv[1:cut], sys.argv[cut + 1 :]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    drivers = {name: load(name) for name in names}
    if modules:
        load_framework(modules[0])
        for driver in drivers.values():
            driver.prepare(*modules)
    if _HERE in sys.path:
        sys.path.remove(_HERE)
    line = socket.socket(fileno=3)
    before = state()
    gc.collect()
    gc.freeze()  # so that a copy's collector does not touch, and thereby copy, every page
    line.send(b"r")
    while True:
        frame, rights, _, _ = line.recvmsg(_MESSAGE, socket.CMSG_SPACE(12), socket.MSG_CMSG_CLOEXEC)
        if not frame or state() != before:
            return
        fds = array.array("i")
        for level, kind, data in rights:
            if (level, kind) == _SOL_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        fields = split(frame)
        number = copy(fields, list(fds), drivers) if len(fields) > 1 else b"warm"
        for fd in fds:
            os.close(fd)
        line.send(number)


if __name__ == "__main__":
    main()
