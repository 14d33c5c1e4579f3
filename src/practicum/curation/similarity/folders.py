"""Task sets on disk as sequences that hold one task at a time.

Owns: `TaskFolders`, `JoinedFolders`.
Invariant: nothing but the folders' names is kept; a task is read each time that it is asked for.
Must not know: what the tasks are compared for.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import overload

from practicum.errors import TaskError
from practicum.records.task import Task
from practicum.tasks.harbor import is_task, load_task


class TaskFolders(Sequence[Task]):
    """The task directories at `root`, at any depth, in the order of their paths; hidden folders are passed over.

    Indexing and iterating raise `TaskError` for a directory that cannot be used; `folder(i)` names it.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise TaskError(f"{self.root}: there is no such folder")
        self._names = sorted(_walk(self.root, ""))
        if not self._names:
            raise TaskError(f"{self.root}: there is no task directory", fix="a task directory holds a task.toml")

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return load_task(self.folder(index))

    def folder(self, index: int) -> Path:
        """Where task number `index` lies."""
        return self.root / self._names[index]

    def relative(self, index: int) -> str:
        """The same below `root`; empty where `root` itself is the task."""
        return self._names[index]


class JoinedFolders(Sequence[Task]):
    """Several task sets on disk as one sequence; ids may occur in more than one of them."""

    def __init__(self, sets: Sequence[TaskFolders]) -> None:
        self._sets = tuple(sets)
        self._ends = list(accumulate(map(len, sets)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return load_task(self.folder(index))

    def folder(self, index: int) -> Path:
        """Where task number `index` lies."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = bisect_right(self._ends, index)
        return self._sets[number].folder(index - (self._ends[number] - len(self._sets[number])))


def _walk(root: Path, name: str) -> list[str]:
    if is_task(root / name):
        return [name]
    found: list[str] = []
    with os.scandir(root / name) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            if entry.is_symlink():
                raise TaskError(f"{entry.path}: a taskset cannot hold a symbolic link")
            found += _walk(root, f"{name}/{entry.name}" if name else entry.name)
    return found
