"""Golds that are changes to files: what an oracle's box is given to make them.

Owns: `solution_of`, `changes_of`.
Invariant: running `solve.sh` in the untouched workspace makes exactly the changes, and `changes_of` reads them back.
Must not know: formats, boxes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from practicum.records.tree import Change, File, Tree, diff_trees

_FILES = "files/"
_REMOVED = "removed.txt"


def solution_of(changes: Iterable[Change], workspace: str = "/app") -> dict[str, File]:
    """`solve.sh`, and below `files/` what it copies into `workspace`; `removed.txt` lists what it removes first."""
    tree: dict[str, File] = {}
    lines = ["#!/bin/sh", "set -e", f"cd {shlex.quote(workspace)}"]
    removed: list[str] = []
    modes: list[str] = []
    for change in changes:
        if change.file is None:
            removed.append(change.path)
            lines.append(f"rm -f -- {shlex.quote(change.path)}")
        else:
            tree[_FILES + change.path] = change.file
            modes.append(f"chmod {change.file.mode:o} -- {shlex.quote(change.path)}")
    if tree:
        lines += ["cp -R /solution/files/. .", *modes]
    if removed:
        tree[_REMOVED] = File("".join(f"{path}\n" for path in removed).encode())
    return {"solve.sh": File("".join(f"{line}\n" for line in lines).encode(), 0o755), **tree}


def changes_of(solution: Tree, files: Tree) -> tuple[Change, ...] | None:
    """The changes that `solution_of` made `solution` from, against the workspace `files`; None for another gold."""
    after = dict(files)
    gone = solution[_REMOVED].data.decode().splitlines() if _REMOVED in solution else []
    for path in gone:
        after.pop(path, None)
    after |= {path.removeprefix(_FILES): file for path, file in solution.items() if path.startswith(_FILES)}
    return diff_trees(files, after) if _made_here(solution) else None


def _made_here(solution: Tree) -> bool:
    return set(solution) == {
        path for path in solution if path.startswith(_FILES) or path in (_REMOVED, "solve.sh")
    } and ("solve.sh" in solution and len(solution) > 1)
