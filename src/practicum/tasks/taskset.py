"""Tasksets: folders of task directories.

Owns: `load_taskset`.
Invariant: a taskset is loaded whole, in the order of its ids, or not at all.
Must not know: what a task is used for.
"""

from __future__ import annotations

from pathlib import Path

from practicum.errors import TaskError
from practicum.records.task import Task
from practicum.tasks.harbor import is_task, load_task


def load_taskset(path: Path | str) -> list[Task]:
    """The tasks at `path`, sorted by id: one task directory, or a folder of them at any depth.

    Hidden folders are passed over. Raises `TaskError` that names the directory when there is no task, when one
    cannot be used, or when two have the same id.
    """
    root = Path(path)
    if not root.is_dir():
        raise TaskError(f"{root}: there is no such folder")
    by_id: dict[str, tuple[Task, Path]] = {}
    for folder in _task_folders(root):
        task = load_task(folder)
        if task.id in by_id:
            raise TaskError(f"{folder}: the id {task.id!r} is already taken by {by_id[task.id][1]}")
        by_id[task.id] = (task, folder)
    if not by_id:
        raise TaskError(f"{root}: there is no task directory", fix="a task directory holds a task.toml")
    return [by_id[name][0] for name in sorted(by_id)]


def _task_folders(folder: Path) -> list[Path]:
    if is_task(folder):
        return [folder]
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_dir():
            continue
        if path.is_symlink():
            raise TaskError(f"{path}: a taskset cannot hold a symbolic link")
        found += _task_folders(path)
    return found
