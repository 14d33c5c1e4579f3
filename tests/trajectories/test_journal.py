"""The journal: what was written is read back, a torn end is cut off and nothing else, a kill loses only the end."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import StoreError
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.tree import Change, File
from practicum.records.verdict import Finding, Signal, Submission, Verdict
from practicum.trajectories.journal import Flight, Journal

anything = st.text(st.characters(exclude_categories=()), max_size=8)
numbers = st.floats(allow_nan=False)
ids = st.lists(st.integers(0, 2**40), min_size=1, max_size=6).map(lambda found: tuple(found))


@st.composite
def turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Turns of one episode; some prompts extend what was before, some start over."""
    found: list[Turn] = []
    for index in range(draw(st.integers(0, 4))):
        sampled, prompt, extends = draw(ids), draw(ids), draw(st.booleans())
        if found and extends:
            prompt = found[-1].prompt_ids + found[-1].sampled_ids + prompt
        found.append(
            Turn(
                index=index,
                prompt_ids=prompt,
                sampled_ids=sampled,
                logprobs=tuple(draw(numbers) for _ in sampled),
                policy_version=draw(st.integers(-1, 9)),
                stop_reason=draw(st.sampled_from(["stop", "length"])),
                text=draw(anything),
                action=Action(draw(anything), draw(st.dictionaries(anything, anything, max_size=2))),
                observation=draw(anything),
                snapshot_before=draw(anything),
                snapshot_after=draw(anything),
                timing={"generate": 0.1, "act": draw(numbers)},
                failed=draw(st.sampled_from([True, False, None])),
            )
        )
    return tuple(found)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    verdict = Verdict(
        "valid",
        "partial",
        draw(numbers),
        {draw(anything): "passed"},
        (Signal("turns", 0.5),),
        (Finding("note", draw(anything), draw(anything)),),
        {"deep": [1, {"of": None}]},
        draw(st.none() | anything),
        "v",
    )
    changes = [Change("a.py", "edit", File(draw(st.binary(max_size=9)), 0o755)), Change("b", "delete", None)]
    return Trajectory(
        id=draw(st.sampled_from(["g/0", "g/1", "ü\ud800"])),
        group_id="g",
        task_id=draw(anything),
        task_digest=draw(anything),
        turns=draw(turns()),
        stop_reason="submitted",
        fault=draw(st.none() | st.builds(Fault, anything, anything)),
        submission=draw(st.none() | st.just(Submission(tuple(changes)))),
        verdict=draw(st.none() | st.just(verdict)),
        cost={"act_s": draw(numbers)},
        seed=draw(st.integers(0, 2**62)),
    )


def unanswered(turn: Turn) -> Turn:
    return replace(turn, observation="", snapshot_after="", failed=None)


def write(journal: Journal, trajectory: Trajectory, *, started: int = 0) -> list[Flight]:
    """Write the whole life of `trajectory`, of which `started` turns stood already; what is in flight after each."""
    states: list[Flight] = []

    def note() -> None:
        states.append(journal.in_flight()[trajectory.id])

    done, unit = trajectory.turns, trajectory.id
    journal.begun(unit, trajectory.task_digest, trajectory.seed, done[:started], None)
    note()
    for index in range(started, len(done)):
        journal.intent(unit, unanswered(done[index]), done[index - 1] if index else None)
        note()
        journal.result(unit, done[index])
        note()
    journal.ended(replace(trajectory, verdict=None))
    note()
    journal.judged(trajectory)
    note()
    return states


