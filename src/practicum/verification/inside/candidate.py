"""The candidate's process: the only one that loads the submission.

Owns: `enter`, `look_ahead`, `load`, `answer`, `collect`. Invariant: it has no way out but one pipe of its own,
and what goes through the pipe is text of plain values. Must not know: expected values, other cases.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import ctypes
import posix
import resource
import select
import sys
import time
from _frozen_importlib_external import PathFinder

from values import NotPlain, encode  # type: ignore[import-not-found]

CHUNK = 1 << 16
TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any


libc = ctypes.CDLL(None)
PR_SET_DUMPABLE = 4


def seal(closed: bool) -> None:
    """Close this process's memory and descriptors to others of its user, or open them again."""
    libc.prctl(PR_SET_DUMPABLE, 0 if closed else 1, 0, 0, 0)


def enter(keep: tuple[int, ...], cpu_s: int) -> None:
    """Own session, streams to nowhere, every other descriptor closed, and a limit on cpu seconds."""
    seal(False)
    posix.setsid()
    null = posix.open("/dev/null", posix.O_RDWR)
    for stream in (0, 1, 2):
        posix.dup2(null, stream)
    start = 3
    for fd in sorted(keep):
        posix.closerange(start, fd)
        start = fd + 1
    posix.closerange(start, 1024)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    most = cpu_s if hard == resource.RLIM_INFINITY else min(cpu_s, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def look_ahead(module: str, roots: list[str]) -> None:
    """Do once what each process forked later would do anew in `load`; nothing of the workspace runs.

    That is reading its folders, and making ready the compiler, whose own start takes longer than most of its work.
    """
    PathFinder.find_spec(module.partition(".")[0], roots)
    compile("0", "", "eval")


def load(module: str, name: str, roots: list[str]) -> Any:
    """The entry, from the workspace and nowhere else; the workspace stands last on the path for what it imports."""
    sys.path.extend(roots)
    top = module.partition(".")[0]
    spec = PathFinder.find_spec(top, roots)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no module named {top!r} in the workspace")
    found = sys.modules[top] = type(sys)(top)
    found.__spec__, found.__loader__, found.__file__ = spec, spec.loader, spec.origin
    found.__package__ = top if spec.submodule_search_locations is not None else ""
    if spec.submodule_search_locations is not None:
        found.__path__ = spec.submodule_search_locations
    spec.loader.exec_module(found)
    __import__(module)
    result: Any = sys.modules[module]
    for part in name.split("."):
        result = getattr(result, part)
    return result


def answer(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], max_chars: int) -> bytes:
    """The call's result as text: `{"value": …}`, `{"raised": [names of the exception's classes]}`, `{"unfit": why}`."""
    try:
        value = function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  whatever it is, it is the answer
        return raised(error)
    try:
        return b'{"value":%s}' % encode(value, max_chars).encode()
    except NotPlain as why:
        return b'{"unfit":%s}' % encode(str(why)).encode()
    except RecursionError:
        return b'{"unfit":"too deep"}'


def raised(error: BaseException) -> bytes:
    """`{"raised": …}`: the classes of `error`, nearest first, as `module.name`."""
    classes = type.__getattribute__(type(error), "__mro__")
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in classes]
    return b'{"raised":%s}' % encode(names[:20], 8000).encode()


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[posix.write(fd, view) :]


def collect(pid: int, source: int, wall_s: float, max_bytes: int) -> tuple[str, bytes, int]:
    """Read what process `pid` writes to `source` until it ends, `wall_s` pass or it is too much; then end it.

    Returns how it went (`ended`, `timeout`, `flood`), the bytes and the wait status.
    """
    how, parts, size = "ended", [], 0
    poll = select.poll()
    poll.register(source, select.POLLIN)
    end = time.monotonic() + wall_s
    while True:
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            how = "timeout"
            break
        part = posix.read(source, CHUNK)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            how = "flood"
            break
    posix.close(source)
    # Its number stays taken until it is waited for, so this cannot hit a stranger.
    try:
        posix.killpg(pid, _signal.SIGKILL)
    except ProcessLookupError:
        posix.kill(pid, _signal.SIGKILL)
    return how, b"".join(parts), posix.waitpid(pid, 0)[1]
