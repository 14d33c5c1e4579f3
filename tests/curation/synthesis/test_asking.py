"""What an instruction must say, and what must not stand beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from practicum.curation.gates.requirements import unstated
from practicum.curation.synthesis.asking import told_in_full
from practicum.curation.synthesis.strategy import Refusal
from practicum.records.task import Task, Verification
from practicum.records.tree import File, Tree

GOLD = """def step(start, stop, by):
    if by == 0:
        raise ZeroDivisionError("no step at all was given")
    found = []
    while start < stop:
        found.append(start)
        start += by
    return found
"""
BROKEN = GOLD.replace('    if by == 0:\n        raise ZeroDivisionError("no step at all was given")\n', "")
TEST = """import pytest
from steps import step


def test_step():
    with pytest.raises({asked}):
        step(1, 2, 0)
    assert step(1, 3, 1) == [1, 2]
"""
CHANGES = {"steps.py": BROKEN.encode()}
RIGHT: Tree = {"steps.py": File(GOLD.encode())}


def _task(asked: str, instruction: str = "Repair it.\n", **files: str) -> Task:
    tests: Tree = {"test_steps.py": File(TEST.format(asked=asked).encode())}
    check = Verification("pytest", tests, ("test_steps.py",), fail_to_pass=("test_steps.py::test_step",))
    tree = {"steps.py": BROKEN} | {name.replace("_py", ".py"): text for name, text in files.items()}
    return Task("steps-1", instruction, {path: File(text.encode()) for path, text in tree.items()}, check)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("ZeroDivisionError", "an error of the type `ZeroDivisionError`."),
        ("(ZeroDivisionError, OverflowError)", "an error of the type `ZeroDivisionError` or `OverflowError`."),
        ("ZeroDivisionError, match='no step at all'", "`ZeroDivisionError` and a message that says `no step at all`."),
    ],
)
def test_what_tests_ask_for_is_said(asked: str, said: str) -> None:
    """An error or a message that nobody could guess is named in the instruction, and then the gate misses nothing."""
    task = _task(asked)
    assert unstated(task, RIGHT)
    told = told_in_full(task, CHANGES, RIGHT)
    assert isinstance(told, Task)
    assert told.instruction.startswith(task.instruction)
    assert said in told.instruction
    assert not unstated(told, RIGHT)
    assert replace(told, instruction=task.instruction) == task


def test_what_is_said_is_not_said_again() -> None:
    """A task whose instruction says it all stays as it is."""
    task = _task("ZeroDivisionError", "A step of 0 is a `ZeroDivisionError`.\n")
    assert told_in_full(task, CHANGES, RIGHT) == task


def test_a_message_that_is_the_answer_makes_no_task() -> None:
    """What cannot be said without a line of the gold is not asked for."""
    task = _task("ZeroDivisionError, match='forgotten: if by == 0:'")
    assert told_in_full(task, CHANGES, RIGHT) == Refusal("its instruction would give the answer away", killed=True)


@pytest.mark.parametrize("copy", [GOLD, GOLD.replace("found", "seen").replace("def step", "def other")])
def test_an_answer_that_stands_elsewhere_makes_no_task(copy: str) -> None:
    """A second copy of the repaired function, also under other names, is within the agent's reach."""
    task = _task("ZeroDivisionError", older_py=f"VERSION = 1\n\n\n{copy}")
    assert told_in_full(task, CHANGES, RIGHT) == Refusal(
        "its answer stands elsewhere in the project", "older.py", killed=True
    )
    assert isinstance(told_in_full(_task("ZeroDivisionError", older_py=BROKEN), CHANGES, RIGHT), Task)
