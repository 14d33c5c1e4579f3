"""`practicum tasks import` and `export`, as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli

HUMANEVAL = {
    "task_id": "Python/7",
    "declaration": "def double(x):\n",
    "canonical_solution": "    return 2 * x\n",
    "buggy_solution": "    return x\n",
    "bug_type": "value misuse",
    "failure_symptoms": "incorrect output",
    "entry_point": "double",
    "test": "def check(double):\n    assert double(2) == 4\n\ncheck(double)",
    "example_test": "def check(double):\n    assert double(0) == 0\n\ncheck(double)",
    "instruction": "Write a Python function `double(x)`.",
}
BUG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = """\
from calc import add


def test_add():
    assert add(1, 2) == 3


def test_zero():
    assert add(1, 0) == 1
"""
PATCH = "--- a/calc.py\n+++ b/calc.py\n@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"
LICENCE = "Permission is hereby granted, free of charge, to any person obtaining a copy\n"
NAMES = ("tests/test_calc.py::test_add", "tests/test_calc.py::test_zero")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The one commit of a repository in repos/ada__calc."""
    folder = tmp_path / "repos" / "ada__calc"
    write(folder, {"calc.py": BUG, "tests/test_calc.py": TEST, "LICENSE": LICENCE})
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *own, *words], cwd=folder, env=env, check=True, timeout=30)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, env=env, check=True, capture_output=True, timeout=30
    )
    return done.stdout.decode().strip()


def test_humanevalpack(cli: Cli, tmp_path: Path) -> None:
    """Rows become task directories; a bad one is told by item, the others are written, and the exit code says so."""
    (tmp_path / "rows.jsonl").write_text(json.dumps(HUMANEVAL) + "\n")
    done = cli("tasks", "import", "humanevalpack", "rows.jsonl", "out", "--json")
    assert done.code == 0, done.err
    assert done.document["tasks"] == [task.id for task in load_taskset(tmp_path / "out")]
    (tmp_path / "rows.jsonl").write_text("{}\n" + json.dumps(HUMANEVAL) + "\n")
    partly = cli("tasks", "import", "humanevalpack", "rows.jsonl", "some", "--json")
    assert partly.code == 1
    assert (partly.document["tasks"], list(partly.document["refused"])) == (
        ["humanevalpack-python-7"],
        ["rows.jsonl line 1"],
    )


def test_quixbugs(cli: Cli, tmp_path: Path) -> None:
    """Programs become tasks with their tests sorted by what the buggy one does; one that cannot is told by name."""
    sample = Path(__file__).parents[1] / "tasks" / "data" / "quixbugs-sample.jsonl"
    rows = {json.loads(line)["name"]: line + "\n" for line in sample.read_text().splitlines()}
    (tmp_path / "rows.jsonl").write_text(rows["gcd"] + rows["detect_cycle"] + json.dumps({"name": "lost"}) + "\n")
    done = cli("tasks", "import", "quixbugs", "rows.jsonl", "out", "--json")
    assert done.code == 1, done.err
    tasks = {task.id: task.verification for task in load_taskset(tmp_path / "out")}
    assert sorted(done.document["tasks"]) == sorted(tasks)
    assert list(done.document["refused"]) == ["lost"]
    assert tasks["quixbugs-gcd"].pass_to_pass == ("case-1",)
    assert len(tasks["quixbugs-gcd"].fail_to_pass) == 5
    assert tasks["quixbugs-detect_cycle"].fail_to_pass == ("test_detect_cycle.py::test4",)
    assert len(tasks["quixbugs-detect_cycle"].pass_to_pass) == 5
    assert cli("tasks", "import", "quixbugs", "nowhere", "none").code == 2


def exercise(folder: Path, stub: str) -> None:
    config = {"files": {"solution": ["calc.py"], "test": ["calc_test.py"], "example": [".meta/example.py"]}}
    test = "import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n"
    files = {"calc.py": stub, "calc_test.py": test + "        self.assertEqual(add(1, 2), 3)\n"}
    files |= {
        ".meta/example.py": RIGHT + "\n",
        ".meta/config.json": json.dumps(config),
        ".docs/instructions.md": "Add.\n",
    }
    write(folder, files)


