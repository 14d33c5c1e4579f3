"""Tasks that outcomes speak against leave a run by themselves."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.config import RunConfig
from practicum.config.sections import TasksConfig
from practicum.curation.drift import Suspicion
from practicum.curation.ledger import ledger_path, record, stages
from practicum.errors import SandboxDied, TaskError
from practicum.pipeline.console import RunConsole
from practicum.pipeline.orders import WorkerSetup
from practicum.pipeline.quarantine import EVENT, SET_APART, Quarantine, WentBack, recorded
from practicum.pipeline.rescoring import open_replay
from practicum.pipeline.rollout_process import RolloutProcess
from practicum.pipeline.run import Run, specs_of
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.spotchecks import checkable, rule
from practicum.pipeline.trainee import own_decoder
from practicum.policies.local.tokenizer import Tokenizer
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.agents import noop_agent
from practicum.rollouts.workshop import Workshop, run_specs
from practicum.sandboxes.contract import BoxSpec, Listing
from practicum.sandboxes.fake import FakeBox, FakeProvider
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.trajectories.chain import entries
from practicum.verification.opening import open_verifier

if TYPE_CHECKING:
    from pipeline.conftest import Lab

TASKS = generate_family(FamilySpec(seed=4, train=4, validation=1, test=1))
BAD = next(task for task in TASKS if task.split == "train")


class DyingBox(FakeBox):
    """A box that is gone when its work is asked for."""

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        raise SandboxDied("the host pulled the plug")


class Host(FakeProvider):
    """Boxes of one task die every time."""

    def make_box(self, spec: BoxSpec) -> FakeBox:
        return (DyingBox if spec.files == BAD.files else FakeBox)(spec, self)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    for task in TASKS:
        save_task(task, tmp_path / "set" / task.id)
    config = RunConfig(tasks=TasksConfig(path=str(tmp_path / "set")))
    with RunFolder.create(tmp_path, config) as folder:
        trainee = own_decoder(config.policy, Tokenizer.train(["text"], size=300), seed=0)
        setup = WorkerSetup(
            folder.id,
            0,
            config.sandbox,
            config.rollout,
            1.0,
            trainee.speaker,
            folder.checkpoints,
            folder.path,
            folder.journal_path,
        )
        console = RunConsole(stream=StringIO())
        tasks = {split: [t for t in TASKS if t.split == split] for split in ("train", "validation", "test")}
        yield Run(folder, config, console, RolloutProcess(setup), trainee, tasks, open_replay(folder))


def said(run: Run) -> str:
    assert isinstance(run.console.stream, StringIO)
    return run.console.stream.getvalue()


async def attempts(run: Run) -> list[Trajectory]:
    """One batch of the training tasks, by a policy that does nothing, where the boxes of one task die."""
    host, agent = Host(), noop_agent()
    specs = specs_of(0, [(task.id, task) for task in run.tasks["train"]], size=8)
    async with open_verifier(host) as verifier:
        return await run_specs(Workshop(host, verifier, 4), agent, [replace(spec, judged=False) for spec in specs])


def passed(task: Task, name: str = "a/0") -> Trajectory:
    work = Submission((Change("a.py", "add", File(b"x")),))
    return Trajectory(name, "a", task.id, task.digest, (), "submitted", None, work, Verdict("valid", "passed", 1.0))


def test_a_task_whose_box_dies_every_time_leaves(run: Run) -> None:
    """Its faults are told from the fleet's: it is recorded before it acts, told, masked and drawn no more."""
    quarantine = Quarantine(run, TASKS)
    quarantine.begin({})
    batch = asyncio.run(attempts(run))
    assert sum(each.fault is not None for each in batch) == 8
    quarantine.weigh(0, batch)
    assert quarantine.names == run.state.sampler.withdrawn == {BAD.id}
    assert {each.task_id for each in quarantine.kept(batch)} == {t.id for t in run.tasks["train"]} - {BAD.id}
    (event,) = recorded(run.folder).values()
    assert (event["task"], event["rule"], event["from_batch"]) == (BAD.id, "faults", 0)
    assert f"task {BAD.id} is quarantined: 8 of 8 attempts met a fault" in said(run)
    assert [row["kind"] for row in run.folder.metrics()] == ["quarantine"]
    quarantine.weigh(1, batch)
    assert len(recorded(run.folder)) == 1


def test_a_decision_acts_again_from_its_batch_on(run: Run) -> None:
    """A resumed run takes up the decision at the batch from which it acted, not before, though nothing speaks anew."""
    quarantine = Quarantine(run, TASKS)
    quarantine.begin({})
    run.state.version = 2
    quarantine.lost([Suspicion(BAD.id, "gold", "its gold fails", {})], lambda task: None)
    run.state.version = 1
    again = Quarantine(run, TASKS)
    again.begin({})
    again.weigh(1, [])
    assert run.state.sampler.withdrawn == frozenset()
    again.weigh(2, [])
    assert run.state.sampler.withdrawn == {BAD.id}


def test_what_trained_since_the_last_good_look_is_undone(run: Run) -> None:
    """Where attempts at a broken task had trained since, the way back is marked first, and the run goes back."""
    quarantine = Quarantine(run, TASKS)
    quarantine.begin({})
    run.folder.store.append("rl", 2, [passed(BAD)])
    run.state.trusted, run.state.version = 1, 3
    marked: list[str] = []
    with pytest.raises(WentBack) as back:
        quarantine.lost([Suspicion(BAD.id, "gold", "its gold fails", {})], marked.append)
    assert (back.value.trusted, marked) == (1, [BAD.id])
    assert recorded(run.folder)[BAD.id]["from_batch"] == 1


