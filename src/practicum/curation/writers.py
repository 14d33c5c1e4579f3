"""One writer at a time in a folder of records.

Owns: `sole_writer`.
Invariant: of those who do the same work on one folder, one holds it, and the kernel gives it back when its process
ends, however it does. Who comes second is told at once who holds it.
Must not know: what is written.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from practicum.errors import StoreError
from practicum.trajectories.durable import failed

_MOST_NAMED = 200


@contextmanager
def sole_writer(records: Path, work: str) -> Iterator[None]:
    """Hold `records` (`TASKSET/.practicum`, made where it is missing) for `work`, a command's name, while the block
    lasts. Raises `StoreError` where another process holds it for the same work, or nothing can be written there."""
    path = records / f"{work}.lock"
    try:
        records.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise failed(path, error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, _MOST_NAMED, 0).decode("ascii", "replace").strip()
            raise StoreError(
                f"another `practicum tasks {work}` ({holder or 'which has just begun'}) is writing to {records.parent}",
                fix="wait for it to end, or name another folder",
            ) from None
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"process {os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise failed(path, error) from error
        yield
    finally:
        os.close(fd)
