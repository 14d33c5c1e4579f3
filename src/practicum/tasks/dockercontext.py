"""What a COPY takes from the files beside a Dockerfile.

Owns: `chosen`.
Invariant: nothing outside the folder is taken, and a source that matches nothing is an error.
Must not know: where it is copied to.
"""

from __future__ import annotations

import fnmatch
import posixpath

from practicum.records.tree import Tree


def chosen(context: Tree, source: str) -> tuple[dict[str, str], bool]:
    """For one source: name below the target → path of the context; and whether it is a folder, or several.

    As Docker does, a folder gives what is in it and not itself. Raises `ValueError` saying why nothing can be taken.
    """
    path = posixpath.normpath(source.lstrip("/") or ".")
    if path == ".." or path.startswith("../"):
        raise ValueError(f"{source!r} is outside the folder of the Dockerfile")
    if path in context:
        return {posixpath.basename(path): path}, False
    if below := _inside(context, "" if path == "." else path + "/"):
        return below, True
    found: dict[str, str] = {}
    depth = path.count("/") + 1
    for head in sorted({"/".join(name.split("/")[:depth]) for name in context if name.count("/") + 1 >= depth}):
        if fnmatch.fnmatchcase(head, path):
            found |= {posixpath.basename(head): head} if head in context else _inside(context, head + "/")
    if not found:
        raise ValueError(f"{source!r} is not there")
    return found, len(found) > 1


def _inside(context: Tree, folder: str) -> dict[str, str]:
    return {name[len(folder) :]: name for name in context if name.startswith(folder)}