def test_what_a_doubtful_judge_said_does_not_count(run: Run) -> None:
    """Once the judge itself was in doubt, only what was decided before counts; a task's own way back drops nothing."""
    for task, batch in ((TASKS[0], 1), (TASKS[1], 5)):
        run.folder.audit(EVENT, task=task.id, split=task.split, rule="gold", reason="x", from_batch=batch)
    run.folder.audit(SET_APART, trusted=3, batches=[], task=TASKS[1].id)
    assert len(recorded(run.folder)) == 2
    run.folder.audit(SET_APART, trusted=3, batches=[], task=None)
    assert list(recorded(run.folder)) == [TASKS[0].id]


def test_a_ruling_against_a_pass_reaches_run_and_task_set(run: Run) -> None:
    """A person who finds a rewarded attempt wrong quarantines its task, in the run and in the ledger of its set."""
    ledger = ledger_path(Path(str(run.config.tasks.path)))
    record(ledger, actor="gate:all", task_id=BAD.id, digest=BAD.content, stage="admitted", reason="ok", evidence={})
    run.folder.store.append("rl", 1, [passed(BAD)])
    rule(run.folder, checkable(run.folder), "a/0", "wrong", reason="prints the answer", who="kim")
    quarantine = Quarantine(run, TASKS)
    quarantine.begin({})
    assert quarantine.names == {BAD.id}
    now = stages(ledger)[BAD.content]
    assert (now.stage, now.entry.actor) == ("quarantined", f"run:{run.folder.id}")
    assert "kim" in now.entry.reason


def test_a_run_without_tasks_stops(run: Run) -> None:
    """A run whose every task is quarantined stops with an error that names a reason."""
    quarantine = Quarantine(run, TASKS)
    quarantine.begin({})
    lost = [Suspicion(task.id, "gold", f"gold of {task.id} fails", {}) for task in run.tasks["train"]]
    with pytest.raises(TaskError, match=r"every task of split 'train' is quarantined \(4\).*fails"):
        quarantine.lost(lost, lambda task: None)


def expiring(task: Task, deadline: float) -> Task:
    """`task` with a frozen test that holds until `deadline`, in seconds since the epoch."""
    check = task.verification
    text = check.tests["test_frozen.py"].data + b"\n\ndef test_date():\n    import time\n"
    text += b"    assert time.time() < %f\n" % deadline
    tests = {**check.tests, "test_frozen.py": File(text)}
    ids = (*check.pass_to_pass, "test_frozen.py::test_date")
    return replace(task, verification=replace(check, tests=tests, pass_to_pass=ids))


def set_with_a_deadline(folder: Path, deadline: float) -> Task:
    """A task set with a ledger in `folder`; the task that is returned, one to train on, has a test that expires."""
    made = {task.id: task for task in generate_family(FamilySpec(seed=0, train=3, validation=2, test=2))}
    (donor,) = [task for task in made.values() if task.id == "validation-0000"]
    assert donor.verification.runner == "pytest"
    bad = expiring(replace(donor, id="train-0003", split="train"), deadline)
    del made[donor.id]
    for task in (*made.values(), bad):
        save_task(task, folder / task.id)
        record(
            ledger_path(folder),
            actor="gate:all",
            task_id=task.id,
            digest=task.content,
            stage="admitted",
            reason="made by hand",
            evidence={},
        )
    return bad


def interrupted(lab: Lab, folder: Path) -> Path:
    """A run on the task set in `folder`, stopped once it has made an update."""
    lab.configure(
        ('family = "quickstart"', f'path = "{folder}"'),
        ("updates = 3", "updates = 5"),
        ("[evaluation]", "[verification]\ncanary_every = 0\ncanary_tasks = 8\n[evaluation]"),
    )
    process = lab.start(str(lab.config))
    place = lab.begun()
    assert lab.eventually((place / "checkpoints" / "00001" / "state.json").exists, 400)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    return place


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_task_whose_test_expires_leaves_a_real_run(lab: Lab) -> None:
    """A frozen test that fails from some date on: the next look blames the task and not the judge, the run goes back
    to before it trained on it and ends well without it; report, audit trail and the task set's ledger say so."""
    for seconds in (45.0, 400.0):  # on a busy machine, the first update may take longer
        folder, deadline = lab.root / f"set-{seconds:.0f}", time.time() + seconds
        bad = set_with_a_deadline(folder, deadline)
        place = interrupted(lab, folder)
        if time.time() < deadline:
            break
        (lab.root / "runs").rename(lab.root / f"slow-{seconds:.0f}")
    time.sleep(max(0.0, deadline + 1 - time.time()))
    summary = lab.train("--resume", str(place))
    assert summary["quarantined"] == [bad.id]
    assert summary["updates"] == 5
    with RunFolder.open(place) as run:
        (event,) = recorded(run).values()
        assert (event["task"], event["rule"], event["from_batch"]) == (bad.id, "gold", 0)
        names = [entry["event"] for entry in entries(run.audit_path)]
        assert names.index(EVENT) < names.index(SET_APART)
        assert "canary_deviated" not in names
        drawn = {batch.update: {t.task_id for t in run.store.load(batch)} for batch in run.store.batches("rl")}
        assert sorted(drawn) == [1, 2, 3, 4, 5]
        assert all(bad.id not in ids for update, ids in drawn.items() if update > 2)  # two were in line already
        (row,) = [row for row in run.metrics() if row["kind"] == "quarantine"]
        assert (row["update"], row["task"]) == (1, bad.id)
        run.verify_audit()
    assert "Quarantined tasks" in (place / "report.html").read_text()
    assert stages(ledger_path(folder))[bad.content].stage == "quarantined"
    state = json.loads((place / "checkpoints" / "00005" / "state.json").read_text())
    assert state["sampler"]["withdrawn"] == [bad.id]
