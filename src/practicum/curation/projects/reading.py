"""A repository, folder or source distribution as a project.

Owns: `read_project`, `project_of`.
Invariant: nothing of what is read is run or imported; what is left out is told by path and reason in `notes`.
Must not know: environments, boxes.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from practicum.curation.projects.archives import is_archive, read_archive
from practicum.curation.projects.layout import Layout, layout_of
from practicum.curation.projects.licences import licence_of
from practicum.curation.projects.metadata import Metadata, read_metadata
from practicum.curation.projects.project import UNKNOWN_LICENCE, Project
from practicum.errors import SubmissionError, TaskError
from practicum.records.recipe import Recipe
from practicum.records.tree import File, Tree, check_path, tree_digest
from practicum.tasks.folders import file_mode
from practicum.tasks.repositories import open_repository

MAX_BYTES = 64 << 20
MAX_FILE_BYTES = 4 << 20
_MOST_BINARY = 256 << 10  # bytes of a file that is not text; a larger one is left out
_MOST_KEPT = 24 << 20  # bytes of what a box is given
_LEFT_OUT = frozenset(
    [
        *(".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "env", ".eggs", "node_modules", "__pycache__"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".idea", ".vscode", ".github", ".gitlab"),
    ]
)
_IN_EVERY_BOX = frozenset(["pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py"])
_ASKS = re.compile(rb"importlib[._]metadata|pkg_resources")  # for the metadata of what is installed
_BUILT = frozenset(["build", "dist", "htmlcov"])  # at the top: copies of what stands elsewhere


def read_project(
    source: Path | str,
    *,
    rev: str | None = None,
    allow_unlicensed: bool = False,
    layer: str | Recipe = "python",
) -> Project:
    """The project in a folder, in a git repository (its tree at `rev`, HEAD by default) or in a source distribution.

    Raises `TaskError` that says what to do for a project without tests, sources or licence, and for one that is too
    large.
    """
    source = Path(source)
    origin: dict[str, Any]
    if source.is_file() and is_archive(source):
        files, odd = read_archive(source, max_bytes=MAX_BYTES, max_file_bytes=MAX_FILE_BYTES)
        origin = {"kind": "sdist", "file": source.name}
    elif not source.is_dir():
        raise TaskError(
            f"{source}: there is no such folder, repository or source distribution",
            fix="name a folder, a git repository, or an archive (.tar.gz, .zip)",
        )
    elif rev is not None or (source / ".git").exists() or (source / "HEAD").is_file():
        repository = open_repository(source)
        commit = repository.resolve(rev or "HEAD")
        files, odd = repository.tree(commit, max_bytes=MAX_BYTES, max_file_bytes=MAX_FILE_BYTES)
        origin = {"kind": "git", "commit": commit}
    else:
        files, odd = _read_folder(source)
        origin = {"kind": "folder"}
    return project_of(
        files, odd, origin, where=str(source), fallback=_stem(source), allow_unlicensed=allow_unlicensed, layer=layer
    )


def project_of(
    tree: Tree,
    odd: Mapping[str, str],
    origin: Mapping[str, Any],
    *,
    where: str,
    fallback: str = "project",
    allow_unlicensed: bool = False,
    layer: str | Recipe = "python",
) -> Project:
    """The project whose files are `tree`; `odd` says what could not be read. Raises as `read_project`."""
    notes = dict(odd)
    kept = _kept(tree, notes, where)
    metadata = read_metadata(kept)
    kept |= _as_built(kept, metadata, notes, fallback)
    layout = layout_of(kept, metadata)
    notes |= layout.odd
    licence = licence_of(metadata, kept)
    if licence is None and not allow_unlicensed:
        raise TaskError(
            f"{where}: no licence is stated that is known",
            fix="find out whether it may be used; --allow-unlicensed takes it as it is",
        )
    if not layout.test_files:
        raise TaskError(
            f"{where}: there are no tests that pytest would collect (test_*.py, *_test.py)",
            fix="name a project with tests; a source distribution may have left them out",
        )
    if not layout.sources:
        raise TaskError(
            f"{where}: there is no Python source that tests could import: no module at the top or below src/, no folder"
            " with __init__.py, and none that tests import by its name",
            fix="name a Python project whose tests import it from its top folder or from src/",
        )
    _check_reachable(layout, where)
    tests = {path: kept[path] for path in layout.tests}
    files = {path: file for path, file in kept.items() if path not in tests}
    return Project(
        name=_named(metadata, fallback),
        version=metadata.version,
        origin={**origin, "digest": tree_digest(tree)},
        licence=licence or UNKNOWN_LICENCE,
        files=files,
        tests=tests,
        test_files=layout.test_files,
        roots=layout.roots,
        sources=layout.sources,
        layer=layer,
        notes=notes,
    )


def _named(metadata: Metadata, fallback: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", (metadata.name or fallback).lower()).strip("-") or "project"


def _as_built(tree: Tree, metadata: Metadata, notes: dict[str, str], fallback: str) -> dict[str, File]:
    """What the project's build would add that it reads about itself: its version, and its metadata."""
    version = re.sub(r"[^\w.!+]", "", metadata.version) or "0.0.0"
    made: dict[str, File] = {}
    for path in metadata.generated:
        if path not in tree and f"{path.rpartition('/')[0]}/__init__.py" in tree:
            numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
            text = f"__version__ = version = {version!r}\n__version_tuple__ = version_tuple = {numbers!r}\n"
            made[path] = File(text.encode())
    if any(_ASKS.search(file.data) for path, file in tree.items() if path.endswith(".py")):
        name = re.sub(r"[-_.]+", "_", metadata.name or fallback)
        text = f"Metadata-Version: 2.1\nName: {metadata.name or fallback}\nVersion: {version}\n"
        made[f"{name}-{version}.dist-info/METADATA"] = File(text.encode())
    notes |= dict.fromkeys(made, "made here, as the project's build would")
    return made


