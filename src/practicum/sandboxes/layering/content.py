"""What a folder holds, made plain: ordinary modes, a fixed time, a digest.

Owns: `result_digest`, `settle`, `drop_unchanged`, `TIME`.
Invariant: what is kept are folders, regular files, links and whiteouts, readable by everybody, owned by the cache's
owner; the digest covers paths, types, modes, contents, targets and what is hidden, and no times.
Must not know: where the folder comes from. Nothing else may be writing to it, and no link in it is followed.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping

from practicum.records.tree import digest_of
from practicum.sandboxes.layering.stack import at, is_opaque, is_whiteout

TIME = 315532800  # 1980-01-01, the earliest that a zip file can say


def _entries(folder: str, prefix: str = "") -> Iterator[tuple[str, str, os.stat_result]]:
    """(path on the host, path below the folder, status) of all below `folder`, sorted, links not followed."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        yield entry.path, prefix + entry.name, status
        if stat.S_ISDIR(status.st_mode):
            yield from _entries(entry.path, f"{prefix}{entry.name}/")


def result_digest(folders: Mapping[str, str]) -> str:
    """Names what folders (by place in the box) hold; a place may also be a single file."""
    lines: list[list[object]] = []
    for place, folder in sorted(folders.items()):
        status = os.lstat(folder)
        lines.append([place, *_said(folder, status)])
        if stat.S_ISDIR(status.st_mode):
            lines += [[f"{place}/{name}", *_said(path, status)] for path, name, status in _entries(folder)]
    return digest_of(lines)


def _said(path: str, status: os.stat_result) -> list[object]:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return ["folder", stat.S_IMODE(mode), is_opaque(path)]
    if stat.S_ISLNK(mode):
        return ["link", os.readlink(path)]  # noqa: PTH115
    if is_whiteout(status):
        return ["hidden"]
    with open(path, "rb") as file:
        return ["file", stat.S_IMODE(mode), hashlib.file_digest(file, "sha256").hexdigest()]


def settle(folder: str) -> list[str]:
    """Give everything in `folder` the cache's owner, ordinary modes and the fixed time; what could not be kept.

    Pipes, sockets and devices are removed, since no box could use them as they were meant.
    """
    dropped: list[str] = []
    _own(folder, 0o755)
    for path, name, status in _opened(folder):
        mode = status.st_mode
        if stat.S_ISREG(mode):
            _own(path, 0o755 if mode & 0o111 else 0o644)
        elif stat.S_ISLNK(mode) or is_whiteout(status):
            os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
        elif not stat.S_ISDIR(mode):
            os.unlink(path)  # noqa: PTH108
            dropped.append(name)
    for path, _, _ in _entries(folder):
        os.utime(path, (TIME, TIME), follow_symlinks=False)
    os.utime(folder, (TIME, TIME))
    return dropped


def _opened(folder: str, prefix: str = "") -> Iterator[tuple[str, str, os.stat_result]]:
    """As `_entries`, each folder being made one's own before it is read: a box may have closed it."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _own(entry.path, 0o755)
            yield entry.path, prefix + entry.name, status
            yield from _opened(entry.path, f"{prefix}{entry.name}/")
        else:
            yield entry.path, prefix + entry.name, status


def _own(path: str, mode: int) -> None:
    os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
    os.chmod(path, mode)  # noqa: PTH101


def drop_unchanged(upper: str, below: tuple[str, ...]) -> bool:
    """Remove from `upper` what the stack `below` shows just the same; whether nothing remains.

    Both are settled, apart from folders of the host, whose modes are compared by what `settle` would make of them.
    A whiteout of what was never there goes too.
    """
    hides = is_opaque(upper)
    empty = True
    with os.scandir(upper) as found:
        entries = list(found)
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        under = () if hides else at(below, entry.name)
        if stat.S_ISDIR(status.st_mode):
            under_folder = under if under and stat.S_ISDIR(os.lstat(under[0]).st_mode) else ()
            if drop_unchanged(entry.path, under_folder) and under_folder and not is_opaque(entry.path):
                os.rmdir(entry.path)  # noqa: PTH106
                continue
        elif _same(entry.path, status, under):
            os.unlink(entry.path)  # noqa: PTH108
            continue
        empty = False
    return empty


def _same(path: str, status: os.stat_result, under: tuple[str, ...]) -> bool:
    if is_whiteout(status):
        return not under
    if not under:
        return False
    other = os.lstat(under[0])
    if stat.S_ISLNK(status.st_mode):
        return stat.S_ISLNK(other.st_mode) and os.readlink(path) == os.readlink(under[0])  # noqa: PTH115
    if not stat.S_ISREG(other.st_mode) or bool(other.st_mode & 0o111) != bool(status.st_mode & 0o111):
        return False
    return status.st_size == other.st_size and filecmp.cmp(path, under[0], shallow=False)
