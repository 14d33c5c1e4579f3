"""Tasksets load whole, in order, or not at all; or as far as they can be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from practicum.errors import TaskError
from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import save_task
from practicum.tasks.taskset import load_taskset, read_taskset


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


def _spoil(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def _pipe(folder: Path) -> None:
    (folder / "task.toml").unlink()
    os.mkfifo(folder / "task.toml")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_spoil("task.toml", b"x=["), "not valid TOML"),
        (_spoil("task.toml", b"x=" + b"[" * 100_000), "not valid TOML"),
        (_spoil("task.toml", b"x=" + b"9" * 10_000), "not valid TOML"),
        (_spoil("task.toml", b"\xff"), "UTF-8"),
        (_spoil("task.toml", b'[task]\nname = "../up"\n'), "'../up' cannot be used"),
        (lambda folder: (folder / "instruction.md").unlink(), "instruction.md is missing"),
        (_spoil("environment/Dockerfile", b"FROM python\nVOLUME /x\n"), "VOLUME"),
        (lambda folder: (folder / "tests/link").symlink_to("/etc"), "symbolic link"),
        (lambda folder: os.mkfifo(folder / "tests/pipe"), "special file"),
        (_pipe, "task.toml is not a regular file"),
        (lambda folder: save_task(task("good"), folder.parent / "b-twin"), "'good' is already taken by"),
        (lambda folder: (folder.parent / "b-link").symlink_to("a"), "symbolic link"),
    ],
)
def test_what_cannot_be_read_keeps_no_other_from_being_read(
    tmp_path: Path, spoil: Callable[[Path], object], words: str
) -> None:
    """The folder is named below the set, with the reason; the strict reading refuses the set for it."""
    save_task(task("good"), tmp_path / "set/a")
    save_task(task("bad"), tmp_path / "set/b")
    spoil(tmp_path / "set/b")
    tasks, refused = read_taskset(tmp_path / "set")
    assert "good" in [one.id for one in tasks]
    ((folder, reason),) = refused.items()
    assert folder in ("b", "b-twin", "b-link")
    assert words in reason
    with pytest.raises(TaskError):
        load_taskset(tmp_path / "set")


def test_a_set_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    """One directory that is no task is named by its own name; a folder without any is an error all the same."""
    save_task(task("a"), tmp_path / "a")
    (tmp_path / "a/task.toml").write_text("x=[")
    tasks, refused = read_taskset(tmp_path / "a")
    assert (tasks, list(refused)) == ([], ["a"])
    (tmp_path / "none").mkdir()
    with pytest.raises(TaskError, match="there is no"):
        read_taskset(tmp_path / "none")


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    """A folder whose name is not UTF-8 is named so that any output can hold it."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    folder.mkdir()
    (folder / "task.toml").write_text("x=[")
    (_, refused) = read_taskset(tmp_path)
    assert all("odd" in text for pair in refused.items() for text in pair)
    "".join((*refused, *refused.values())).encode()
