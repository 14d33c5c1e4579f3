"""Tasksets: folders of task directories.

Owns: `load_taskset`, `read_taskset`.
Invariant: tasks come in the order of their ids. `load_taskset` loads all or nothing; with `read_taskset` a directory
that cannot be used is named with the reason, and keeps no other from being read.
Must not know: what a task is used for.
"""

from __future__ import annotations

from pathlib import Path

from practicum.errors import PracticumError, TaskError
from practicum.records.task import Task
from practicum.tasks.harbor import is_task, load_task


def load_taskset(path: Path | str) -> list[Task]:
    """The tasks at `path`, sorted by id: one task directory, or a folder of them at any depth.

    Hidden folders are passed over. Raises `TaskError` that names the directory when there is no task, when one
    cannot be used, or when two have the same id.
    """
    tasks, refused = _read(path)
    for error in refused.values():
        raise error
    return tasks


def read_taskset(path: Path | str) -> tuple[list[Task], dict[str, str]]:
    """The same tasks as far as they can be used, and by folder below `path` why another cannot.

    Of directories with the same id the first counts, in the order of their paths. Raises `TaskError` only where
    there is no task directory at all.
    """
    tasks, refused = _read(path)
    return tasks, {name: _told(error) for name, error in refused.items()}


def _read(path: Path | str) -> tuple[list[Task], dict[str, PracticumError]]:
    root = Path(path)
    if not root.is_dir():
        raise TaskError(f"{root}: there is no such folder")
    by_id: dict[str, tuple[Task, Path]] = {}
    refused: dict[str, PracticumError] = {}
    for folder, problem in _task_folders(root):
        try:
            if problem is not None:
                raise problem
            task = _load(folder)
            if task.id in by_id:
                raise TaskError(f"{folder}: the id {task.id!r} is already taken by {by_id[task.id][1]}")
            by_id[task.id] = (task, folder)
        except PracticumError as error:
            refused[_name(root, folder)] = error
    if not by_id and not refused:
        raise TaskError(f"{root}: there is no task directory", fix="a task directory holds a task.toml")
    return [by_id[name][0] for name in sorted(by_id)], refused


def _load(folder: Path) -> Task:
    try:
        return load_task(folder)
    except OSError as error:
        raise TaskError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error


def _name(root: Path, folder: Path) -> str:
    """How a refused folder is named: below the set, and in characters that can be printed."""
    name = root.resolve().name if folder == root else folder.relative_to(root).as_posix()
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _told(error: PracticumError) -> str:
    told = f"{error.message} (fix: {error.fix})" if error.fix else error.message
    return told.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _task_folders(folder: Path) -> list[tuple[Path, TaskError | None]]:
    """Task directories in the order of their paths, and folders that cannot be looked into, with the reason."""
    try:
        if is_task(folder):
            return [(folder, None)]
        inner = sorted(folder.iterdir())
    except OSError as error:
        return [(folder, TaskError(f"{folder} cannot be read: {error.strerror}"))]
    found: list[tuple[Path, TaskError | None]] = []
    for path in inner:
        if path.name.startswith(".") or not path.is_dir():
            continue
        if path.is_symlink():
            found.append((path, TaskError(f"{path}: a taskset cannot hold a symbolic link")))
        else:
            found += _task_folders(path)
    return found
