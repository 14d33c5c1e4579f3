"""Where a run's tasks stand in its curriculum, and what their attempts come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from practicum.config.sections import TasksConfig
from practicum.curation.difficulty import Measured
from practicum.curation.ledger import ledger_path, record
from practicum.errors import StoreError, TaskError
from practicum.pipeline.curriculum import equal_attempts, outcomes_of, place_of
from practicum.pipeline.prepare import lay_tasks
from practicum.pipeline.run import RunState
from practicum.records.assessment import Stage
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Verdict
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.tasks.sampler import Curriculum, Outcome, Place, choose

TASK = Task("t", "do", {}, Verification("plain", {}), provenance={"generator": "g", "template": "sum"})


def attempt(group: str, reward: float | None, task: str = "t") -> Trajectory:
    verdict = Verdict("valid", "passed" if reward == 1.0 else "failed", reward) if reward is not None else None
    fault = None if verdict else Fault("SandboxDied", "gone")
    return Trajectory(f"{group}/0", group, task, "digest", (), "submitted", fault, None, verdict)


def test_the_measured_stratum_comes_before_the_stated_one() -> None:
    """A stratum that was measured for sure counts; else the one that is stated; tasks of one template are alike."""
    stated = replace(TASK, difficulty="easy")
    sure, unsure = (Measured(TASK.digest, "t", "p", "1", judged=n, passed=0) for n in (12, 2))
    assert place_of(TASK, ()) == Place("undetermined", "bug-fix/g/sum")
    assert place_of(stated, ()).stratum == place_of(stated, [unsure]).stratum == "easy"
    assert place_of(stated, [sure]).stratum == "hard"


def test_outcomes_of_a_batch() -> None:
    """Masked attempts count nowhere; a task taught something where any of its groups differs in reward."""
    batch = [attempt("a", 1.0), attempt("a", 1.0), attempt("b", 0.3), attempt("b", -0.2), attempt("b", None)]
    batch += [attempt("c", -0.2, "u"), attempt("c", -0.2, "u"), attempt("d", None, "v")]
    assert outcomes_of(batch) == [Outcome("t", 2, 4, False), Outcome("u", 0, 2, True)]
    assert equal_attempts(batch) == 4


def test_a_state_keeps_the_sampler() -> None:
    """What is committed and read back is the same state; one of before the curriculum begins its sampler anew."""
    state = RunState(version=3)
    state.sampler, _ = choose(Curriculum({"a": Place(), "b": Place()}, 1), state.sampler)
    assert RunState.from_json(state.to_json()) == state
    old = {name: value for name, value in state.to_json().items() if name not in ("sampler", "tallies")}
    assert RunState.from_json({**old, "outcomes": [[0, "a", 0.5]]}).sampler.batch == 0


def test_what_the_ledger_does_not_admit_is_not_trained_on(tmp_path: Path) -> None:
    """A set with a ledger gives its admitted tasks only, and says why not the others; without one it gives all."""
    made = {task.id: task for task in generate_family(FamilySpec(seed=2, train=3, validation=1, test=1))}
    for task in made.values():
        save_task(task, tmp_path / "set" / task.id)
    config, path = TasksConfig(path=str(tmp_path / "set")), ledger_path(tmp_path / "set")

    def decide(name: str, stage: Stage) -> None:
        digest = made[name].content
        record(path, actor="gate:all", task_id=name, digest=digest, stage=stage, reason="seen", evidence={})

    assert lay_tasks(config, tmp_path / "whole").left_out == {}
    assert len(list((tmp_path / "whole").iterdir())) == 5
    for name in ("train-0000", "validation-0000", "test-0000"):
        decide(name, "admitted")
    decide("train-0001", "quarantined")
    left_out = lay_tasks(config, tmp_path / "some").left_out
    assert sorted(left_out) == ["train-0001", "train-0002"]
    assert "quarantined: seen" in left_out["train-0001"]
    assert "nothing is decided" in left_out["train-0002"]
    assert {place.name for place in (tmp_path / "some").iterdir()} == made.keys() - left_out.keys()
    decide("train-0000", "retired")
    with pytest.raises(TaskError, match="no admitted task of split 'train'"):
        lay_tasks(config, tmp_path / "none")
    path.write_bytes(path.read_bytes().replace(b"retired", b"renamed"))
    with pytest.raises(StoreError):
        lay_tasks(config, tmp_path / "broken")
