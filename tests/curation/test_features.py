"""What can be seen of a task without attempting it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.features import Features, explain, features_of
from practicum.records.task import Task, Verification
from practicum.records.tree import Change, File

BEFORE = b"""import sys


def plain(a):
    return a


@wrapped
def branching(a, b):
    if a and b or sys:
        return 1
    for x in [y for y in a if y]:
        try:
            print(x)
        except ValueError:
            return 2
    return 3 if a else 4
"""
TASK = Task(
    "t",
    "Repair branching in m.py.",
    {"m.py": File(BEFORE), "notes.txt": File(b"one\ntwo\n")},
    Verification("pytest", {}, fail_to_pass=("a",), pass_to_pass=("b", "c")),
)


def test_sizes_without_a_gold() -> None:
    """Statement, workspace and tests are counted; what needs the gold is unknown."""
    found = features_of(TASK)
    assert (found.workspace_files, found.statement_words, found.tests, found.fail_to_pass) == (2, 4, 3, 1)
    assert found.workspace_lines == BEFORE.count(b"\n") + 2
    assert found.hunks is found.function_branches is found.changed_files is None


def test_sizes_of_the_change() -> None:
    """Files, hunks and lines of the change are counted, and the decisions of the function it lies in."""
    after = BEFORE.replace(b"return 1", b"return 10").replace(b"return 2", b"return 20\n            pass")
    found = features_of(TASK, [Change("m.py", "edit", File(after)), Change("new.py", "add", File(b"x = 1\n"))])
    assert (found.changed_files, found.hunks, found.lines_added, found.lines_removed) == (2, 3, 4, 2)
    assert found.function_lines == 10
    # if, two of `and`/`or`, for, comprehension, except, conditional expression: seven decisions, and one
    assert found.function_branches == 8


def test_source_that_does_not_parse_is_no_obstacle() -> None:
    """A workspace that is broken on purpose still has its other sizes."""
    broken = Task("t", "do", {"m.py": File(b"def f(:\n")}, Verification("pytest", {}))
    found = features_of(broken, [Change("m.py", "edit", File(b"def f():\n    pass\n"))])
    assert found.hunks == 1
    assert found.function_lines is None


def test_explanations_are_rank_correlations() -> None:
    """What rises as success falls correlates by −1; what does not vary is left out."""
    rows = [(Features(1, 10 * n, 5, 2, 1, hunks=n), 1.0 - n / 10) for n in range(1, 6)]
    found = explain(rows)
    assert found == {"workspace_lines": pytest.approx(-1.0), "hunks": pytest.approx(-1.0)}
    assert explain(rows[:2]) == {}


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=20))
def test_correlations_are_bounded(pairs: list[tuple[int, float]]) -> None:
    """Every correlation lies in [−1, 1], whatever the ties."""
    for rho in explain((Features(n, n, 1, 1, 1), rate) for n, rate in pairs).values():
        assert -1.0 - 1e-9 <= rho <= 1.0 + 1e-9
