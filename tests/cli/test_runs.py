"""`practicum runs`: reading what a run left on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.config import load_config
from practicum.pipeline.runfolder import RunFolder
from practicum.records.trajectory import Action, Trajectory, Turn
from practicum.records.verdict import Submission, Verdict

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with one update and one trajectory, whose text tries to drive the terminal."""
    turn = Turn(0, (1, 2), (3,), (-0.5,), 4, "stop", "\x1b[2Jhi", Action("submit"), "done", "a", "a")
    trajectory = Trajectory(
        id="g/0",
        group_id="g",
        task_id="t",
        task_digest="d",
        turns=(turn,),
        stop_reason="submitted",
        submission=Submission(()),
        verdict=Verdict("valid", "failed", -0.2, {"test_a": "failed"}),
    )
    with RunFolder.create(tmp_path / "runs", load_config("quickstart")) as folder:
        folder.append_metric({"kind": "update", "update": 1, "success": 0.25})
        folder.store.append("rl", 1, [trajectory])
        return folder.path


def test_list(cli: Cli, run: Path) -> None:
    """`runs list` names each run with its status; no runs yet is no error, a wrong folder is."""
    (row,) = cli("runs", "list", "--json").document
    assert (row["id"], row["status"], row["updates"]) == (run.name, "interrupted", 1)
    assert run.name in cli("runs", "list").out
    (run.parent.parent / "fresh").mkdir()
    assert cli("runs", "list", "fresh", "--json").document == []
    assert cli("runs", "list", "--json", cwd=run.parent.parent / "fresh").document == []
    wrong = cli("runs", "list", "elsewhere", "--json")
    assert (wrong.code, wrong.document["error"]["kind"]) == (2, "ConfigError")


def test_show(cli: Cli, run: Path) -> None:
    """`runs show` gives the configuration, the last metrics and what is stored."""
    document = cli("runs", "show", run, "--json").document
    assert document["config"]["name"] == "quickstart"
    assert document["last_metrics"]["success"] == 0.25
    assert list(document["trajectories"].values()) == [1]
    assert "1 updates" in cli("runs", "show", run).out


def test_trajectory(cli: Cli, run: Path) -> None:
    """`runs trajectory` lists ids, and tells one turn by turn; what a model wrote cannot drive the terminal."""
    (row,) = cli("runs", "trajectory", run, "--json").document
    assert row["id"] == "g/0"
    document = cli("runs", "trajectory", run, "g/0", "--json").document
    assert document["turns"][0]["sampled_ids"] == [3]
    assert document["verdict"]["outcome"] == "failed"
    story = cli("runs", "trajectory", run, "g/0").out
    assert "hi" in story
    assert "\x1b" not in story


def test_unknown(cli: Cli, run: Path) -> None:
    """A run or trajectory that is not there is named."""
    assert "no trajectory 'x'" in cli("runs", "trajectory", run, "x").err
    wrong = cli("runs", "show", run.parent)
    assert "not a run folder" in wrong.err
    assert wrong.code == 2
