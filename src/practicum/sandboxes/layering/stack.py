"""Folders stacked upon each other, read as one.

Owns: whiteouts and opaque folders, looking up a path in a stack, merging a stack, what a layer's places resolve to.
Invariant: no link is ever followed by the host: a link is an answer, or is resolved within the layer.
Must not know: who makes the folders or mounts them.

A stack is a tuple of folders, topmost first. As in the kernel's overlay, a character device 0:0 hides what is below it,
and a folder with the attribute `user.overlay.opaque` shows nothing of the folders below.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from practicum.errors import CreateFailed

Parts = Mapping[str, tuple[str, ...]]  # place in the box → host folders, topmost first
_OPAQUE = "user.overlay.opaque"
_MOST_LINKS = 40


def is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(folder: str | Path) -> bool:
    """Whether the folder hides those below it."""
    try:
        return os.getxattr(folder, _OPAQUE, follow_symlinks=False) == b"y"
    except OSError:  # no such attribute, or a file system that has none
        return False


def make_opaque(folder: str | Path) -> None:
    os.setxattr(folder, _OPAQUE, b"y", follow_symlinks=False)


def at(stack: tuple[str, ...], path: str) -> tuple[str, ...]:
    """What is at the relative `path` of a stack: the stack of a folder, or the one file or link, or nothing."""
    current = stack
    for part in path.split("/") if path else ():
        found: list[str] = []
        for folder in current:
            candidate = f"{folder}/{part}"
            try:
                status = os.lstat(candidate) if stat.S_ISDIR(os.lstat(folder).st_mode) else None
            except FileNotFoundError:
                continue
            if status is None or is_whiteout(status):
                break
            if not stat.S_ISDIR(status.st_mode):
                if not found:
                    found.append(candidate)
                break
            found.append(candidate)
            if is_opaque(candidate):
                break
        current = tuple(found)
    return current


def part_of(parts: Parts, path: str) -> str | None:
    """The innermost place that holds the absolute `path`, or None."""
    inside = [place for place in parts if path == place or path.startswith(place + "/")]
    return max(inside, key=len, default=None)


def folders(parts: Parts, path: str) -> tuple[str, ...]:
    """What a layer holds at the absolute `path`, as `at` gives it. Links on the way are not followed."""
    place = part_of(parts, path)
    return () if place is None else at(parts[place], path[len(place) + 1 :])


def resolve(parts: Parts, links: Mapping[str, str], path: str) -> str:
    """`path` in the box with every link on it followed inside the layer; it need not exist.

    `links` maps places to their targets. Raises `CreateFailed` for links in a circle.
    """
    done, rest, count = "", [part for part in path.split("/") if part], 0
    while rest:
        candidate = posixpath.normpath(f"{done}/{rest.pop(0)}")
        target = links.get(candidate)
        if target is None:
            here = folders(parts, candidate)
            if here and stat.S_ISLNK(os.lstat(here[0]).st_mode):
                target = os.readlink(here[0])  # noqa: PTH115
        if target is None:
            done = "" if candidate == "/" else candidate
            continue
        count += 1
        if count > _MOST_LINKS:
            raise CreateFailed(f"{path!r} leads through links in a circle")
        rest = [*(part for part in target.split("/") if part not in ("", ".")), *rest]
        if target.startswith("/"):
            done = ""
    return done or "/"


def merge(stack: tuple[str, ...], target: Path) -> None:
    """Copy what a stack shows into the folder `target`, which exists. Times and modes are kept."""
    names: dict[str, None] = {}
    for folder in stack:
        names.update(dict.fromkeys(os.listdir(folder)))  # noqa: PTH208
    for name in sorted(names):
        found = at(stack, name)
        if not found:
            continue
        status = os.lstat(found[0])
        copy = target / name
        if stat.S_ISDIR(status.st_mode):
            copy.mkdir()
            merge(found, copy)
            os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        elif stat.S_ISLNK(status.st_mode):
            copy.symlink_to(os.readlink(found[0]))  # noqa: PTH115
        elif stat.S_ISREG(status.st_mode):
            shutil.copy2(found[0], copy, follow_symlinks=False)


def mount_points(parts: Parts, place: str, folder: Path) -> None:
    """Make in `folder`, which will be `place`, what the places below it are mounted on."""
    for other, stack in parts.items():
        if other.startswith(place + "/") and stack:
            point = folder / other[len(place) + 1 :]
            is_file = stat.S_ISREG(os.lstat(stack[0]).st_mode)
            point.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                point.touch(0o444, exist_ok=False) if is_file else point.mkdir()
