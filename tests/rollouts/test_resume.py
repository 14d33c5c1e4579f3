"""An episode goes on after its box, or its process, died: nothing is sampled, done or judged twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from practicum.errors import BoxPathError, SandboxDied
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.scripted import ScriptedPolicy
from practicum.policies.text import ByteRenderer
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Trajectory
from practicum.records.tree import File, Tree
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.attempt import AttemptSpec, Parked, Rolled, judge_rolled, roll_or_park, roll_out
from practicum.rollouts.harness import Harness
from practicum.rollouts.journalling import recalled
from practicum.rollouts.session import TEXT_BUDGETS
from practicum.rollouts.spec import Patience
from practicum.rollouts.start import Start
from practicum.sandboxes.contract import BoxSpec, CommandResult, SnapshotId
from practicum.sandboxes.fake import FakeBox, FakeProvider
from practicum.sandboxes.fake_programs import FakeCall, Outcome
from practicum.sandboxes.snapshots import MemorySnapshots
from practicum.trajectories.journal import Journal

SAYS = (
    "<bash>append a</bash>",
    "nonsense",
    "<bash>append b</bash>",
    "<edit>notes.txt<old><new>x\n</edit>",
    "<bash>append c</bash>",
)

TASK = Task(
    id="log",
    instruction="append a, b and c",
    files={},
    verification=Verification(runner="command", tests={}),
    editable=("*.txt",),
)


def bash(call: FakeCall) -> Outcome:
    """`append WORD`: add it to log.txt, and show all of that."""
    word = call.argv[2].removeprefix("append ")
    before = call.files.get("/app/log.txt", File(b"")).data
    call.files["/app/log.txt"] = File(before + word.encode() + b"\n")
    return 0, before + word.encode() + b"\n", b""


class Mortal(FakeBox):
    """Dies before or after the command that `dies_at` names; cannot save a workspace with `odd` in it."""

    async def run(self, command: Sequence[str], **options: Any) -> CommandResult:
        bench = self._provider
        assert isinstance(bench, Bench)
        bench.ran += 1
        if bench.dies_at == (bench.ran, "before"):
            await self.close()
        result = await super().run(command, **options)
        if bench.dies_at == (bench.ran, "after") or bench.ran in bench.dies_often:
            await self.close()
            raise SandboxDied("the host pulled the plug")
        return result

    async def save(self) -> SnapshotId:
        bench = self._provider
        assert isinstance(bench, Bench)
        file = self._files.get("/app/log.txt")
        if bench.odd and file and bench.odd in file.data:
            raise BoxPathError("what lies there cannot be saved")
        return await super().save()


class Bench(FakeProvider):
    """Boxes in memory that may die."""

    def __init__(self, snapshots: MemorySnapshots | None = None) -> None:
        super().__init__({"bash": bash}, snapshots)
        self.ran = 0
        self.dies_at: tuple[int, str] | None = None
        self.dies_often: Sequence[int] = ()
        self.odd = b""

    def make_box(self, spec: BoxSpec) -> FakeBox:
        return Mortal(spec, self)


class Speaker(ScriptedPolicy):
    """Says `SAYS`, then submits; `asked` counts, and `version` is the policy's."""

    def __init__(self) -> None:
        super().__init__(ByteRenderer(), lambda _, turn: SAYS[turn] if turn < len(SAYS) else None)
        self.asked = 0
        self.version = 3

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        self.asked += 1
        return replace(await super().sample(prompt_ids, params, session=session), version=self.version)

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        with super().session(name):
            yield


class Counting:
    """Passes what holds each word once."""

    version = "counting/1"

    def __init__(self) -> None:
        self.asked = 0

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        self.asked += 1
        logs = [change.file.data for change in submission.changes if change.path == "log.txt" and change.file]
        passed = logs == [b"a\nb\nc\n"]
        return Verdict("valid", "passed" if passed else "failed", 1.0 if passed else -0.2)


@dataclass
class Scene:
    """All that one attempt needs, and what became of it."""

    bench: Bench = field(default_factory=Bench)
    policy: Speaker = field(default_factory=Speaker)
    judge: Counting = field(default_factory=Counting)
    task: Task = TASK
    refused: str = ""

    @property
    def spec(self) -> AttemptSpec:
        return AttemptSpec(self.task, "group", 1, seed=11, patience=Patience(lives=3))

    @property
    def parts(self) -> Mapping[str, Any]:
        harness = Harness(TEXT_BUDGETS)
        return {"provider": self.bench, "policy": self.policy, "renderer": ByteRenderer(), "harness": harness}

    async def attempt(self, spec: AttemptSpec | None = None, journal: Journal | None = None) -> Trajectory:
        rolled = await roll_out(spec or self.spec, **self.parts, journal=journal)
        self.refused = rolled.refused
        return await judge_rolled(rolled, self.judge, journal)

    async def go_on(self, journal: Journal) -> Trajectory:
        """What a new process does with what is on record."""
        flight = journal.in_flight().get(self.spec.id)
        left = recalled(flight, self.spec) if flight else self.spec
        if isinstance(left, AttemptSpec):
            return await self.attempt(left, journal)
        return await judge_rolled(left, self.judge, journal) if isinstance(left, Rolled) else left


