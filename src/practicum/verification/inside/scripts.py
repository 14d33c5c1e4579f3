"""Driver of one frozen Python script: it passes by running to its end.

Invariant: the script runs in a process that never loads the submission; it reaches it through `remote`, which
carries plain values to and from the candidate's process. That process is forked before the script is read, and
cannot open this one. Must not know: which scripts matter.

Arguments: cpu_s, max_chars, then the roots. Job (marshal, on stdin): name, source, timeout_s. Output, a JSON line
each: `"ready"`, then `{"ok", "why", "calls", "s"}`. What the script prints goes to stderr.
"""

from __future__ import annotations

import builtins
import json
import marshal
import posix
import select
import sys
import time

sys.path.insert(0, __file__.rpartition("/")[0])

from candidate import CHUNK, answer, enter, load, raised, seal, write_all  # type: ignore[import-not-found]
from values import decode, encode  # type: ignore[import-not-found]

del sys.path[0], sys.modules["candidate"], sys.modules["values"]  # the names are the workspace's

TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any


class RemoteError(Exception):
    """The submission gave no plain value and raised no built-in exception."""


def read_exactly(fd: int, size: int, deadline: float) -> bytes:
    """`size` bytes; `RemoteError` at the end of the stream or past `deadline`."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    parts = b""
    while len(parts) < size:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(min(left * 1000, 1e9)):
            raise RemoteError("the submission did not answer in time")
        part = posix.read(fd, min(CHUNK, size - len(parts)))
        if not part:
            raise RemoteError("the submission's process ended")
        parts += part
    return parts


def serve(ask: int, reply: int, cpu_s: int, max_chars: int, roots: list[str]) -> None:
    """The candidate's process: load entries when they are first called, answer calls until the script is over."""
    enter((ask, reply), cpu_s)
    loaded: dict[tuple[str, str], Any] = {}
    while True:
        size = int.from_bytes(read_exactly(ask, 4, float("inf")), "little")
        entry, args, kwargs = marshal.loads(read_exactly(ask, size, float("inf")))
        try:
            if entry not in loaded:
                loaded[entry] = load(*entry, roots)
            text = answer(loaded[entry], args, kwargs, max_chars)
        except BaseException as error:  # noqa: BLE001  whatever it is, it is the answer
            text = raised(error)
        write_all(reply, len(text).to_bytes(4, "little") + text)


class Remote:
    """Makes functions that call the submission."""

    def __init__(self, ask: int, reply: int, max_chars: int) -> None:
        self.ask, self.reply, self.max_chars = ask, reply, max_chars
        self.deadline = 0.0
        self.calls = 0

    def __call__(self, entry: str) -> Any:
        """The submission's `module:name` as a function of plain values."""
        module, _, name = entry.partition(":")

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.send((module, name), args, kwargs)

        call.__name__ = call.__qualname__ = name
        return call

    def send(self, entry: tuple[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls += 1
        frame = marshal.dumps((entry, args, kwargs))
        try:
            write_all(self.ask, len(frame).to_bytes(4, "little") + frame)
        except OSError:
            raise RemoteError("the submission's process ended") from None
        size = int.from_bytes(read_exactly(self.reply, 4, self.deadline), "little")
        if size > 2 * self.max_chars:
            raise RemoteError("the submission's answer is too large")
        try:
            told = json.loads(read_exactly(self.reply, size, self.deadline).decode("ascii"))
            if "value" in told:
                return decode(told["value"])
            names = [str(name) for name in told.get("raised", [])]
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise RemoteError("the submission's answer cannot be read") from None
        if "unfit" in told:
            raise RemoteError(f"the submission returned something that is {told['unfit']}")
        for name in names:
            module, _, plain = name.rpartition(".")
            kind = getattr(builtins, plain, None) if module == "builtins" else None
            if isinstance(kind, type) and issubclass(kind, Exception):
                raise kind("raised by the submission: " + names[0])
        raise RemoteError(f"the submission raised {', '.join(names[:1])}")


def place_of(error: BaseException, name: str) -> str:
    """Where in the script `error` came up."""
    place, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            place = f" ({name} line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def main() -> None:
    cpu_s, max_chars, roots = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    seal(True)
    ask, asked = posix.pipe()
    reply, replied = posix.pipe()
    if posix.fork() == 0:
        try:
            serve(ask, replied, cpu_s, max_chars, roots)
        finally:
            posix._exit(0)
    posix.close(ask)
    posix.close(replied)
    result = posix.dup(1)
    posix.dup2(2, 1)
    job = marshal.loads(sys.stdin.buffer.read())
    write_all(result, b'"ready"\n')
    remote = Remote(asked, reply, max_chars)
    start = time.monotonic()
    remote.deadline = start + job["timeout_s"]
    why = ""
    try:
        space = {"__name__": "__main__", "__file__": job["name"], "__builtins__": builtins, "remote": remote}
        exec(compile(job["source"], job["name"], "exec"), space)
    except BaseException as error:  # noqa: BLE001  whatever it is, it is the answer
        why = f"{type(error).__name__}: {error}"[:500] + place_of(error, job["name"])
    ok, took = "false" if why else "true", time.monotonic() - start
    write_all(result, f'{{"ok":{ok},"why":{encode(why)},"calls":{remote.calls},"s":{took:.4f}}}\n'.encode())
    posix._exit(0)


if __name__ == "__main__":
    main()