@settings(deadline=None, max_examples=30)
@given(trajectories(), st.integers(0, 4))
def test_what_was_written_is_read_back(trajectory: Trajectory, started: int) -> None:
    """Turns, what is pending, the end and the verdict: whatever a model said, floats with all their bits."""
    done = trajectory.turns
    started = min(started, len(done))
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "journal") as journal:
        states = write(journal, trajectory, started=started)
        for step, state in enumerate(states[: 1 + 2 * (len(done) - started)]):
            assert state.turns == done[: started + step // 2]
            said = (
                replace(done[started + step // 2], observation="", snapshot_after="", failed=None) if step % 2 else None
            )
            assert state.pending == said
            assert (state.task_digest, state.seed) == (trajectory.task_digest, trajectory.seed)
        assert (states[-2].ended, states[-2].judged) == (replace(trajectory, verdict=None), None)
        assert states[-1].judged == trajectory
        reopened = Journal.open(journal.path)
        assert (reopened.in_flight(), reopened.lost) == ({trajectory.id: states[-1]}, 0)
        reopened.close()


def example(name: str = "g/0") -> Trajectory:
    turn = Turn(
        0, (1, 2), (3,), (-0.5,), 1, "stop", "ä", Action("bash", {"command": "ls"}), "a\n", "b", "c", {"act": 1}
    )
    more = replace(turn, index=1, prompt_ids=(1, 2, 3, 4))
    return Trajectory(name, "g", "t", "d", (turn, more), "submitted", seed=4)


def test_a_file_cut_anywhere_holds_the_records_before_the_cut(tmp_path: Path) -> None:
    """However many bytes a dead writer got out, the whole records stand, the rest goes, and writing goes on."""
    with Journal.open(tmp_path / "whole") as journal:
        states = write(journal, example())
    data = journal.path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    cuts = {*range(0, len(data), 13), *ends, *(end - 1 for end in ends), *(end + 1 for end in ends[:-1])}
    for cut in cuts:
        path = tmp_path / "cut"
        path.write_bytes(data[:cut])
        with Journal.open(path) as torn:
            whole = sum(end <= cut for end in ends)
            assert torn.in_flight() == ({"g/0": states[whole - 1]} if whole else {})
            assert torn.lost == cut - (ends[whole - 1] if whole else 0)
            if cut in ends:
                torn.begun("other", "d", 1, (), None)
                assert torn.in_flight()["other"].turns == ()


@given(st.data())
@settings(deadline=None, max_examples=30)
def test_an_altered_record_is_not_believed(data: st.DataObject) -> None:
    """A byte that is not what was written takes its record and all after it away."""
    with tempfile.TemporaryDirectory() as folder:
        with Journal.open(Path(folder) / "journal") as journal:
            states = write(journal, example())
        whole = bytearray(journal.path.read_bytes())
        at = data.draw(st.integers(0, len(whole) - 1))
        before = whole[:at].count(b"\n")
        whole[at] ^= data.draw(st.integers(1, 255))
        journal.path.write_bytes(whole)
        with Journal.open(journal.path) as torn:
            assert torn.lost > 0
            assert torn.in_flight() == ({"g/0": states[before - 1]} if before else {})


def test_what_begins_anew_forgets_what_was(tmp_path: Path) -> None:
    """A second beginning takes the place of the first; what is handed over is gone, and only that."""
    with Journal.open(tmp_path / "journal") as journal:
        write(journal, example())
        write(journal, example("g/1"))
        journal.begun("g/0", "d", 4, example().turns[:1], example().turns[1])
        flight = journal.in_flight()["g/0"]
        assert (flight.turns, flight.pending, flight.judged) == (example().turns[:1], example().turns[1], None)
        assert list(journal.in_flight()) == ["g/1", "g/0"]
        journal.handed(["g/0", "never begun"])
        assert list(journal.in_flight()) == ["g/1"]


def test_compaction_keeps_what_is_in_flight(tmp_path: Path) -> None:
    """The file shrinks to the units that were not reported, and to nothing when all were; it can be written on."""

    async def body() -> None:
        with Journal.open(tmp_path / "journal") as journal:
            write(journal, example())
            write(journal, example("g/1"))
            before = journal.in_flight()
            journal.handed(["g/0"])
            left = await journal.compact()
            assert journal.in_flight() == {"g/1": before["g/1"]}
            assert left == journal.path.stat().st_size
            write(journal, example("g/2"))
            await journal.durable()
            journal.handed(["g/1", "g/2"])
            assert await journal.compact() == 0

    asyncio.run(body())
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


class Counted(Journal):
    """Counts how often it waits for the disk."""

    syncs = 0

    async def _sync(self) -> None:
        self.syncs += 1
        await super()._sync()


def test_who_waits_at_one_time_shares_one_sync(tmp_path: Path) -> None:
    """A hundred episodes that write at once wait for the disk twice at most, and each for what it wrote."""

    async def body() -> None:
        with Counted.open(tmp_path / "journal") as journal:

            async def one(name: str) -> None:
                journal.begun(name, "d", 1, (), None)
                await journal.durable()

            async with asyncio.timeout(30):
                await asyncio.gather(*(one(str(number)) for number in range(100)))
            assert 1 <= journal.syncs <= 2
            await journal.durable()
            assert journal.syncs <= 2
            assert len(journal.in_flight()) == 100

    asyncio.run(body())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error says which file, before anything is begun."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="journal"):
        Journal.open(tmp_path / "file" / "journal")


def test_a_record_that_makes_no_sense_is_told(tmp_path: Path) -> None:
    """A sound line of another kind is no torn end: it is an error, with what to do."""
    with Journal.open(tmp_path / "journal") as journal:
        journal.begun("g/0", "d", 1, (), None)
        journal._append("g/0", "imagined", {})
        with pytest.raises(StoreError, match="makes no sense"):
            journal.in_flight()
