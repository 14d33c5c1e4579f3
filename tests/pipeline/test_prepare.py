"""Tasks of a run on disk, and what the warm start makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.config.sections import TasksConfig
from practicum.errors import StoreError, TaskError
from practicum.pipeline.prepare import lay_tasks, read_tasks, train_tokenizer
from practicum.policies.demonstrator import demonstration

FEW = TasksConfig(train=3, validation=1, test=2)


def test_tasks_are_laid_whole_and_read_back(tmp_path: Path) -> None:
    """The run trains on what stands on disk, each split as large as asked for."""
    lay_tasks(FEW, tmp_path / "tasks")
    tasks = read_tasks(tmp_path / "tasks")
    assert [task.split for task in tasks] == ["test", "test", "train", "train", "train", "validation"]
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


def test_a_taskset_is_laid_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where laying fails, no smaller taskset is left that a resume would take for the run's own."""
    target = tmp_path / "tasks"
    target.mkdir()
    (target / "taken").write_text("")
    with pytest.raises(StoreError, match="cannot write the tasks"):
        lay_tasks(FEW, target)
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


def test_a_leftover_draft_is_not_mixed_in(tmp_path: Path) -> None:
    """What an interrupted attempt at laying left does not become part of the next one."""
    (tmp_path / ".tmp-tasks" / "train-9999").mkdir(parents=True)
    lay_tasks(FEW, tmp_path / "tasks")
    assert len(list((tmp_path / "tasks").iterdir())) == 6


def test_tasks_of_ones_own_need_every_split(tmp_path: Path) -> None:
    """A folder without held-out tasks is refused by the name of the missing split."""
    lay_tasks(FEW, tmp_path / "tasks")
    for path in (tmp_path / "tasks").glob("validation-*"):
        path.rename(tmp_path / path.name)
    with pytest.raises(TaskError, match="validation"):
        lay_tasks(TasksConfig(path=str(tmp_path / "tasks")), tmp_path / "again")


def test_the_tokenizer_spells_right_repairs_in_few_tokens(tmp_path: Path) -> None:
    """Every right demonstration fits the quickstart's budget of tokens for a turn."""
    lay_tasks(TasksConfig(train=60, validation=1, test=1), tmp_path / "tasks")
    tasks = read_tasks(tmp_path / "tasks")
    tokenizer = train_tokenizer(tasks)
    longest = max(
        len(tokenizer.encode_action(text))
        for task in tasks
        if task.split == "train"
        for text in demonstration(task, seed=0, correct_rate=1.0)
    )
    assert longest <= 16
