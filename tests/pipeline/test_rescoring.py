"""Stored submissions judged again, and runs continued on the outcome."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.pipeline.rescoring import unfit
from practicum.pipeline.rescoring_report import Pair, report_of
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Finding, Submission, Verdict, default_reward
from practicum.trajectories.store import TrajectoryStore
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from pipeline.conftest import Lab

TASK = Task("t", "do", {}, Verification("plain", {}))
PASSED, FAILED = Verdict("valid", "passed", 1.0, verifier_version="a"), Verdict("valid", "failed", -0.2)
NOTED = replace(FAILED, findings=(Finding("shadow_module", "x.py", "add"),))


def attempt(verdict: Verdict | None, fault: Fault | None = None, submission: Submission | None = None) -> Trajectory:
    return Trajectory("g/0", "g", "t", TASK.digest, (), "submitted", fault, submission or Submission(()), verdict)


def test_differences_by_task_and_kind() -> None:
    """Each pair counts for its task and for each kind of finding; only what differs is listed, with both rewards."""
    unscorable = Verdict("unscorable", None, None)
    pairs = [
        Pair("rl", 1, attempt(PASSED), attempt(NOTED)),
        Pair("rl", 1, attempt(FAILED), attempt(FAILED)),
        Pair("test", 2, attempt(FAILED), attempt(PASSED)),
        Pair("test", 2, attempt(PASSED), attempt(unscorable)),
    ]
    report = report_of(pairs, {"was never judged": 3}, "b")
    assert (report["judged"], report["changed"], report["unscorable"]) == (4, 3, 1)
    (task,) = report["tasks"]
    assert (task["task"], task["raised"], task["lowered"]) == ("t", 1, 1)
    assert [(row["kind"], row["judged"], row["changed"]) for row in report["findings"]] == [
        ("none", 3, 2),
        ("shadow_module", 1, 1),
    ]
    assert report["changes"][0]["was"] == {"outcome": "passed", "reward": 1.0}
    assert report["changes"][0]["now"] == {"outcome": "failed", "reward": -0.2}
    assert report["changes"][0]["findings"] == ["shadow_module"]


@pytest.mark.parametrize(
    ("trajectory", "task", "reason"),
    [
        (attempt(PASSED), TASK, None),
        (attempt(None, Fault("VerifierError", "lost")), TASK, None),
        (attempt(None, Fault("SandboxDied", "gone")), TASK, "ended by a fault"),
        (attempt(None), TASK, "was never judged"),
        (replace(attempt(PASSED), submission=None), TASK, "submitted nothing"),
        (attempt(PASSED), None, "its task is not in the run folder"),
        (attempt(PASSED), replace(TASK, instruction="do more"), "its task changed on disk"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_can_be_judged_again(trajectory: Trajectory, task: Task | None, reason: str | None) -> None:
    """A stored submission to a task that is as it was can be; what only the judge failed at, too."""
    assert unfit(trajectory, task) == reason


def flip(store: TrajectoryStore, phase: str, update: int) -> list[str]:
    """Change the stored verdicts of two attempts as a broken judge would have; their ids."""
    (batch,) = [batch for batch in store.batches(phase) if batch.update == update]
    trajectories = store.load(batch)
    flipped = []
    for number, trajectory in enumerate(trajectories[:2]):
        outcome = "failed" if trajectory.passed else "passed"
        reward = default_reward(outcome, newly_passed=0, total=1)  # type: ignore[arg-type]
        assert trajectory.verdict is not None
        verdict = replace(trajectory.verdict, outcome=outcome, reward=reward)  # type: ignore[arg-type]
        trajectories[number] = replace(trajectory, verdict=verdict)
        flipped.append(trajectory.id)
    batch.path.unlink()
    made = store.append(phase, update, trajectories)
    assert made is not None
    made.rename(batch.path)
    return flipped


def verifier(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "practicum", "verifier", *arguments]
    return subprocess.run(
        command, cwd=lab.root, env=lab.environment, capture_output=True, text=True, timeout=120, check=False
    )


def weights(folder: Path, version: int) -> bytes:
    return (VersionStore(folder / "checkpoints").path(version) / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_continues_on_corrected_rewards(lab: Lab) -> None:
    """Verdicts that a broken judge gave are found by task and attempt and left as they are; continued on the new
    ones, the run ends with the weights of a run that was judged rightly from its start, bit for bit."""
    lab.train(str(lab.config))
    folder = lab.run_folder()
    right = weights(folder, 3)
    same = verifier(lab, "rescore", str(folder), "--json")
    assert same.returncode == 0, same.stderr
    assert json.loads(same.stdout)["changed"] == 0
    code, nothing, _ = lab.fail("--resume", str(folder), "--rescored")
    assert (code, nothing["kind"]) == (2, "NothingLearned")

    with RunFolder.open(folder) as run:
        last = run.store.batches("rl")[-1]
        before = last.path.read_bytes()
        flipped = flip(run.store, "rl", 1) + flip(run.store, "validation", 0)
    (folder / "checkpoints" / "00003" / "model.safetensors").write_bytes(weights(folder, 0))
    found = verifier(lab, "rescore", str(folder), "--json")
    assert found.returncode == 1, found.stderr
    report = json.loads(found.stdout)
    assert {change["id"] for change in report["changes"]} == set(flipped)
    assert last.path.read_bytes() == before
    text = verifier(lab, "rescore", str(folder)).stdout
    assert f"{len(flipped)} decisions differ" in text
    assert "--rescored" in text

    lab.train("--resume", str(folder), "--rescored")
    assert weights(folder, 3) == right
    with RunFolder.open(folder) as run:
        run.verify_audit()
        assert [row["update"] for row in run.metrics() if row["kind"] == "update"] == [1, 2, 3]
        used = {batch.update: run.store.load(batch) for batch in run.store.batches("rl")}
        assert sorted(used) == [1, 2, 3]
        again = [all("rescored_from" in t.verdict.evidence for t in used[n] if t.verdict) for n in (1, 2, 3)]
        assert again == [True, True, False]
    later = verifier(lab, "rescore", str(folder), "--json")
    assert json.loads(later.stdout)["changed"] == 0
