"""`practicum tasks`: task directories made, imported and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli

ROW = {
    "task_id": "Python/7",
    "declaration": "def double(x):\n",
    "canonical_solution": "    return 2 * x\n",
    "buggy_solution": "    return x\n",
    "bug_type": "value misuse",
    "failure_symptoms": "incorrect output",
    "entry_point": "double",
    "import": "",
    "test_setup": "",
    "test": "def check(double):\n    assert double(2) == 4\n\ncheck(double)",
    "example_test": "def check(double):\n    assert double(0) == 0\n\ncheck(double)",
    "prompt": "def double(x):\n",
    "docstring": "Twice x.",
    "signature": "double(x)",
    "instruction": "Write a Python function `double(x)`.",
}


def test_new_task_is_admitted(cli: Cli, tmp_path: Path) -> None:
    """The template is a valid task: its gold passes and doing nothing fails, in real boxes."""
    made = cli("tasks", "new", "mine", "--json")
    assert made.document["task"] == "mine"
    (task,) = load_taskset(tmp_path / "mine")
    assert task.digest == made.document["digest"]
    checked = cli("tasks", "check", "mine", "--json")
    assert checked.code == 0, checked.err
    assert checked.document["admitted"] == 1


def test_new_does_not_overwrite(cli: Cli, tmp_path: Path) -> None:
    """A folder that holds something else is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep me")
    done = cli("tasks", "new", "mine")
    assert done.code == 2
    assert (tmp_path / "mine" / "notes").read_text() == "keep me"
    assert "Traceback" not in done.err


def test_check_refuses_what_does_not_discriminate(cli: Cli, tmp_path: Path) -> None:
    """A task whose gold does not pass, or that doing nothing passes, is not admitted, and the reason is given."""
    for name in ("no-gold", "no-bug"):
        assert cli("tasks", "new", f"set/{name}").code == 0
    (tmp_path / "set/no-gold/solution/solve.sh").write_text("#!/bin/bash\ntrue\n")
    module = tmp_path / "set/no-bug/environment/workspace/stats.py"
    gold = (tmp_path / "set/no-bug/solution/solve.sh").read_text()
    module.write_text(gold.split("<<'PYTHON'\n")[1].split("PYTHON\n")[0])
    done = cli("tasks", "check", "set", "--json")
    assert done.code == 1
    reasons = {row["task"]: row["reason"] for row in done.document["results"]}
    assert reasons["no-bug"] == "doing nothing passes"
    assert reasons["no-gold"].startswith("the gold does not pass: failed")


def test_import_humanevalpack(cli: Cli, tmp_path: Path) -> None:
    """Rows of HumanEvalPack become task directories; a bad row leaves nothing half-written."""
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    done = cli("tasks", "import", "humanevalpack", "rows.jsonl", "out", "--json")
    assert done.code == 0, done.err
    assert done.document["tasks"] == [task.id for task in load_taskset(tmp_path / "out")]
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n{}\n")
    bad = cli("tasks", "import", "humanevalpack", "rows.jsonl", "bad")
    assert bad.code == 2
    assert "rows.jsonl" in bad.err
    assert not (tmp_path / "bad").exists()


def test_import_quixbugs(cli: Cli, tmp_path: Path) -> None:
    """Programs become tasks with their tests sorted by what the buggy one does; one that cannot is told by name."""
    sample = Path(__file__).parents[1] / "tasks" / "data" / "quixbugs-sample.jsonl"
    rows = {json.loads(line)["name"]: line + "\n" for line in sample.read_text().splitlines()}
    (tmp_path / "rows.jsonl").write_text(rows["gcd"] + rows["detect_cycle"])
    done = cli("tasks", "import", "quixbugs", "rows.jsonl", "out", "--json")
    assert done.code == 0, done.err
    tasks = {task.id: task.verification for task in load_taskset(tmp_path / "out")}
    assert (sorted(done.document["tasks"]), done.document["refused"]) == (sorted(tasks), {})
    assert tasks["quixbugs-gcd"].pass_to_pass == ("case-1",)
    assert len(tasks["quixbugs-gcd"].fail_to_pass) == 5
    assert tasks["quixbugs-detect_cycle"].fail_to_pass == ("test_detect_cycle.py::test4",)
    assert len(tasks["quixbugs-detect_cycle"].pass_to_pass) == 5
    (tmp_path / "rows.jsonl").write_text(rows["gcd"] + json.dumps({"name": "lost"}) + "\n")
    partly = cli("tasks", "import", "quixbugs", "rows.jsonl", "some", "--json")
    assert partly.code == 1
    assert partly.document["tasks"] == ["quixbugs-gcd"]
    assert list(partly.document["refused"]) == ["lost"]
    assert cli("tasks", "import", "quixbugs", "nowhere", "none").code == 2


@pytest.mark.parametrize("missing", ["instruction.md", "tests/test_frozen.py", "task.toml"])
def test_missing_file(cli: Cli, tmp_path: Path, missing: str) -> None:
    """A task directory with a missing file is one message that names it, exit code 2, no traceback."""
    cli("tasks", "new", "mine")
    (tmp_path / "mine" / missing).unlink()
    for command in (["tasks", "check", "mine"], ["rollout", "mine", "--agent", "noop"]):
        done = cli(*command, "--json")
        assert done.code == 2
        assert done.document["error"]["kind"] == "TaskError"
        assert missing.removeprefix("tests/") in done.document["error"]["message"]
        assert "Traceback" not in done.err
