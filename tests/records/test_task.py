"""The digest that names a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.tree import File

CHECK = Verification(
    "plain", {"cases.jsonl": File(b"{}")}, fail_to_pass=("a", "b"), plain=PlainCheck("m:f", "cases.jsonl")
)
TASK = Task("one", "Fix it.", {"m.py": File(b"pass")}, CHECK, editable=("*.py",))


@pytest.mark.parametrize(
    "other",
    [
        replace(TASK, instruction="Fix that."),
        replace(TASK, files={"m.py": File(b"pass", 0o755)}),
        replace(TASK, layer="other"),
        replace(TASK, workspace="/work"),
        replace(TASK, editable=("**",)),
        replace(TASK, limits=replace(Limits(), pids=7)),
        replace(TASK, limits=replace(Limits(), command_s=9.5)),
        replace(TASK, verification=replace(CHECK, tests={"cases.jsonl": File(b"[]")})),
        replace(TASK, verification=replace(CHECK, fail_to_pass=("a",))),
        replace(TASK, verification=replace(CHECK, pass_to_pass=("c",))),
        replace(TASK, verification=replace(CHECK, build="make")),
        replace(TASK, verification=replace(CHECK, plain=PlainCheck("m:g", "cases.jsonl"))),
        replace(TASK, verification=replace(CHECK, timeout_s=1.0)),
    ],
    ids=range(13),
)
def test_whatever_decides_the_work_changes_the_digest(other: Task) -> None:
    """Instruction, files, environment, limits and judgement are each part of a task's name."""
    assert other.digest != TASK.digest


@pytest.mark.parametrize(
    "same",
    [
        replace(TASK, id="two"),
        replace(TASK, split="test"),
        replace(TASK, difficulty="hard"),
        replace(TASK, provenance={"seed": 1}),
        replace(TASK, solution={"solve.sh": File(b"")}),
        replace(TASK, verification=replace(CHECK, fail_to_pass=("b", "a"))),
        replace(TASK, verification=replace(CHECK, timeout_s=30)),
        replace(TASK, limits=replace(Limits(), command_s=10, cpus=1)),
    ],
    ids=range(8),
)
def test_what_does_not_decide_the_work_does_not(same: Task) -> None:
    """Where a task came from, how it is filed and how a number is spelled leave its digest alone."""
    assert same.digest == TASK.digest
