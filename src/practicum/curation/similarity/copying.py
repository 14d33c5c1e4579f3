"""A new task set from an old one: chosen tasks, under the splits that they now have.

Owns: `write_set`, `check_out`.
Invariant: the old set is only read; a task that keeps its split is copied as it is, byte for byte; the new set appears
whole or not at all.
Must not know: why tasks were chosen.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from practicum.curation.similarity.folders import TaskFolders
from practicum.errors import TaskError
from practicum.tasks.folders import replace_folder
from practicum.tasks.harbor import save_task


def check_out(out: Path, source: Path) -> None:
    """Raise `TaskError` where `out` holds something already, or would become a part of the set `source` itself."""
    if out.resolve().is_relative_to(source.resolve()):
        raise TaskError(f"{out} lies in {source}, which would hold its tasks twice", fix="name a folder beside it")
    if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
        raise TaskError(f"{out} is there already", fix="name a folder that does not exist yet, or an empty one")


def write_set(
    source: TaskFolders, places: Mapping[int, str], out: Path, *, on_done: Callable[[], None] = lambda: None
) -> None:
    """Write the tasks at `places` of `source`, which name the split of each, below `out`; licences come along.

    Raises `TaskError` as `check_out` and `save_task` do.
    """
    check_out(out, source.root)
    with replace_folder(out) as fresh:
        for file in sorted(source.root.iterdir()):
            if file.is_file() and not file.is_symlink() and file.name.upper().startswith(("LICEN", "NOTICE")):
                shutil.copy2(file, fresh / file.name)
        for place, split in sorted(places.items()):
            task = source[place]
            target = fresh / (source.relative(place) or task.id)
            if task.split == split:
                shutil.copytree(source.folder(place), target, dirs_exist_ok=True)
            else:
                save_task(replace(task, split=split), target)
            on_done()