def essence(trajectory: Trajectory) -> Trajectory:
    """What must not depend on what died: everything but times and costs."""
    turns = tuple(replace(turn, timing={}) for turn in trajectory.turns)
    return replace(trajectory, turns=turns, cost={})


@pytest.fixture(scope="module")
def unbroken() -> Trajectory:
    trajectory = asyncio.run(Scene().attempt())
    assert trajectory.passed
    assert trajectory.turns[-2].observation == "a\nb\nc"
    return essence(trajectory)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("command", [1, 2, 3])
def test_a_box_that_dies_costs_no_turn(unbroken: Trajectory, command: int, moment: str) -> None:
    """What was sampled is carried out in a fresh box from the workspace before it; its effects count once."""
    scene = Scene()
    scene.bench.dies_at = (command, moment)
    trajectory = asyncio.run(scene.attempt())
    assert essence(trajectory) == unbroken
    assert scene.policy.asked == len(unbroken.turns)
    assert (trajectory.cost["boxes"], trajectory.cost["boxes_lost"]) == (2, 1)
    assert "restarts" not in trajectory.cost


def test_an_episode_whose_workspace_could_not_be_saved_begins_anew(unbroken: Trajectory) -> None:
    """Where the last turn has no snapshot there is nothing to go on from; that is counted, with the reason."""
    scene = Scene()
    scene.bench.odd, scene.bench.dies_at = b"b", (3, "after")
    trajectory = asyncio.run(scene.attempt())
    assert [turn.observation for turn in trajectory.turns] == [turn.observation for turn in unbroken.turns]
    assert scene.policy.asked == len(unbroken.turns) + 5
    assert (trajectory.cost["restarts"], trajectory.passed) == (1, True)
    assert "could not be saved" in scene.refused


def test_a_box_that_dies_in_each_life_masks_the_attempt() -> None:
    """After as many boxes as there are lives it is a fault; the turns before it stand."""
    scene = Scene()
    scene.bench.dies_often = range(2, 99)
    trajectory = asyncio.run(scene.attempt())
    assert trajectory.fault is not None
    assert (trajectory.fault.kind, trajectory.reward, len(trajectory.turns)) == ("SandboxDied", None, 2)
    assert (scene.bench.created, scene.judge.asked, scene.bench.live) == (3, 0, 0)


KINDS = ["begun", *["intent", "result"] * 6, "ended", "judged"]


