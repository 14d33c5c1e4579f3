"""`practicum runs branch`: a stored trajectory is gone on from, in real boxes, and refused where that cannot be."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.config import load_config
from practicum.pipeline.runfolder import RunFolder
from practicum.policies.scripted import ScriptedPolicy
from practicum.policies.text import ByteRenderer
from practicum.records.task import PlainCheck, Task, Verification
from practicum.records.trajectory import Trajectory
from practicum.records.tree import File
from practicum.records.verdict import Verdict
from practicum.rollouts.attempt import AttemptSpec, roll_out
from practicum.rollouts.harness import Harness
from practicum.rollouts.session import TEXT_BUDGETS
from practicum.sandboxes.fake import FakeProvider
from practicum.sandboxes.snapshots import DirectorySnapshots
from practicum.tasks.harbor import save_task

if TYPE_CHECKING:
    from cli.conftest import Cli

TASK = Task(
    id="calc",
    instruction="add(a, b) in calc.py must return the sum of its arguments.",
    files={"calc.py": File(b"def add(a, b):\n    return a - b\n")},
    verification=Verification(
        runner="plain",
        tests={"cases.jsonl": File(b'{"id": "two", "args": [1, 1], "expected": 2}\n')},
        fail_to_pass=("two",),
        plain=PlainCheck(entry="calc:add", cases="cases.jsonl"),
    ),
    editable=("*.py",),
)
SAYS = ("<edit>notes.txt<old><new>first\n</edit>", "<edit>calc.py:2<old>-<new>+</edit>", "<submit>")


def rolled(snapshots: DirectorySnapshots) -> Trajectory:
    policy = ScriptedPolicy(ByteRenderer(), lambda _, turn: SAYS[turn])
    spec = AttemptSpec(TASK, "rl-1", seed=3)
    harness = Harness(TEXT_BUDGETS)
    provider = FakeProvider(snapshots=snapshots)
    done = asyncio.run(
        roll_out(spec, provider=provider, policy=policy, renderer=ByteRenderer(), harness=harness)
    ).trajectory
    assert done.fault is None
    return replace(done, verdict=Verdict("valid", "passed", 1.0))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with its task and one attempt, which passed: it wrote a note, then put the bug right."""
    with RunFolder.create(tmp_path / "runs", load_config("quickstart")) as folder:
        save_task(TASK, folder.path / "tasks" / TASK.id)
        folder.store.append("rl", 7, [rolled(DirectorySnapshots(folder.path / "snapshots"))])
        return folder.path


def test_branches_share_the_trunk_and_are_judged(cli: Cli, run: Path) -> None:
    """Before the fix a policy that submits at once fails, after it passes; credit is against the mean; all is kept."""
    how = ("--policy", "noop")
    document = cli("runs", "branch", run, "rl-1/0", "--turn", "1", "--count", "2", *how, "--json").document
    assert [(node["id"], node["outcome"]) for node in document["branches"]] == [
        ("rl-1/0@1/0", "failed"),
        ("rl-1/0@1/1", "failed"),
    ]
    mean = (1.0 - 0.2 - 0.2) / 3
    assert document["trunk"]["credit"] == pytest.approx(1.0 - mean)
    assert [node["credit"] for node in document["branches"]] == [pytest.approx(-0.2 - mean)] * 2
    told = cli("runs", "branch", run, "rl-1/0", "--turn", "2", "--count", "1", *how).out
    assert "@2/0" in told
    assert "passed  +1.00" in told
    again = cli("runs", "branch", run, "rl-1/0", "--turn", "1", "--count", "1", *how, "--json").document
    assert [node["id"] for node in again["branches"]] == ["rl-1/0@1/2"]
    with RunFolder.open(run) as folder:
        kept = {each.id: each for each in folder.store.read("branch")}
        trunk = folder.store.find("rl-1/0")
        assert {batch.update for batch in folder.store.batches("branch")} == {7}
        folder.verify_audit()
    assert trunk is not None
    assert set(kept) == {"rl-1/0@1/0", "rl-1/0@1/1", "rl-1/0@1/2", "rl-1/0@2/0"}
    for each in kept.values():
        shared = int(each.group_id.split("@")[1])
        assert each.turns[:shared] == trunk.turns[:shared]
        assert each.turns[shared].snapshot_before == trunk.turns[shared].snapshot_before
        assert each.group_id == f"rl-1/0@{shared}"
    assert len({trunk.seed, *(each.seed for each in kept.values())}) == 5


def test_what_cannot_be_branched_is_refused(cli: Cli, run: Path) -> None:
    """An unknown trunk or turn, a workspace that is lost, a policy that reads other ids: exit 2, nothing is kept."""

    def refused(trajectory: str, turn: str, policy: str = "noop") -> str:
        done = cli("runs", "branch", run, trajectory, "--turn", turn, "--policy", policy, "--json")
        assert done.code == 2
        message: str = done.document["error"]["message"]
        return message

    assert "no trajectory 'rl-9/9'" in refused("rl-9/9", "1")
    assert "has no turn 3: it has 3" in refused("rl-1/0", "3")
    with RunFolder.open(run, write=True) as folder:
        trunk = folder.store.find("rl-1/0")
        assert trunk is not None
        other = replace(trunk.turns[0], prompt_ids=(1, *trunk.turns[0].prompt_ids))
        folder.store.append("rl", 8, [replace(trunk, id="rl-1/1", turns=(other, *trunk.turns[1:]))])
    assert "after other ids than would be shown here" in refused("rl-1/1", "1")
    (run / "snapshots" / "trees" / trunk.turns[1].snapshot_after).unlink()
    assert "is not there" in refused("rl-1/0", "2")
    with RunFolder.open(run) as folder:
        assert folder.store.batches("branch") == []
