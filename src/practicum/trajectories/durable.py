"""Writing files so that a crash or a full disk leaves the old content or the new, never half of it.

Owns: `write_atomic`, `append_line`, `cut_torn_line`, `sync_folder`.
Invariant: when a call raises `StoreError`, the file is as it was before.
Must not know: what is written.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from practicum.errors import StoreError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_atomic(path: Path, data: bytes) -> None:
    """Create or replace `path` with `data`: temporary name, fsync, rename. Raises `StoreError`."""
    temporary = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    try:
        try:
            with open(temporary, "wb", buffering=0) as file:
                _write_all(file.fileno(), data)
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise failed(path, error, needed=len(data)) from error


def append_line(path: Path, line: bytes, *, sync: bool = False) -> None:
    """Append `line` (without line break) to `path`; `sync` waits for the disk. Raises `StoreError`."""
    data = line + b"\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            before = os.fstat(fd).st_size
            try:
                _write_all(fd, data)
            except OSError:
                os.ftruncate(fd, before)
                raise
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise failed(path, error, needed=len(data)) from error


def cut_torn_line(path: Path) -> None:
    """Cut off what follows the last line break, which a killed writer left. Raises `OSError`."""
    if path.is_file():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def failed(path: Path, error: OSError, *, needed: int = 0) -> StoreError:
    """The `StoreError` for `error`, which names the folder and, where the disk is full, what to free."""
    if error.errno not in FULL:
        return StoreError(
            f"cannot write {path}: {error.strerror or error}",
            fix=f"make {path.parent} an existing folder that this user may write to",
        )
    try:
        free = f", {shutil.disk_usage(path.parent).free / 2**20:.1f} MiB free"
    except OSError:  # the folder itself is gone; the cause is still told
        free = ""
    return StoreError(
        f"no room for {path}: {error.strerror} ({needed / 2**20:.2f} MiB needed{free}); nothing was half-written",
        fix=f"free space on the disk, quota or file-size limit that holds {path.parent}: old run folders and their "
        "checkpoints/ are the largest; then run the command again (it goes on; a training run with --resume)",
    )


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
