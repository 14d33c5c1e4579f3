"""`practicum tasks synth`: a project becomes a task set, or a message that says why not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli

SOURCE = """def clamp(value, low, high):
    if low > high:
        raise ValueError("low is above high")
    return max(low, min(value, high))


def positions(items, wanted):
    return [at for at, item in enumerate(items) if item == wanted]
"""
TESTS = """import pytest
from ranges import clamp, positions


def test_inside():
    assert clamp(3, 1, 5) == 3


def test_below_and_above():
    assert clamp(0, 1, 5) == 1
    assert clamp(9, 1, 5) == 5


def test_wrong_order():
    with pytest.raises(ValueError):
        clamp(1, 5, 1)


def test_positions():
    assert positions('banana', 'a') == [1, 3, 5]
"""
PROJECT = '[project]\nname = "ranges"\nversion = "2"\nlicense = "MIT"\n'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    for name, text in {"pyproject.toml": PROJECT, "ranges.py": SOURCE, "test_ranges.py": TESTS}.items():
        (folder / name).write_text(text)
    return folder


def test_a_project_becomes_tasks(cli: Cli, repo: Path, tmp_path: Path) -> None:
    """The command writes tasks and one document with the yield by strategy and kind, and where the time went."""
    (repo / "elsewhere").symlink_to("/etc/hostname")
    done = cli("tasks", "synth", repo, "out", "--strategy", "single-bug", "--count", "2", "--json", timeout_s=110)
    assert done.code == 0, done.err
    document = done.document
    assert document["tasks"] == document["kept"] == len(load_taskset(tmp_path / "out")) == 2
    tally = document["strategies"]["single-bug"]
    assert tally["tried"] >= tally["killed"] >= tally["kept"] == 2
    assert sum(kind["tried"] for kind in tally["kinds"].values()) == tally["tried"]
    assert {"baseline", "mutants", "wrong variants", "writing"} <= document["phases"].keys()
    assert document["project"]["name"] == "ranges"
    assert document["steady_tests"] == 4
    assert "symbolic link" in document["not_read"]["elsewhere"]


def test_fewer_than_asked_is_a_negative_result(cli: Cli, repo: Path, tmp_path: Path) -> None:
    """A project that does not give as many tasks as were asked for gives those it can, and exit code 1."""
    (repo / "ranges.py").write_text("def clamp(v, a, b):\n    return v\n\n\ndef positions(i, w):\n    return w\n")
    (repo / "test_ranges.py").write_text(
        "from ranges import clamp\n\n\ndef test_it():\n    assert clamp(3, 1, 5) == 3\n"
    )
    done = cli("tasks", "synth", repo, "out", "--strategy", "single-bug", "--count", "9", timeout_s=110)
    assert done.code == 1, done.err
    assert "single-bug" in done.out
    assert ("no task was made: " in done.out) == ("0 tasks in" in done.out)
    assert "Traceback" not in done.err


def test_a_budget_holds_for_all_of_it(cli: Cli, repo: Path, tmp_path: Path) -> None:
    """A budget that ends before the tests are known is told, with what to do; what was found is kept for the next run.

    That one ends with what to do next."""
    slow = "import time\n\n\ndef test_slow():\n    time.sleep(3)\n"
    (repo / "test_slow.py").write_text(slow)
    short = cli("tasks", "synth", repo, "out", "--strategy", "single-bug", "--budget", "2", timeout_s=110)
    assert short.code == 1, short.err
    assert "the budget ended while baseline: run 1 of 3" in short.out
    assert "run again to go on" in short.out
    assert "no task was made" in short.out
    assert "run 1 of 3 of the untouched suite" in short.err
    (repo / "test_slow.py").write_text(slow.replace("3", "0"))
    done = cli("tasks", "synth", repo, "out", "--strategy", "single-bug", "--count", "1", timeout_s=110)
    assert done.code == 0, done.err
    assert done.out.rstrip().endswith("check them with: practicum tasks check out")
    assert "run 3 of 3 of the untouched suite, with coverage: 5 tests" in done.err
    again = cli("tasks", "synth", repo, "out", "--strategy", "single-bug", "--count", "2", timeout_s=110)
    assert again.code == 0, again.err
    assert "untouched suite" not in again.err
    assert "2 tasks in out, 1 of them from before" in again.out


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("test_ranges.py", None, "no tests"),
        ("pyproject.toml", '[project]\nname = "ranges"\n', "licence"),
        ("test_ranges.py", "def test_a():\n    assert False\n", "pass"),
    ],
)
def test_unfit_projects(cli: Cli, repo: Path, name: str, text: str | None, says: str) -> None:
    """A project without tests, licence or passing tests is told so, with exit code 2 and no traceback."""
    (repo / name).unlink() if text is None else (repo / name).write_text(text)
    done = cli("tasks", "synth", repo, "out", "--count", "1", timeout_s=110)
    assert done.code == 2, done.err
    assert says in done.err
    assert "Traceback" not in done.err


def test_unknown_strategy(cli: Cli, repo: Path) -> None:
    """A strategy that does not exist is named, beside those that do."""
    done = cli("tasks", "synth", repo, "out", "--strategy", "magic", "--json")
    assert done.code == 2
    assert "'magic'" in done.document["error"]["message"]
    assert "single-bug" in done.document["error"]["fix"]
