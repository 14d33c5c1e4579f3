"""One empty box by any runtime, to see whether there are boxes here.

Owns: `try_runtime`.
Invariant: what is proven is what boxes use: the same user, the same launcher, the same filter, the same first program.
Must not know: which runtimes there are, what stands in the way of each.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from practicum.errors import SandboxError, UnsupportedControl
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.hub import Hub
from practicum.sandboxes.launch import PROGRAM, Mount, Runtime
from practicum.sandboxes.layers import Layer
from practicum.sandboxes.obstacles import classify_failure, read_kernel_facts
from practicum.sandboxes.profile import Profile
from practicum.sandboxes.seccomp import seccomp_filter

_DEADLINE_S = 20.0
_NOTHING = Layer("nothing", "", {}, (), {})


def try_runtime(runtime: Runtime, path: str, program: Path, user: int) -> None:
    """Run a box that holds nothing but the native `program`, which greets and ends since nothing is asked of it.

    Raises `UnsupportedControl` where it does not greet: the obstacle by its name, with the last words of the runtime,
    whose own program is at `path`, and the fix.
    """
    box = f"trial-{uuid.uuid4().hex[:12]}"
    argv = runtime.argv(box, BoxSpec(box), _NOTHING, [Mount(PROGRAM, str(program))], Profile())
    try:
        hub = Hub(program, Path("/"), user, stacks=False)
        try:
            greeting, words = _run(hub, argv)
        finally:
            hub.close()
    except SandboxError as error:
        raise UnsupportedControl(f"{runtime.name} cannot be started: {error.message}", fix=error.fix) from error
    finally:
        runtime.forget(box)
    if b"hello" not in greeting:
        obstacle = classify_failure(words, read_kernel_facts(), path)
        raise UnsupportedControl(f"{runtime.name} runs no box, {obstacle.name}: {obstacle.detail}", fix=obstacle.fix)


def _run(hub: Hub, argv: list[str]) -> tuple[bytes, str]:
    """What the program wrote to its output and error streams until it ended, with nothing at its input."""
    with contextlib.ExitStack() as opened:
        reads, writes = [], []
        for _ in range(2):
            read, write = os.pipe()
            opened.callback(os.close, read)
            reads.append(read)
            writes.append(write)
        handle = -1
        try:
            with _null() as null, _filter() as program:
                handle = hub.spawn(argv, [null, *writes, program]).pidfd
        finally:
            for write in writes:
                os.close(write)
        opened.callback(os.close, handle)
        deadline = time.monotonic() + _DEADLINE_S
        output, errors = (_read(read, deadline) for read in reads)
        select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
    return output, errors.decode(errors="replace").strip()


def _read(fd: int, deadline: float) -> bytes:
    """All there is until the end of the stream; `SandboxError` if that does not come."""
    found = b""
    while True:
        if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise SandboxError(f"it neither spoke nor ended within {_DEADLINE_S:.0f} s")
        part = os.read(fd, 1 << 16)
        if not part:
            return found
        found += part


@contextlib.contextmanager
def _null() -> Iterator[int]:
    fd = os.open(os.devnull, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _filter() -> Iterator[int]:
    """The system-call filter as an open file."""
    program = seccomp_filter()
    if program is None:
        raise UnsupportedControl("there is no system-call filter for this machine's architecture yet")
    fd = os.memfd_create("filter")
    try:
        os.write(fd, program)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