def _check_reachable(layout: Layout, where: str) -> None:
    """A box looks for a module among its own packages first."""
    start = f"{layout.roots[0]}/" if layout.roots[0] else ""
    tops = {path.removeprefix(start).partition("/")[0].removesuffix(".py") for path in layout.sources}
    if taken := sorted(tops & (_IN_EVERY_BOX | sys.stdlib_module_names)):
        raise TaskError(
            f"{where}: tests in a box would import {taken[0]!r} from the box itself, not from the project",
            fix="such a project cannot be used",
        )


def _stem(source: Path) -> str:
    name = source.resolve().name
    name = re.sub(r"\.(tar\.\w+|tgz|tar|zip|git)$", "", name)
    return re.sub(r"-\d[\w.]*$", "", name)


def _read_folder(folder: Path) -> tuple[dict[str, File], dict[str, str]]:
    files: dict[str, File] = {}
    odd: dict[str, str] = {}
    left = MAX_BYTES
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted([*names, *(n for n in folders if Path(place, n).is_symlink())]):
            path = Path(place, name)
            relative = path.relative_to(folder).as_posix()
            found = path.lstat()
            if (why := _odd_file(relative, found)) is not None:
                odd[os.fsencode(relative).decode("utf-8", "backslashreplace")] = why
                continue
            left -= found.st_size
            if left < 0:
                raise TaskError(f"{folder}: its files come to more than {MAX_BYTES} bytes", fix="take less of it")
            files[relative] = File(path.read_bytes(), file_mode(found.st_mode))
    return files, odd


def _odd_file(relative: str, found: os.stat_result) -> str | None:
    try:
        relative.encode()
        check_path(relative)
    except (UnicodeEncodeError, SubmissionError):
        return "unusable name"
    if stat.S_ISLNK(found.st_mode):
        return "symbolic link"
    if not stat.S_ISREG(found.st_mode):
        return "special file"
    return f"larger than {MAX_FILE_BYTES} bytes" if found.st_size > MAX_FILE_BYTES else None


def _kept(tree: Tree, notes: dict[str, str], where: str) -> dict[str, File]:
    """`tree` without histories, caches, builds and large files that are not text."""
    kept: dict[str, File] = {}
    for path in sorted(tree):
        parts = path.split("/")
        built = parts[0] in _BUILT and len(parts) > 1
        if built or path.endswith((".pyc", ".pyo")) or _LEFT_OUT & set(parts[:-1]):
            continue
        if any(part.endswith(".egg-info") for part in parts[:-1]):
            continue
        file = tree[path]
        if len(file.data) > _MOST_BINARY and b"\0" in file.data[:8192]:
            notes[path] = f"binary file of {len(file.data)} bytes"
            continue
        kept[path] = file if file.mode in (0o644, 0o755) else File(file.data, file_mode(file.mode))
    if sum(len(file.data) for file in kept.values()) > _MOST_KEPT:
        raise TaskError(f"{where}: its files come to more than {_MOST_KEPT} bytes, which no box is given")
    return kept
