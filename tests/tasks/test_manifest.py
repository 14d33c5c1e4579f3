"""Keys of `task.toml` that change how a task is judged and rewarded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from practicum.cli.template import template_task
from practicum.errors import TaskError
from practicum.records.task import RewardRule
from practicum.tasks.manifest import manifest_text, read_manifest

TASK = template_task("t")


@pytest.mark.parametrize(
    "rule", [RewardRule(), RewardRule("binary"), RewardRule("default", 0.1, ("style", "types"))], ids=str
)
def test_reward_and_unguarded_survive_the_way_there_and_back(rule: RewardRule) -> None:
    """What is written is read again, and what says nothing is not written."""
    check = replace(TASK.verification, reward=rule, unguarded=("test_frozen.py::*",))
    text = manifest_text(replace(TASK, verification=check))
    read = read_manifest(text, "task.toml").verification
    assert (read.reward, read.unguarded) == (rule, check.unguarded)
    assert ("[practicum.reward]" in text) == (rule != RewardRule())
    assert "unguarded" not in manifest_text(TASK)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('runner = "pytest"', 'runner = "command"\nunguarded = ["x"]', "unguarded"),
        ('split = "train"', 'split = "train"\n[practicum.reward]\ntabel = "x"', "tabel"),
        ('split = "train"', 'split = "train"\n[practicum.reward]\nband = "x"', "band"),
    ],
)
def test_what_cannot_be_meant_is_refused(old: str, new: str, word: str) -> None:
    """By the name of the key."""
    text = manifest_text(TASK)
    assert old in text
    head, _, tail = text.partition(old)
    moved = head + new.partition("\n[")[0] + tail + ("\n[" + new.partition("\n[")[2] + "\n" if "\n[" in new else "")
    with pytest.raises(TaskError, match=word):
        read_manifest(moved, "task.toml")
