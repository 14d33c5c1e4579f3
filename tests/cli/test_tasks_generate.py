"""`practicum tasks generate` writes task directories."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from practicum.tasks.taskset import load_taskset


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "practicum", "tasks", "generate", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_tasks_are_written(tmp_path: Path) -> None:
    """What is told is what lies there, in the split that was asked for."""
    done = run("data-cleaning", str(tmp_path / "out"), "--count", "2", "--seed", "4", "--split", "test", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    tasks = load_taskset(tmp_path / "out")
    assert sorted(document["tasks"]) == [task.id for task in tasks]
    assert {task.split for task in tasks} == {"test"}
    assert {task.domain for task in tasks} == {"data-cleaning"}
    told = run("scripts", str(tmp_path / "more"), "--count", "1")
    assert f"next: practicum tasks check {tmp_path / 'more'}" in told.stdout


def test_an_unknown_kind_is_bad_input(tmp_path: Path) -> None:
    """The message names what there is."""
    done = run("poems", str(tmp_path))
    assert done.returncode == 2
    assert "data-cleaning" in done.stderr
    assert "Value error" not in done.stderr
