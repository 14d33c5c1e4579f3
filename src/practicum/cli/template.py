"""The task that `practicum tasks new` writes: small, complete and valid, to be changed by hand.

Owns: `template_task`.
Invariant: its gold passes and doing nothing fails.
Must not know: how tasks are written to disk.
"""

from __future__ import annotations

from practicum.records.task import Task, Verification
from practicum.records.tree import File

INSTRUCTION = """\
`mean` in `stats.py` must return the arithmetic mean of a non-empty list of numbers, and raise `ValueError` for an
empty list. It does not. Repair it. `python -m pytest -q test_visible.py` shows one case that fails.
"""
STATS = '''\
"""Small statistics."""


def mean(values):
    return sum(values) / (len(values) + 1)


def largest(values):
    return max(values)
'''
VISIBLE = """\
from stats import mean


def test_mean_of_two():
    assert mean([2, 6]) == 4
"""
FROZEN = """\
import pytest

from stats import largest, mean


@pytest.mark.parametrize(("values", "expected"), [([1, 3], 2), ([5], 5), ([-1, 0, 3, 5], 1.75)])
def test_mean(values, expected):
    assert mean(values) == expected


def test_mean_of_nothing():
    with pytest.raises(ValueError):
        mean([])


def test_largest():
    assert largest([2, 9, 4]) == 9
"""
SOLVE = """\
#!/bin/bash
set -eu
cat > stats.py <<'PYTHON'
\"\"\"Small statistics.\"\"\"


def mean(values):
    if not values:
        raise ValueError("the mean of nothing")
    return sum(values) / len(values)


def largest(values):
    return max(values)
PYTHON
"""


def template_task(name: str) -> Task:
    """The template under the id `name`."""
    visible = File(VISIBLE.encode())
    return Task(
        id=name,
        instruction=INSTRUCTION,
        files={"stats.py": File(STATS.encode()), "test_visible.py": visible},
        verification=Verification(
            runner="pytest",
            tests={"test_frozen.py": File(FROZEN.encode()), "test_visible.py": visible},
            files=("test_frozen.py",),
            visible=("test_visible.py",),
            fail_to_pass=(
                "test_frozen.py::test_mean[values0-2]",
                "test_frozen.py::test_mean[values1-5]",
                "test_frozen.py::test_mean[values2-1.75]",
                "test_frozen.py::test_mean_of_nothing",
            ),
            pass_to_pass=("test_frozen.py::test_largest",),
        ),
        editable=("stats.py",),
        solution={"solve.sh": File(SOLVE.encode(), 0o755)},
    )
