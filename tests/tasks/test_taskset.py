"""Tasksets load whole, in order, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.errors import TaskError
from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import save_task
from practicum.tasks.taskset import load_taskset


def task(name: str) -> Task:
    check = Verification("command", {"t.sh": File(b"")}, files=("t.sh",), fail_to_pass=("t.sh",))
    return Task(id=name, instruction="Do it.", files={}, verification=check)


def test_tasks_come_sorted_from_any_depth(tmp_path: Path) -> None:
    """Nested folders are searched, loose files and hidden folders passed over, and ids give the order."""
    for place, name in (("train/2", "b"), ("train/1", "c"), ("x", "a")):
        save_task(task(name), tmp_path / place)
    (tmp_path / "README.md").write_text("about")
    (tmp_path / ".git").mkdir()
    assert [one.id for one in load_taskset(tmp_path)] == ["a", "b", "c"]
    assert [one.id for one in load_taskset(tmp_path / "x")] == ["a"]


def test_a_bad_task_is_named(tmp_path: Path) -> None:
    """One unusable task refuses the set, and the message says which."""
    save_task(task("a"), tmp_path / "a")
    save_task(task("b"), tmp_path / "b")
    (tmp_path / "b" / "task.toml").unlink()
    with pytest.raises(TaskError, match=r"b: task\.toml is missing"):
        load_taskset(tmp_path)


def test_ids_are_unique(tmp_path: Path) -> None:
    """Two directories with one id are refused, both named."""
    save_task(task("a"), tmp_path / "one")
    save_task(task("a"), tmp_path / "two")
    with pytest.raises(TaskError, match=r"two.*already taken.*one"):
        load_taskset(tmp_path)


@pytest.mark.parametrize("make", [True, False])
def test_no_task_is_an_error(tmp_path: Path, make: bool) -> None:
    """An empty or absent folder is no taskset."""
    folder = tmp_path / "set"
    if make:
        (folder / "inner").mkdir(parents=True)
    with pytest.raises(TaskError, match="there is no"):
        load_taskset(folder)


def test_linked_tasks_are_refused(tmp_path: Path) -> None:
    """A link to a task directory is not followed."""
    save_task(task("a"), tmp_path / "real")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "link").symlink_to(tmp_path / "real")
    with pytest.raises(TaskError, match="symbolic link"):
        load_taskset(tmp_path / "set")
