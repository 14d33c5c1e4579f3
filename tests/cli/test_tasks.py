"""`practicum tasks`: task directories made and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli


def test_new_task_is_admitted(cli: Cli, tmp_path: Path) -> None:
    """The template passes all gates, in real boxes."""
    made = cli("tasks", "new", "mine", "--json")
    assert made.document["task"] == "mine"
    (task,) = load_taskset(tmp_path / "mine")
    assert task.digest == made.document["digest"]
    checked = cli("tasks", "check", "mine", "--json", timeout_s=110)
    assert checked.code == 0, checked.err
    assert checked.document["summary"]["admitted"] == 1, checked.document["tasks"][0]["reason"]


def test_new_does_not_overwrite(cli: Cli, tmp_path: Path) -> None:
    """A folder that holds something else is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep me")
    done = cli("tasks", "new", "mine")
    assert done.code == 2
    assert (tmp_path / "mine" / "notes").read_text() == "keep me"
    assert "Traceback" not in done.err


@pytest.mark.parametrize("missing", ["instruction.md", "tests/test_frozen.py", "task.toml"])
def test_missing_file(cli: Cli, tmp_path: Path, missing: str) -> None:
    """A missing file is named: by a check, which rejects the task, and by whoever would use it; without a traceback."""
    cli("tasks", "new", "mine")
    (tmp_path / "mine" / missing).unlink()
    named = missing.removeprefix("tests/")
    checked = cli("tasks", "check", "mine", "--json")
    (item,) = checked.document["tasks"]
    assert (checked.code, item["decision"], named in item["reason"]) == (1, "rejected", True)
    attempted = cli("rollout", "mine", "--agent", "noop", "--json")
    assert (attempted.code, attempted.document["error"]["kind"]) == (2, "TaskError")
    assert named in attempted.document["error"]["message"]
    for done in (checked, attempted):
        assert "Traceback" not in done.err