@dataclass
class Recorded:
    """The journal of an unbroken attempt by its lines, and the workspaces saved meanwhile."""

    lines: list[bytes]
    snapshots: MemorySnapshots

    def opened(self, path: Path, reach: int) -> Journal:
        path.write_bytes(b"".join(self.lines[:reach]))
        return Journal.open(path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    path = tmp_path_factory.mktemp("journal") / "whole"
    snapshots = MemorySnapshots()
    with Journal.open(path) as journal:
        asyncio.run(Scene(Bench(snapshots)).attempt(journal=journal))
    lines = path.read_bytes().splitlines(keepends=True)
    assert [line.split(b'"')[3].decode() for line in lines] == KINDS
    return Recorded(lines, snapshots)


@pytest.mark.parametrize("reach", range(len(KINDS) + 1))
def test_from_every_record_on_the_attempt_is_the_same(
    unbroken: Trajectory, recorded: Recorded, tmp_path: Path, reach: int
) -> None:
    """Whatever the journal reaches to, what is on record is not sampled, carried out or judged again."""
    scene, done = Scene(Bench(recorded.snapshots)), KINDS[:reach]
    with recorded.opened(tmp_path / "journal", reach) as journal:
        trajectory = asyncio.run(scene.go_on(journal))
        asked, ran, judged = scene.policy.asked, scene.bench.ran, scene.judge.asked
        assert essence(asyncio.run(scene.go_on(journal))) == essence(trajectory) == unbroken
    assert (scene.policy.asked, scene.bench.ran, scene.judge.asked) == (asked, ran, judged)
    assert asked == 6 - done.count("intent")
    assert ran == sum(text.startswith("<bash>") for text in SAYS[done.count("result") :])
    assert judged == ("judged" not in done)
    assert trajectory.cost.get("resumes", 0) == (reach > 0 and "ended" not in done)
    assert ("restarts" in trajectory.cost, scene.bench.live) == (False, 0)


def test_a_resumed_attempt_is_on_record_as_any_other(unbroken: Trajectory, recorded: Recorded, tmp_path: Path) -> None:
    """Killed again after it was resumed, it goes on from where it stood then; once handed over nothing is left."""
    path = tmp_path / "journal"
    scene = Scene(Bench(recorded.snapshots))
    with recorded.opened(path, 4) as journal:
        asyncio.run(scene.go_on(journal))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    scene = Scene(Bench(recorded.snapshots))
    with Journal.open(path) as journal:
        trajectory = asyncio.run(scene.go_on(journal))
        assert (essence(trajectory), scene.policy.asked) == (unbroken, 0)
        journal.handed([trajectory.id])
        assert journal.in_flight() == {}
        assert asyncio.run(journal.compact()) == path.stat().st_size == 0
        asyncio.run(Scene().attempt(journal=journal))
        assert list(journal.in_flight()) == [trajectory.id]


def start_of(recorded: Recorded, tmp_path: Path, reach: int) -> Start:
    with recorded.opened(tmp_path / "start", reach) as journal:
        left = recalled(journal.in_flight()[Scene().spec.id], Scene().spec)
    assert isinstance(left, AttemptSpec)
    assert left.start is not None
    return left.start


def altered(start: Start, position: int, **change: Any) -> Start:
    turns = list(start.turns)
    turns[position] = replace(turns[position], **change)
    return replace(start, turns=tuple(turns))


DISAGREEMENTS: dict[str, Callable[[Start], Start]] = {
    "another task": lambda start: replace(start, task_digest="0" * 64),
    "seed 12, not 11": lambda start: replace(start, seed=12),
    "turn 1 is missing": lambda start: replace(start, turns=start.turns[:1] + start.turns[2:]),
    "does not begin with the workspace": lambda start: altered(start, 1, snapshot_before="0" * 64),
    "is not there": lambda start: altered(start, -1, snapshot_after="0" * 64),
    "could not be saved": lambda start: altered(start, -1, snapshot_after=""),
    "after other ids": lambda start: altered(start, 1, prompt_ids=(1, 2, 3)),
    "as the text on record": lambda start: altered(start, 1, text="sense"),
    "3 probabilities": lambda start: altered(start, 1, logprobs=(0.0,) * 3),
}


@pytest.mark.parametrize("reason", DISAGREEMENTS)
@pytest.mark.parametrize("strict", [False, True])
def test_what_disagrees_is_refused(
    unbroken: Trajectory, recorded: Recorded, tmp_path: Path, reason: str, strict: bool
) -> None:
    """Never mended: the episode begins anew, which is counted; where only going on will do, it is masked."""
    scene = Scene(Bench(recorded.snapshots))
    start = replace(DISAGREEMENTS[reason](start_of(recorded, tmp_path, 7)), strict=strict)
    trajectory = asyncio.run(scene.attempt(replace(scene.spec, start=start)))
    if strict:
        assert trajectory.fault is not None
        assert (trajectory.fault.kind, scene.policy.asked, scene.bench.ran) == ("StartRefused", 0, 0)
        assert reason in trajectory.fault.message
        return
    assert (essence(trajectory), trajectory.cost["restarts"]) == (unbroken, 1)
    assert reason in scene.refused


def test_a_box_that_holds_another_workspace_is_refused(
    unbroken: Trajectory, recorded: Recorded, tmp_path: Path
) -> None:
    """What the box was made from is read back before anything is done in it."""

    class Forgets(MemorySnapshots):
        def get(self, snapshot: SnapshotId) -> Tree:
            return {**super().get(snapshot), "more.txt": File(b"")}

    snapshots = Forgets()
    scene = Scene(Bench(snapshots))
    for turn in unbroken.turns:
        snapshots.put(recorded.snapshots.get(turn.snapshot_after))
    trajectory = asyncio.run(scene.attempt(replace(scene.spec, start=start_of(recorded, tmp_path, 7))))
    assert (essence(trajectory), trajectory.cost["restarts"]) == (unbroken, 1)
    assert "the box holds the workspace" in scene.refused


@pytest.mark.parametrize("after", range(7))
def test_a_parked_attempt_goes_on_under_the_version_of_then(unbroken: Trajectory, after: int) -> None:
    """It gives up its box between two turns; each turn keeps the version that sampled it."""
    scene = Scene()
    park = asyncio.Event()

    class Parking(Speaker):
        async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
            if self.asked + 1 >= after:
                park.set()
            return await super().sample(prompt_ids, params, session=session)

    scene.policy = Parking()
    if after == 0:
        park.set()

    async def body() -> Rolled | Parked:
        return await roll_or_park(scene.spec, **scene.parts, park=park)

    parked = asyncio.run(body())
    if after == 6:  # the last turn was under way
        assert isinstance(parked, Rolled)
        return
    assert isinstance(parked, Parked)
    assert scene.bench.live == 0
    assert parked.spec.start is not None
    assert len(parked.spec.start.turns) == after
    scene.policy.version = 5
    trajectory = asyncio.run(scene.attempt(parked.spec))
    assert [turn.policy_version for turn in trajectory.turns] == [3] * after + [5] * (6 - after)
    turns = tuple(replace(turn, policy_version=3) for turn in trajectory.turns)
    assert essence(replace(trajectory, turns=turns)) == unbroken
    assert (trajectory.cost["parkings"], trajectory.cost["boxes"]) == (1, 2)
