"""A judge that changes underneath a run: the run stops, says so, and what came since does not train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.pipeline.canaries import EVENT, admitted, read_again, suspect
from practicum.pipeline.runfolder import RunFolder
from practicum.trajectories.chain import entries
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from pipeline.conftest import Lab

LOOKS = ("[evaluation]", "[verification]\ncanary_every = 1\ncanary_tasks = 2\n[evaluation]")


def weights(folder: Path, version: int) -> bytes:
    return (VersionStore(folder / "checkpoints").path(version) / "model.safetensors").read_bytes()


def updates(folder: Path) -> list[int]:
    return [row["update"] for row in RunFolder(folder).metrics() if row["kind"] == "update"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_changed_acceptance_file_stops_the_run(lab: Lab) -> None:
    """The next look after a task's frozen tests changed ends the run with 3, durably marked and reported; once they
    are restored, a resume trains on nothing suspect and ends with the weights of a run that was never disturbed."""
    lab.configure(LOOKS)
    lab.train(str(lab.config))
    undisturbed = lab.root / "undisturbed"
    (lab.root / "runs").rename(undisturbed)
    (whole,) = undisturbed.iterdir()

    process = lab.start(str(lab.config))
    folder = lab.begun()
    assert lab.eventually(lambda: (folder / "checkpoints" / "00000" / "state.json").exists(), 200)
    frozen = next((folder / "tasks").glob("train-*/tests/cases.jsonl"))
    original = frozen.read_bytes()
    frozen.write_bytes(original.replace(b'"expected": ', b'"expected": 1'))
    out, err = process.communicate(timeout=200)
    assert process.returncode == 3, err.decode()
    error = json.loads(out)["error"]
    name = frozen.parent.parent.name
    assert error["kind"] == "CanaryDeviated"
    assert f"{name}: it changed on disk" in error["message"]
    assert f"--resume runs/{folder.name}" in error["fix"]
    assert "is not what it was" in err.decode()
    assert lab.left() == []

    with RunFolder.open(folder) as run:
        doubt = suspect(run)
        assert doubt is not None
        assert 3 > len(updates(folder)) >= doubt["trusted"] >= 0
        assert any(batch.startswith("rl-") for batch in doubt["batches"])
        told = [entry for entry in entries(run.audit_path) if entry["event"] == EVENT]
        assert [each["name"] for each in told[0]["data"]["deviations"]].count(name) == 1
        assert run.status == "interrupted"
    report = (folder / "report.html").read_text()
    assert "was not what it was" in report
    assert name in report

    again, document, _ = lab.fail("--resume", str(folder))
    assert (again, document["kind"]) == (3, "CanaryDeviated")
    frozen.write_bytes(original)
    lab.train("--resume", str(folder))
    assert updates(folder) == [1, 2, 3]
    assert weights(folder, 3) == weights(whole, 3)
    with RunFolder.open(folder) as run:
        assert suspect(run) is None
        run.verify_audit()
        moved = {path.name for path in folder.glob("aside/*/rl-*.parquet")}
        assert moved >= {batch for batch in doubt["batches"] if batch.startswith("rl-")}


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_looks_are_recorded(lab: Lab) -> None:
    """A run looks at start, before it begins to learn, every N updates and at the end, and records each look."""
    lab.configure(LOOKS, ("canary_every = 1", "canary_every = 2"), staleness=0)
    lab.train(str(lab.config))
    with RunFolder.open(lab.run_folder()) as run:
        rows = [row for row in run.metrics() if row["kind"] == "canary"]
        assert [row["look"] for row in rows] == ["start", "baseline", "after-batch-1", "end"]
        assert [row["judged"] for row in rows] == [7, 11, 11, 11]
        assert all(row["deviations"] == [] for row in rows)
        known = admitted(run)
        assert {name.split("-")[0] for name in known} == {"train", "validation", "test"}
        tasks, found = read_again(known, run.path / "tasks")
        assert found == []
        for name, task in tasks.items():
            outcomes = [canary.outcome for canary in known[name].canaries(task)]
            assert outcomes.count("passed") == 1
            assert len(outcomes) == 2
        (run.path / "tasks" / "test-0000" / "task.toml").unlink()
        _, found = read_again(known, run.path / "tasks")
        assert [each.name for each in found] == ["test-0000"]
