"""Training runs end to end, as a person starts them: the real command, real boxes, a very small model."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.pipeline.run import last_state
from practicum.pipeline.runfolder import RunFolder
from practicum.records.sample import samples_from
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from pipeline.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def _updates(folder: Path) -> list[int]:
    path = folder / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return [row["update"] for row in rows if row["kind"] == "update"]


def _weights(folder: Path, version: int) -> bytes:
    return (VersionStore(folder / "checkpoints").path(version) / "model.safetensors").read_bytes()


def test_a_run_leaves_a_whole_record(lab: Lab) -> None:
    """A run ends with its summary, report, checkpoints and trajectories, trained on what was sampled, no box left."""
    summary = lab.train(str(lab.config))
    folder = lab.run_folder()
    assert summary["run_dir"] == str(Path("runs") / folder.name)
    assert summary["updates"] == 3
    assert summary["boxes"]["created"] > summary["episodes"] > 0
    assert summary["boxes"]["leaked"] == 0
    assert summary["held_out"]["n"] == 2
    assert {"before", "after", "difference"} <= summary["held_out"].keys()
    assert sum(summary["time"].values()) == pytest.approx(summary["wall_s"], abs=1.0)
    assert _updates(folder) == [1, 2, 3]
    assert "</html>" in (folder / "report.html").read_text()
    assert lab.left() == []
    with RunFolder.open(folder) as run:
        assert run.status == "finished"
        run.verify_audit()
        attempts = list(run.store.read("rl"))
        assert len(attempts) == 3 * 16
        for attempt in attempts:
            trained = [
                i for row in samples_from(attempt, 1.0) for i, m in zip(row.input_ids, row.loss_mask, strict=True) if m
            ]
            assert trained == [i for turn in attempt.turns for i in turn.sampled_ids]
            staleness = int(attempt.id.split("-")[1]) - attempt.policy_version
            assert 0 <= staleness <= 1


def test_a_killed_run_continues_to_the_same_weights(lab: Lab) -> None:
    """After kill -9 nothing is left, and the resumed run ends with the weights of an unbroken one, bit for bit."""
    lab.train(str(lab.config))
    unbroken = lab.root / "unbroken"
    (lab.root / "runs").rename(unbroken)
    (whole,) = unbroken.iterdir()
    lab.configure(("updates = 3", "updates = 9"))
    broken = lab.start(str(lab.config), "--set", "rl.updates=3")
    folder = lab.begun()
    assert lab.eventually(lambda: _updates(folder) != [], 200)
    broken.kill()
    broken.communicate()
    assert lab.eventually(lambda: lab.left() == [], 20), lab.left()
    reached = last_state(VersionStore(folder / "checkpoints"))
    assert reached is not None
    assert reached.version < 3
    lab.train(str(lab.config), "--resume", str(folder))
    assert _updates(folder) == [1, 2, 3]
    assert _weights(folder, 3) == _weights(whole, 3)
    assert _weights(folder, 3) != _weights(folder, 0)


def test_interrupting_a_run_is_clean(lab: Lab) -> None:
    """Ctrl-C ends a run with 130 and the line that continues it; when it has ended nothing is left."""
    process = lab.start(str(lab.config))
    folder = lab.begun()
    assert lab.eventually(lambda: (folder / "checkpoints" / "00000" / "state.json").exists(), 200)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in err.decode()
    assert "Traceback" not in err.decode()
    assert lab.left() == []
    with RunFolder.open(folder) as run:
        assert run.status == "interrupted"


def test_a_finished_run_is_not_resumed(lab: Lab) -> None:
    """Resuming a run that has nothing left to do fails and says what to do instead."""
    lab.configure(("updates = 3", "updates = 1"), staleness=0)
    lab.train(str(lab.config))
    process = lab.start(str(lab.config), "--resume", str(lab.run_folder()), "--set", "rl.updates=2")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert json.loads(out)["error"]["kind"] == "NothingLearned"
    with RunFolder.open(lab.run_folder()) as run:
        assert run.config.rl.updates == 1
