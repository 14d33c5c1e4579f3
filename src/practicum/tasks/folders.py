"""Folders on disk as trees, and trees as folders.

Owns: `read_tree`, `write_tree`, `replace_folder`, `file_mode`.
Invariant: only regular files cross; a link or device is refused by name; a folder that is being written is
never visible under its final name before it is whole.
Must not know: what the files mean.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from practicum.errors import TaskError
from practicum.records.tree import File, Tree


def file_mode(st_mode: int) -> int:
    """The two modes that are told apart: 0o755 where anyone may execute, else 0o644."""
    return 0o755 if st_mode & 0o111 else 0o644


def read_tree(folder: Path) -> dict[str, File]:
    """All regular files below `folder` by relative POSIX path; empty folders leave no trace.

    Raises `TaskError` naming the path for a link, device, pipe or socket, and for a name that is not UTF-8.
    """
    tree: dict[str, File] = {}
    for path in sorted(_walk(folder)):
        name = path.relative_to(folder).as_posix()
        tree[name] = File(path.read_bytes(), file_mode(path.stat().st_mode))
    return tree


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            try:
                entry.name.encode()
            except UnicodeEncodeError:
                raise TaskError(f"{path!r}: the file name is not UTF-8") from None
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield from _walk(path)
            elif stat.S_ISREG(mode):
                yield path
            else:
                kind = "symbolic link" if stat.S_ISLNK(mode) else "special file"
                raise TaskError(f"{path}: a task cannot hold a {kind}", fix="put the file itself there")


def write_tree(folder: Path, tree: Tree) -> None:
    """Write `tree` below `folder`, which must not yet hold any of it."""
    for name, file in sorted(tree.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode)


@contextmanager
def replace_folder(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that takes its place when the block ends well, and vanishes if it does not.

    What stood at `target` before is removed; the caller has decided that it may be.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        fresh = scratch / "new"
        fresh.mkdir(mode=0o755)
        yield fresh
        if target.exists():
            target.rename(scratch / "old")
        fresh.rename(target)
    finally:
        shutil.rmtree(scratch)