def test_exercism(cli: Cli, tmp_path: Path) -> None:
    """Exercises are settled in boxes: one whose stub passes already is refused, the others pass `check`."""
    write(tmp_path / "track", {"LICENSE": LICENCE})
    exercise(tmp_path / "track/exercises/practice/calc", "def add(a, b):\n    pass\n")
    exercise(tmp_path / "track/exercises/practice/done", RIGHT)
    done = cli("tasks", "import", "exercism", "track", "out", "--json")
    assert done.code == 1, done.err
    assert done.document["tasks"] == ["exercism-calc"]
    assert done.document["refused"] == {"exercism-done": "doing nothing passes every test"}
    assert (tmp_path / "out" / "LICENSE-exercism").read_text() == LICENCE
    (tmp_path / "track" / "LICENSE").unlink()
    assert cli("tasks", "import", "exercism", "track", "none").code == 2
    free = cli("tasks", "import", "exercism", "track", "free", "--allow-unlicensed", "--json")
    assert free.document["tasks"] == ["exercism-calc"]


def row(base: str, **changed: Any) -> dict[str, Any]:
    return {
        "instance_id": "ada__calc-1",
        "repo": "ada/calc",
        "base_commit": base,
        "problem_statement": "add subtracts",
        "patch": PATCH,
        "test_patch": "",
        "FAIL_TO_PASS": json.dumps(NAMES[:1]),
        "PASS_TO_PASS": [],
    } | changed


def test_swebench_there_and_back(cli: Cli, tmp_path: Path, base: str) -> None:
    """Rows whose claims hold become tasks and come back as they were; the others are refused by item."""
    rows = [
        row(base, PASS_TO_PASS=list(NAMES[1:])),
        row(base, instance_id="early", FAIL_TO_PASS=list(NAMES)),
        {"instance_id": "few"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert cli("tasks", "import", "swebench", "rows.jsonl", "out").code == 2
    done = cli("tasks", "import", "swebench", "rows.jsonl", "out", "--repos", "repos", "--json")
    assert done.code == 1, done.err
    assert done.document["tasks"] == ["ada__calc-1"]
    assert "said to fail before, but passes" in done.document["refused"]["early"]
    assert "are missing" in done.document["refused"]["few"]
    back = cli("tasks", "export", "swebench", "out", "back.jsonl", "--json")
    assert (back.code, back.document["tasks"]) == (0, ["ada__calc-1"]), back.err
    assert (tmp_path / "back.jsonl").read_text() == json.dumps(rows[0]) + "\n"
    assert cli("tasks", "new", "out/mine").code == 0
    partly = cli("tasks", "export", "swebench", "out", "again.jsonl", "--json")
    assert partly.code == 1
    assert list(partly.document["refused"]) == ["mine"]


def test_tickets(cli: Cli, tmp_path: Path, base: str) -> None:
    """A ticket with a fix becomes a task that can be admitted; one without is written, and said to lack it."""
    columns = "id,title,body,repository,commit,check,fix\n"
    lines = [f"{name},Add,It subtracts.,repos/ada__calc,{base},pytest: tests/test_calc.py,{fix}\n" for name, fix in
             (("a", "fix.patch"), ("b", ""))]  # fmt: skip
    write(tmp_path, {"tickets.csv": columns + "".join(lines), "fix.patch": PATCH})
    done = cli("tasks", "import", "tickets", "tickets.csv", "out", "--json")
    assert done.code == 0, done.err
    assert done.document["tasks"] == ["a", "b"]
    assert list(done.document["notes"]) == ["b"]
    check = {task.id: task.verification for task in load_taskset(tmp_path / "out")}["a"]
    assert check.fail_to_pass == ("frozen/tests/test_calc.py::test_add",)
    assert check.pass_to_pass == ("frozen/tests/test_calc.py::test_zero",)


def test_nothing_to_read_is_bad_input(cli: Cli, tmp_path: Path) -> None:
    """A path that is not there is told before anything else is asked for; a file without rows is no success."""
    missing = cli("tasks", "import", "swebench", "nowhere.jsonl", "out", "--json")
    assert missing.code == 2
    assert "nowhere.jsonl" in missing.document["error"]["message"]
    (tmp_path / "rows.jsonl").write_text("\n")
    for kind in ("swebench", "swesmith", "humanevalpack"):
        empty = cli("tasks", "import", kind, "rows.jsonl", "out", "--repos", ".", "--json")
        assert empty.code == 2
        assert "holds no row" in empty.document["error"]["message"]
