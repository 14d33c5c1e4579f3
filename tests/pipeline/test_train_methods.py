"""The methods beside agent RL, end to end: the real command, real boxes, a very small model with one turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.pipeline.rows import export_rows
from practicum.pipeline.runfolder import RunFolder
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from pipeline.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Two tasks, learnt by heart from demonstrations of which half are wrong, so that some attempts pass and others do not.
TINY = """
name = "tiny"
seed = 3
[tasks]
family = "single-turn"
train = 2
validation = 1
test = 1
[policy]
width = 96
heads = 4
context = 128
[rollout]
max_turns = 1
max_tokens_per_turn = 24
max_context = 128
group_size = 4
tasks_per_update = 2
max_staleness = 0
[verification]
canary_every = 0
"""
WARM = """
[sft]
demonstrations = 16
correct_rate = 0.5
steps = 60
batch_size = 8
rename_rate = 0.0
"""
IMITATE = """
[sft]
steps = 0
[study]
source = "demonstrations"
demonstrations = 8
rename_rate = 0.0
updates = 2
steps = 30
batch_size = 8
[evaluation]
every = 1
"""
PREFER = (
    WARM + '[study]\nsource = "attempts"\nloss = "dpo"\ngroups = 4\nupdates = 2\nsteps = 3\nbatch_size = 4\nlr = 1e-3\n'
)
OPINION = (
    WARM
    + "[reward.model]\ngroups = 4\nheld_back = 0.5\nsteps = 20\nbatch_size = 4\n[rl]\nupdates = 2\nminibatches = 1\n"
)


def _train(lab: Lab, text: str) -> tuple[dict[str, Any], Path, list[dict[str, Any]]]:
    lab.config.write_text(TINY + text)
    summary = lab.train(str(lab.config))
    folder = lab.run_folder()
    assert summary["boxes"]["leaked"] == 0
    assert {"before", "after", "difference"} <= summary["held_out"].keys()
    assert "</html>" in (folder / "report.html").read_text()
    with RunFolder.open(folder) as run:
        run.verify_audit()
        return summary, folder, run.metrics()


def _weights(folder: Path, version: int) -> bytes:
    return (VersionStore(folder / "checkpoints").path(version) / "model.safetensors").read_bytes()


def test_imitation_of_demonstrations_and_then_of_rows(lab: Lab) -> None:
    """Supervised updates lower the loss; a file of rows, here made from the demonstrations, is learnt from likewise."""
    summary, folder, rows = _train(lab, IMITATE)
    assert summary["updates"] == 2
    losses = [row["loss"] for row in rows if row["kind"] == "update"]
    assert losses[1] < losses[0] / 2
    assert _weights(folder, 2) != _weights(folder, 0)
    with RunFolder.open(folder) as run:
        shown = next(iter(run.store.read("demonstration")))
    instruction = (folder / "tasks" / shown.task_id / "instruction.md").read_text()
    conversation = [{"role": "user", "content": instruction}, {"role": "assistant", "content": shown.turns[0].text}]
    (lab.root / "rows.jsonl").write_text(json.dumps({"messages": conversation}) + "\n")
    (lab.root / "runs").rename(lab.root / "first")
    changed = IMITATE.replace('"demonstrations"', '"rows"').replace("demonstrations = 8\nrename_rate = 0.0\n", "")
    _, folder, rows = _train(lab, changed.replace("[study]", '[study]\nrows = "rows.jsonl"'))
    losses = [row["loss"] for row in rows if row["kind"] == "update"]
    assert losses[1] < losses[0] / 2
    assert (folder / "rows.jsonl").read_text() == (lab.root / "rows.jsonl").read_text()


def test_a_killed_study_continues_to_the_same_weights(lab: Lab) -> None:
    """After kill -9 between two versions, the resumed run ends with the weights of an unbroken one, bit for bit."""
    _, whole, _ = _train(lab, PREFER)
    whole = whole.parent.rename(lab.root / "unbroken") / whole.name
    broken = lab.start(str(lab.config))
    folder = lab.begun()
    assert lab.eventually(lambda: (folder / "checkpoints" / "00000" / "state.json").exists(), 200)
    broken.kill()
    broken.communicate()
    assert lab.eventually(lambda: lab.left() == [], 20), lab.left()
    lab.train("--resume", str(folder))
    assert _weights(folder, 2) == _weights(whole, 2) != _weights(whole, 0)


def test_preference_from_own_attempts(lab: Lab) -> None:
    """Pairs of success and failure are made by version 0 and told apart ever better; they can be exported."""
    summary, folder, rows = _train(lab, PREFER)
    assert summary["updates"] == 2
    updates = [row for row in rows if row["kind"] == "update"]
    assert [row["phase"] for row in updates] == ["study", "study"]
    assert updates[1]["margin"] > 0
    facts = export_rows(folder, lab.root / "pairs.jsonl", kind="pairs")
    assert facts["rows"] == updates[0]["pairs"]


def test_reinforcement_by_a_reward_model(lab: Lab) -> None:
    """The model of rewards is kept with the run, its opinion trains, and stands beside execution at every look."""
    _, folder, rows = _train(lab, OPINION)
    assert (folder / "reward_model.safetensors").is_file()
    (learnt,) = [row for row in rows if row["kind"] == "reward_model"]
    assert learnt["pairs"] > 0
    assert learnt["held_back"] > 0
    looks = [row for row in rows if row["kind"] == "proxy" and row["split"] == "validation"]
    assert [row["update"] for row in looks] == [0, 2]
    assert any(row["kind"] == "proxy" and row["split"] == "train" for row in rows)
    assert "Proxy" in (folder / "report.html").read_text()


def test_credit_by_turn(lab: Lab) -> None:
    """With process rewards each update says how many turns got on; the same run without has no such row."""
    _, _, rows = _train(lab, WARM + '[rl]\nupdates = 1\nminibatches = 1\nprocess = "tests"\n')
    (row,) = [row for row in rows if row["kind"] == "process"]
    assert row["turns"] == 8
    assert row["without"] == 0
