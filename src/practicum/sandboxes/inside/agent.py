"""The loop of the box's first process: one request, one answer, until the host hangs up.

Requests start with an operation, answers with `ok`, `path` (an answer about a path) or `fault`. As first
process of its namespace it cannot be signalled from inside; its executable is unreadable, so that its memory
and its pipes cannot be opened by other processes of the box (a process of an unreadable image is not dumpable).
"""

import _signal  # type: ignore[import-not-found]
import fcntl
import posix
import sys

from .commands import Command, reap
from .files import PathRefused, list_folder, open_folder, parts_of, read_regular, write_regular
from .wire import Wire


def answer(wire: Wire, wake: int, request: "list[bytes]") -> "list[bytes]":
    op, *args = request
    if op == b"run":
        cwd, timeout, cap, limits, has_stdin, stdin, count, *rest = args
        argv, env = rest[: int(count)], dict(item.split(b"=", 1) for item in rest[int(count) :])
        command = Command(wire, wake, float(timeout), int(cap))
        return command.run(argv, env, cwd, stdin if has_stdin == b"1" else None, limits)
    if op == b"read":
        parts = parts_of(args[0])
        folder = open_folder(parts[:-1])
        try:
            return [b"ok", read_regular(parts[-1] if parts else b".", folder, int(args[1]))[0]]
        finally:
            posix.close(folder)
    if op == b"write":
        for at in range(0, len(args), 3):
            write_regular(args[at], int(args[at + 1]), args[at + 2])
        return [b"ok"]
    if op == b"list":
        return [b"ok", *list_folder(args[0], int(args[1]))]
    if op == b"ping":
        return [b"ok"]
    raise ValueError(f"unknown operation {op!r}")


def main() -> None:
    wire = Wire(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 200), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 200))
    posix.closerange(3, 200)
    null = posix.open(b"/dev/null", posix.O_RDWR)
    wake, poke = posix.pipe()
    posix.set_blocking(wake, False)
    posix.set_blocking(poke, False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
    wire.send([b"ok", b"hello", sys.version.split()[0].encode()])
    for target in (0, 1, 2):
        posix.dup2(null, target)
    while True:
        request = wire.frame()
        if request is None:
            wire.fill()
            continue
        reap()
        if request == [b"cancel"]:  # the command ended before the cancellation came
            continue
        try:
            reply = answer(wire, wake, request)
        except PathRefused as refusal:
            reply = [b"path", str(refusal).encode()]
        except OSError as error:
            reply = [b"path", (error.strerror or str(error)).encode()]
        except Exception as error:  # noqa: BLE001  whatever it is, the host must hear of it
            reply = [b"fault", repr(error).encode()]
        wire.send(reply)
