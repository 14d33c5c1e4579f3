"""The rewards that train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.config import RunConfig, load_config
from practicum.config.learning import RewardConfig
from practicum.curation.soundness.noise import write_noise
from practicum.errors import ConfigError
from practicum.pipeline.rewards import Rewards, open_rewards
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Verdict
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.noise import Evidence, NoiseEstimate, estimate

if TYPE_CHECKING:
    from pipeline.conftest import Lab

QUIET, NOISY, UNKNOWN = (Task(name, name, {}, Verification("plain", {})) for name in ("quiet", "noisy", "unknown"))


def measured(task: Task, false_positives: int, false_negatives: int, n: int = 200) -> NoiseEstimate:
    return estimate(task.id, task.digest, Evidence(Rate(false_positives, n), Rate(false_negatives, n)))


ESTIMATES = {QUIET.digest: measured(QUIET, 20, 40), NOISY.digest: measured(NOISY, 90, 90)}


def attempt(name: str, verdict: Verdict | None, task: Task = QUIET, fault: Fault | None = None) -> Trajectory:
    return Trajectory(name, "g", task.id, task.digest, (), "submitted", fault, verdict=verdict)


def test_noisy_tasks_do_not_train() -> None:
    """A task that is too noisy, or was never measured, is left out by name with the reason; without rates none is."""
    rows: list[dict[str, Any]] = []
    rewards = Rewards(RewardConfig(noise="x"), ESTIMATES)
    assert rewards.fit([QUIET, NOISY, UNKNOWN], rows.append) == [QUIET]
    assert [(row["task"], row["admitted"]) for row in rows] == [("noisy", False), ("unknown", False)]
    assert "J = 0.10" in rows[0]["reason"]
    assert Rewards(RewardConfig(), {}).fit([NOISY], rows.append) == [NOISY]
    assert len(rows) == 2


@pytest.mark.parametrize("form", ["backward", "forward"])
def test_raw_and_corrected_stand_side_by_side(form: str) -> None:
    """Valid verdicts train on corrected rewards, records are left alone, and each task's row holds both numbers;
    tampering, faults and verdicts without a number are not corrected."""
    rows: list[dict[str, Any]] = []
    rewards = Rewards(RewardConfig(noise="x", correction=form), ESTIMATES)  # type: ignore[arg-type]
    given = [
        attempt("won", Verdict("valid", "passed", 1.0)),
        attempt("lost", Verdict("valid", "failed", -0.2)),
        attempt("cheat", Verdict("valid", "tampered", -1.0)),
        attempt("void", Verdict("invalid", None, None)),
        attempt("gone", None, fault=Fault("SandboxDied", "gone")),
    ]
    trained = rewards.corrected(given, rows.append, update=4)
    won, lost = {"backward": (-0.2 + 1.2 * 0.9 / 0.7, -0.2 - 1.2 * 0.1 / 0.7), "forward": (1.24, 0.04)}[form]
    assert [each.reward for each in trained] == [pytest.approx(won), pytest.approx(lost), -1.0, None, None]
    assert given[0].reward == 1.0
    (row,) = rows
    assert (row["update"], row["task"], row["form"], row["clipped"]) == (4, "quiet", form, 0)
    assert row["raw"] == [1.0, -0.2, -1.0]
    assert row["corrected"] == [each.reward for each in trained[:3]]
    assert (row["false_positive"], row["false_negative"]) == (0.1, 0.2)


def test_rates_are_kept_with_the_run(tmp_path: Path) -> None:
    """A run copies its rates once, on record, and goes on reading the copy; rates that are not there are refused."""
    source = tmp_path / "rates.json"
    write_noise(source, ESTIMATES.values())
    config = RunConfig(reward=RewardConfig(noise=str(source)))
    with RunFolder.create(tmp_path / "runs", config) as folder:
        open_rewards(folder, config.reward)
        source.unlink()
        kept = open_rewards(folder, config.reward)
        assert kept.fit([QUIET, NOISY], lambda row: None) == [QUIET]
        assert folder.verify_audit() == 2
    with RunFolder.create(tmp_path / "runs", config) as folder, pytest.raises(ConfigError, match=r"reward\.noise"):
        open_rewards(folder, config.reward)


def test_a_correction_needs_rates() -> None:
    """A correction without a file of rates is refused when the configuration is read."""
    with pytest.raises(ConfigError, match="needs error rates"):
        load_config("quickstart", ["reward.correction=backward"])


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_run_trains_on_corrected_rewards(lab: Lab) -> None:
    """A noisy task is refused by name, the others train on corrected rewards while records keep the raw ones, and the
    report says both."""
    tasks = [task for task in generate_family(FamilySpec(train=4, validation=2, test=2)) if task.split == "train"]
    rates = lab.root / "noise.json"
    write_noise(rates, [measured(task, 150 if task is tasks[0] else 20, 20) for task in tasks])
    lab.configure(("[evaluation]", f'[reward]\nnoise = "{rates}"\ncorrection = "backward"\n[evaluation]'))
    lab.train(str(lab.config))
    with RunFolder.open(lab.run_folder()) as run:
        rows = run.metrics()
        refused = [row for row in rows if row["kind"] == "admission" and not row["admitted"]]
        assert [row["task"] for row in refused] == [tasks[0].id]
        trained = [row for row in rows if row["kind"] == "correction"]
        assert {row["task"] for row in trained} == {task.id for task in tasks[1:]}
        assert {row["update"] for row in trained} == {1, 2, 3}
        for row in trained:
            for raw, corrected in zip(row["raw"], row["corrected"], strict=True):
                share = (float(raw == 1.0) - 0.1) / 0.8
                assert corrected == pytest.approx(-0.2 + 1.2 * share + (0.0 if raw == 1.0 else raw + 0.2))
        for row in rows:
            if row["kind"] == "update":
                assert row["reward_corrected"] != row["reward"]
        assert {t.reward for t in run.store.read("rl")} >= {1.0}
        assert all(t.task_id != tasks[0].id for t in run.store.read("rl"))
        report = (run.path / "report.html").read_text()
        assert "corrected for the noise" in report
        assert tasks[0].id in report
