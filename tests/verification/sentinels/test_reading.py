"""Answers are read against what was asked: one answer a question, and its author's for a pass."""

from __future__ import annotations

from collections.abc import Mapping

from practicum.records.task import Verification
from practicum.records.tree import File
from practicum.records.verdict import TestStatus
from practicum.verification.sentinels.guard import Guarded, guard
from practicum.verification.sentinels.reading import Answers, Bits, read_answers, repeated

ID = "test_x.py::test_it"
SOURCE = (
    "from calc import f\n\ndef test_it():\n    assert f(1) == 1000\n    assert f(2)\n"
    "    if f(3):\n        assert f(3) == 3000\n"
)
CHECK = Verification("pytest", {"test_x.py": File(SOURCE.encode())}, ("test_x.py",), fail_to_pass=(ID,))


def answers(guarded: Guarded, told: Mapping[tuple[int, int], str], ended: TestStatus = "passed") -> Answers:
    """`told` maps (assertion, alternative) to what was reported of it; the rest was not reported."""
    probe = guarded.probes[ID]
    bits: dict[str, dict[str, Bits]] = {one: {} for one in probe.ids}
    for number, asked in enumerate(probe.asked):
        for one, tag, option in zip(probe.ids, asked.tags, asked.options, strict=True):
            held = told.get((number, option))
            if held is not None:
                bits[one][tag] = Bits(held, held.count("1"), len(held), "assert 1 == 2")
    return read_answers(guarded, dict.fromkeys(probe.ids, ended), bits)


GUARDED = guard(CHECK, "n")
RIGHT = {(0, 0): "1", (0, 1): "0", (1, 0): "1", (1, 1): "0"}


def test_only_the_authors_answers_are_a_pass() -> None:
    """One that fails, or is missed though it must be reached, fails the test; one in a branch may be left."""
    assert answers(GUARDED, RIGHT).statuses == {ID: "passed"}
    assert answers(GUARDED, RIGHT | {(2, 0): "11", (2, 1): "00"}).statuses == {ID: "passed"}
    for wrong in ({(0, 0): "0"}, {(1, 0): "0", (1, 1): "1"}, {(2, 0): "10", (2, 1): "00"}):
        read = answers(GUARDED, RIGHT | wrong)
        assert (read.statuses, read.contradictions, read.suspicious) == ({ID: "failed"}, {}, False)
        assert read.details[ID].endswith("assert 1 == 2")
    assert answers(GUARDED, RIGHT, ended="failed").statuses == {ID: "failed"}


def test_two_answers_are_a_contradiction() -> None:
    """Also where each holds at other times, as long as both hold at one."""
    assert set(answers(GUARDED, RIGHT | {(0, 1): "1"}).contradictions) == {(ID, 0, 0)}
    assert set(answers(GUARDED, RIGHT | {(2, 0): "011", (2, 1): "010"}).contradictions) == {(ID, 2, 1)}
    assert answers(GUARDED, RIGHT | {(2, 0): "10", (2, 1): "01"}).contradictions == {}


def test_a_pass_without_its_assertions_is_one_too() -> None:
    """A test that ends as passed has come by what it cannot avoid, and nothing has come out of it."""
    assert len(answers(GUARDED, {}).contradictions) == 2
    assert answers(GUARDED, {}, ended="failed").contradictions == {}
    assert set(answers(GUARDED, RIGHT | {(1, 0): "x"}).contradictions) == {(ID, 1, -2)}


def test_only_what_comes_again_is_proven() -> None:
    """At the same point; or by several answers that change with the ones on offer."""
    later = guard(CHECK, "n", 1)
    both = {(0, 1): "1"}
    assert set(repeated(answers(GUARDED, RIGHT | both), answers(later, RIGHT | both))) == {(ID, 0, 0)}
    assert repeated(answers(GUARDED, RIGHT | both), answers(later, RIGHT | {(1, 1): "1"})) == {}
    guessed = RIGHT | {(0, 0): "0", (0, 1): "1", (2, 0): "0", (2, 1): "1"}
    assert answers(GUARDED, guessed).suspicious
    assert set(repeated(answers(GUARDED, guessed), answers(later, guessed))) == {(ID, 0, 0), (ID, 2, 0)}
    assert repeated(answers(GUARDED, guessed), answers(later, RIGHT | {(0, 0): "0", (0, 1): "1"})) == {}
