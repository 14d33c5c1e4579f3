"""What an attempt did becomes scores in [0, 1], from its record alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.records.task import Limits, Task, Verification
from practicum.records.trajectory import Action, Turn
from practicum.records.tree import Change, File
from practicum.records.verdict import Missing, Signal, Submission, Verdict
from practicum.verification.process import CHANGE, CONDUCT, Measured, conduct

FILES = {"a.py": File(b"one\ntwo\nthree\n"), "b.py": File(b"b\n")}
TASK = Task("t", "Do it.", FILES, Verification("plain", {}), limits=Limits(episode_s=10.0))
PASSED = Verdict("valid", "passed", 1.0)


def turn(tool: str, *, failed: bool | None = False, act_s: float = 0.0) -> Turn:
    return Turn(0, (1,), (2,), (-0.1,), 0, "stop", "", Action(tool), "", "a", "b", {"act": act_s}, failed)


def score(name: str, *turns: Turn) -> float | str:
    said = conduct(TASK, turns)[name]
    return said.reason if isinstance(said, Missing) else said.score


def changed(name: str, *changes: Change) -> float:
    said = asyncio.run(Measured(name).signal(TASK, Submission(changes), PASSED))
    assert isinstance(said, Signal)
    return said.score


def edit(data: bytes, path: str = "a.py") -> Change:
    return Change(path, "edit", File(data))


def test_turns() -> None:
    """One turn to act and one to submit cost nothing; eight more halve the score."""
    assert score("turns", turn("submit")) == 1.0
    assert score("turns", turn("edit"), turn("submit")) == 1.0
    assert score("turns", *[turn("bash")] * 10) == 0.5


def test_commands() -> None:
    """The share of commands and edits that worked; submitting and speaking nonsense are none."""
    turns = (turn("bash", failed=True), turn("edit"), turn("bash"), turn("invalid", failed=True), turn("submit"))
    assert score("commands", *turns) == pytest.approx(2 / 3)
    assert score("commands", turn("submit")) == "the attempt ran no command"
    assert score("commands", turn("bash"), turn("bash", failed=None)) == "whether commands failed was not recorded"


def test_protocol() -> None:
    """The share of turns that were an action, whether it worked or not."""
    assert score("protocol", turn("invalid"), turn("invalid"), turn("bash", failed=True), turn("submit")) == 0.5


def test_seconds() -> None:
    """What actions left of the episode's time, never below 0; unknown where a turn does not say."""
    assert score("seconds", turn("bash", act_s=2.0), turn("bash", act_s=0.5)) == pytest.approx(0.75)
    assert score("seconds", turn("bash", act_s=99.0)) == 0.0
    assert score("seconds", replace(turn("bash"), timing={})) == "how long actions took was not recorded"


def test_files() -> None:
    """One file touched costs nothing, a deletion counts as one."""
    assert changed("files", edit(b"")) == 1.0
    assert changed("files", edit(b""), Change("b.py", "delete", None)) == pytest.approx(4 / 5)


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (edit(b"one\n2\nthree\n"), 2),
        (edit(b"three\ntwo\none\n"), 0),
        (edit(b"one\none\ntwo\nthree\n"), 1),
        (Change("b.py", "delete", None), 1),
        (Change("new.py", "add", File(b"x\n" * 42)), 42),
    ],
    ids=["replaced", "moved", "repeated", "deleted", "added"],
)
def test_size(change: Change, lines: int) -> None:
    """Lines added and removed, beyond the one that any work replaces; forty of them halve the score."""
    assert changed("size", change) == pytest.approx(40 / (40 + max(0, lines - 2)))


def test_without_turns_nothing_is_said() -> None:
    """An attempt of which no turn is known has no conduct, good or bad."""
    assert set(conduct(TASK, ())) == set(CONDUCT)
    assert set(conduct(TASK, ()).values()) == {Missing("the attempt's turns are not known")}


acts = st.builds(
    lambda tool, failed, act_s: turn(tool, failed=failed, act_s=act_s),
    st.sampled_from(["bash", "edit", "invalid", "submit", "other"]),
    st.sampled_from([True, False, None]),
    st.floats(0, 1e6),
)


@given(st.lists(acts, max_size=30), st.lists(st.binary(max_size=60), max_size=5))
def test_every_score_is_within_bounds(turns: list[Turn], files: list[bytes]) -> None:
    """Whatever an attempt did, a score is in [0, 1], and the same when asked again."""
    said = conduct(TASK, turns)
    assert said == conduct(TASK, list(turns))
    submission = Submission(tuple(Change(f"{n}.py", "add", File(data)) for n, data in enumerate(files)))
    scores = [signal.score for signal in said.values() if isinstance(signal, Signal)]
    scores += [measure(TASK, submission) for measure in CHANGE.values()]
    assert all(0 <= value <= 1 for value in scores)
