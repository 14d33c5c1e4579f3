"""How a run's stages overlap: what must not depend on it, and what must hold however they do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.config import RunConfig
from practicum.errors import ConfigError
from practicum.pipeline.feasibility import BOX, check_feasible
from practicum.pipeline.floor import groups_of
from practicum.pipeline.orders import Order
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Trajectory
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.collector import SPARE
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from pipeline.conftest import Lab

FLOWING = ("--set", "schedule.mode=continuous")
TASK = Task("t", "do it", {}, Verification("plain", {}))


def _rows(folder: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def _weights(folder: Path, version: int) -> bytes:
    return (VersionStore(folder / "checkpoints").path(version) / "model.safetensors").read_bytes()


def _stored(folder: Path) -> list[Trajectory]:
    with RunFolder.open(folder) as run:
        return list(run.store.read("rl"))


def _told(trajectory: Trajectory) -> tuple[Any, ...]:
    turns = [(t.prompt_ids, t.sampled_ids, t.logprobs, t.policy_version, t.observation) for t in trajectory.turns]
    return trajectory.id, turns, trajectory.reward


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_one_thing_at_a_time_gives_the_same_run(lab: Lab) -> None:
    """Without overlap every trajectory and the last weights are those of the overlapped run, bit for bit."""
    lab.train(str(lab.config))
    overlapped = lab.root / "overlapped"
    (lab.root / "runs").rename(overlapped)
    (there,) = overlapped.iterdir()
    lab.train(str(lab.config), "--set", "schedule.overlap=false")
    here = lab.run_folder()
    assert [_told(t) for t in _stored(here)] == [_told(t) for t in _stored(there)]
    assert _weights(here, 3) == _weights(there, 3)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_flowing_run_is_killed_and_goes_on(lab: Lab) -> None:
    """In the flow, kill -9 included: each attempt trains once, in whole groups, and none is staler than allowed."""
    # With so few places, those that wait for an evaluation to end would keep it from beginning if they held any.
    few = ("--set", "sandbox.max_concurrent=4", "--set", "evaluation.every=1")
    broken = lab.start(str(lab.config), *FLOWING, *few, "--set", "schedule.spares=1")
    folder = lab.begun()
    assert lab.eventually(lambda: (folder / "checkpoints" / "00001" / "state.json").exists(), 200)
    broken.kill()
    broken.communicate()
    assert lab.eventually(lambda: lab.left() == [], 20), lab.left()
    lab.train("--resume", str(folder))
    assert lab.left() == []
    stored = _stored(folder)
    assert max(Counter(t.id for t in stored).values()) == 1
    groups = Counter(t.group_id for t in stored if t.fault is None)
    assert len(groups) == 3 * 4
    assert min(groups.values()) >= 4
    assert {t.fault.kind for t in stored if t.fault is not None} <= {SPARE}
    for row in _rows(folder, "update"):
        assert all(0 <= int(age) <= 1 for age in row["staleness_tokens"])
        assert sum(row["episode_time"].values()) == pytest.approx(1.0)
        assert row["bound"]["binding_term"] in row["bound"]["terms"]
    assert not _rows(folder, "fault")


def test_an_order_carries_what_may_replace_its_attempts() -> None:
    """Refills are attempts of the same group with seeds of their own, beyond those that are made at once."""
    every = tuple(AttemptSpec(TASK, name, index, seed=index) for name in "ab" for index in range(5))
    order = Order(
        "o", "model", tuple(s for s in every if s.index < 3), refills=tuple(s for s in every if s.index >= 3), size=2
    )
    first, second = groups_of(order)
    assert [spec.id for spec in first.specs] == ["a/0", "a/1", "a/2"]
    assert [spec.id for spec in second.refills] == ["b/3", "b/4"]
    assert first.size == 2


def test_what_can_never_work_is_refused_with_its_arithmetic() -> None:
    """More boxes than fit, or a deadline before the end of an attempt: the message counts, and names the key."""
    host = {"memory_bytes": 50 * BOX["memory_bytes"], "processes": 1e6, "open files": 1e6}
    config = RunConfig.model_validate({"sandbox": {"max_concurrent": 60}})
    with pytest.raises(ConfigError, match=r"sandbox\.max_concurrent: \(60 attempts \+ 4 judgements\)"):
        check_feasible(config, [TASK], host)
    short = RunConfig.model_validate({"schedule": {"attempt_s": 5}})
    with pytest.raises(ConfigError, match=r"schedule\.attempt_s.* ends it after 5 s"):
        check_feasible(short, [TASK], {})
    check_feasible(RunConfig(), [TASK])


@pytest.mark.parametrize(
    ("schedule", "says"),
    [({"spares": 2}, "mode to continuous"), ({"mode": "continuous", "overlap": False}, "continuous is overlap")],
)
def test_schedules_that_contradict_themselves_are_refused(schedule: dict[str, Any], says: str) -> None:
    """The message says which of the two to change."""
    with pytest.raises(ValueError, match=says):
        RunConfig.model_validate({"schedule": schedule})
