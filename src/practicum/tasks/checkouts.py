"""Folders of cloned repositories, found by the name that rows give them, and the states that tasks start from.

Owns: `Checkouts`, `Base`.
Invariant: a name never leads outside the folder; what a commit holds that a task cannot is refused or told, never
silently left out.
Must not know: rows, which files are tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from practicum.errors import TaskError
from practicum.records.tree import File
from practicum.tasks.importing import NO_LICENCE_FIX, Licences
from practicum.tasks.repositories import Repository, open_repository

_NAME = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?")
_REFUSED = ("submodule", "git-lfs pointer")  # what they stand for is not in the repository


@dataclass(frozen=True, slots=True)
class Base:
    """A commit's files. `left_out` maps paths of what a task cannot hold (links, very large files) to its kind."""

    commit: str
    files: Mapping[str, File]
    left_out: Mapping[str, str]
    licence: str


@dataclass(slots=True)
class Checkouts:
    """The clones below `folder`, opened once each."""

    folder: Path
    licence_of: Licences
    allow_unlicensed: bool = False
    _open: dict[Path, Repository] = field(default_factory=dict)

    def find(self, name: str) -> Repository:
        """The clone of `owner/name`: in `owner__name`, `owner/name`, `owner+name` or `name`, or in `repo` below it.

        A name without its owner stands for the only clone of that name. Raises `TaskError` where there is none.
        """
        if not _NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
            raise TaskError(f"{name!r} is no name of a repository")
        flat = [name.replace("/", mark) for mark in ("__", "/", "+")]
        places = [self.folder / each for each in (*flat, name.rpartition("/")[2])]
        if "/" not in name:
            owned = [place for mark in ("__", "/", "+") for place in sorted(self.folder.glob(f"*{mark}{name}"))]
            places += owned if len(owned) == 1 else []
        for place in [inner for each in places for inner in (each, each / "repo", each.with_name(f"{each.name}.git"))]:
            if (place / ".git").exists() or (place / "HEAD").is_file():
                return self.at(place)
        raise TaskError(
            f"there is no clone of {name} in {self.folder}", fix=f"git clone it into {self.folder / flat[0]}"
        )

    def at(self, path: Path) -> Repository:
        """The repository at `path`. Raises what `open_repository` raises."""
        if path not in self._open:
            self._open[path] = open_repository(path)
        return self._open[path]

    def base(self, repository: Repository, revision: str) -> Base:
        """What a task starts from. Raises `TaskError` for submodules, for pointers, and where there is no licence."""
        commit = repository.resolve(revision)
        files, irregular = repository.tree(commit)
        for path, kind in sorted(irregular.items()):
            if kind in _REFUSED:
                raise TaskError(
                    f"{repository.path.name} at {commit[:12]}: {path!r} is a {kind}, which no task can hold"
                )
        licence = self.licence_of(files)
        if licence is None and not self.allow_unlicensed:
            raise TaskError(
                f"{repository.path.name} at {commit[:12]} carries no licence that is known", fix=NO_LICENCE_FIX
            )
        return Base(commit, files, irregular, licence or "unknown")
