"""Frozen scripts reach the submission through `remote` only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.tasks.humanevalpack import read_rows

SAMPLE = Path(__file__).parents[2] / "tasks" / "data" / "humanevalfix-sample.jsonl"


@pytest.mark.parametrize("task", read_rows(SAMPLE)[0], ids=lambda task: task.id)
def test_imported_repairs_are_told_apart(bench: Any, task: Task) -> None:
    """Gold passes and the untouched program fails, for rows that nobody here wrote."""
    task = replace(task, verification=replace(task.verification, timeout_s=2.0))  # one of them never ends
    gold = task.solution["solution.py"].data.decode()
    assert bench.judge(task, {"solution.py": gold}).passed
    verdict = bench.judge(task)
    assert (verdict.outcome, verdict.reward) == ("failed", -0.2)


def scripted(script: str) -> Task:
    check = Verification("command", {"s.py": File(script.encode())}, ("s.py",), (), ("s.py",), timeout_s=5.0)
    return Task(id="t", instruction="x", files={}, verification=check)


CODE = """
import pkg.inner

class Counter:
    @staticmethod
    def up(n, *, by=1):
        return n + by

def fail(name):
    raise {"v": ValueError, "x": SystemExit}[name]("no")

def odd():
    return object()
"""


@pytest.mark.parametrize(
    ("script", "passes"),
    [
        ('assert remote("m:Counter.up")(1, by=2) == 3', True),
        ('assert remote("pkg.inner:f")((1, {2}), b"x") == [(1, {2}), b"x"]', True),
        ('try:\n    remote("m:fail")("v")\nexcept ValueError:\n    pass\nelse:\n    raise SystemExit', True),
        ('remote("m:fail")("x")', False),
        ('remote("m:odd")()', False),
        ('remote("m:missing")()', False),
        ('remote("absent:f")()', False),
        ('remote("json:dumps")(1)', False),
        ("import m", False),
        ("raise SystemExit(0)", False),
        ("import os; os._exit(0)", False),
        ("print('{\"ok\":true}')\nassert False", False),
    ],
)
def test_scripts_pass_by_running_to_their_end(bench: Any, script: str, passes: bool) -> None:
    """Values, methods, packages and built-in exceptions cross; anything but the end of the script is a failure."""
    files: dict[str, str | None] = {
        "m.py": CODE,
        "pkg/__init__.py": "",
        "pkg/inner.py": "def f(*a):\n    return list(a)\n",
    }
    assert bench.judge(scripted(script), files).passed == passes
