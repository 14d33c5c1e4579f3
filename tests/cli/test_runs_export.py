"""`practicum runs export`: stored attempts as rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.config import load_config
from practicum.pipeline.runfolder import RunFolder
from practicum.records.trajectory import Action, Trajectory, Turn
from practicum.records.verdict import Verdict
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with one success at a training task, and no failure."""
    (task,) = [task for task in generate_family(FamilySpec(train=1, validation=1, test=1)) if task.split == "train"]
    turn = Turn(0, (1, 2), (3,), (-0.5,), 0, "stop", "<submit>", Action("submit"), "", "a", "a")
    verdict = Verdict("valid", "passed", 1.0)
    with RunFolder.create(tmp_path / "runs", load_config("quickstart")) as folder:
        save_task(task, folder.path / "tasks" / task.id)
        folder.store.append("rl", 1, [Trajectory("g/0", "g", task.id, "d", (turn,), "submitted", verdict=verdict)])
        return folder.path


def test_export(cli: Cli, run: Path, tmp_path: Path) -> None:
    """It says how many rows of how many tasks it wrote; where there is nothing of the kind it ends with 2."""
    target = tmp_path / "rows.jsonl"
    done = cli("runs", "export", str(run), str(target), "--json")
    assert (done.code, done.document["rows"], done.document["tasks"]) == (0, 1, 1)
    assert len(target.read_text().splitlines()) == 1
    refused = cli("runs", "export", str(run), str(tmp_path / "pairs.jsonl"), "--as", "pairs", "--json")
    assert (refused.code, refused.document["error"]["kind"]) == (2, "ConfigError")
    assert "success and a failure" in refused.document["error"]["message"]
