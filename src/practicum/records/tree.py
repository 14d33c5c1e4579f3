"""File trees as data: what a workspace holds, and how one state differs from another.

Owns: `File`, `Tree`, `Change`, canonical digests, diff and apply.
Invariant: paths are relative, normalised, POSIX, and stay inside the tree; same content, same digest.
Must not know: disks, boxes or tasks. No I/O.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from practicum.errors import SubmissionError

ChangeKind = Literal["add", "edit", "delete"]


def digest_of(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_path(path: str) -> str:
    """Return `path` if it is relative, normalised and stays inside; raise `SubmissionError` otherwise."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or any(p in ("", ".", "..") for p in parts):
        raise SubmissionError(f"path {path!r} is not a plain relative path")
    return path


_SHORT = 64 << 10  # bytes of a file of which the digest is kept: tasks of one project are made of the same files


@lru_cache(maxsize=1024)
def _kept_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class File:
    """One regular file: `data` in bytes, `mode` the permission bits (0o644 or 0o755 in practice)."""

    data: bytes
    mode: int = 0o644

    @property
    def digest(self) -> str:
        return _kept_digest(self.data) if len(self.data) <= _SHORT else hashlib.sha256(self.data).hexdigest()


Tree = Mapping[str, File]


def tree_digest(tree: Tree) -> str:
    """Digest of a tree: names, modes and contents, independent of order."""
    return digest_of([[path, tree[path].mode, tree[path].digest] for path in sorted(tree)])


@dataclass(frozen=True, slots=True)
class Change:
    """One changed path. `file` is None exactly when `kind` is `delete`."""

    path: str
    kind: ChangeKind
    file: File | None = None


def diff_trees(before: Tree, after: Tree) -> tuple[Change, ...]:
    """The changes that turn `before` into `after`, sorted by path."""
    changes: list[Change] = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            changes.append(Change(path, "delete"))
        elif path not in before:
            changes.append(Change(path, "add", after[path]))
        elif before[path] != after[path]:
            changes.append(Change(path, "edit", after[path]))
    return tuple(changes)


def apply_changes(tree: Tree, changes: Iterable[Change]) -> dict[str, File]:
    """`tree` with `changes` applied.

    Raises `SubmissionError` when a change does not fit (deletes or edits what is not there, or
    would make a file a folder of another).
    """
    result = dict(tree)
    for change in changes:
        check_path(change.path)
        if change.kind != "add" and change.path not in result:
            raise SubmissionError(f"cannot {change.kind} {change.path!r}: there is no such file")
        if change.kind == "delete":
            del result[change.path]
        elif change.file is None:
            raise SubmissionError(f"{change.kind} of {change.path!r} carries no content")
        else:
            result[change.path] = change.file
    folders = {path[:i] for path in result for i, c in enumerate(path) if c == "/"}
    for path in folders & result.keys():
        raise SubmissionError(f"{path!r} would be both a file and a folder")
    return result


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether `path` matches one of the glob `patterns`; `**` spans folders, `*` does not."""
    return any(_match(path.split("/"), pattern.split("/")) for pattern in patterns)


def _match(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_match(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _match(parts[1:], pattern[1:])


def unified_diff(before: Tree, changes: Iterable[Change]) -> str:
    """`changes` as a git-style unified diff, for people to read. Binary content is only named."""
    out: list[str] = []
    for change in changes:
        old = before.get(change.path)
        new = change.file
        try:
            old_lines, new_lines = _lines(old), _lines(new)
        except UnicodeDecodeError:
            out.append(f"Binary file {change.path} differs ({change.kind})\n")
            continue
        source = f"a/{change.path}" if old else "/dev/null"
        target = f"b/{change.path}" if new else "/dev/null"
        for line in difflib.unified_diff(old_lines, new_lines, source, target):
            out.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(out)


def _lines(file: File | None) -> list[str]:
    # str.splitlines would also split at form feeds and other separators, where no patch does.
    return re.findall(r"[^\n]*\n|[^\n]+", file.data.decode()) if file else []
