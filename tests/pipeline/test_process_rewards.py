"""Potentials of the states between turns."""

from __future__ import annotations

from practicum.pipeline.process_rewards import potentials_of
from practicum.records.task import PlainCheck, Task, Verification
from practicum.records.tree import File
from practicum.records.verdict import TestStatus, Verdict

TASK = Task(
    id="t",
    instruction="do it",
    files={"calc.py": File(b"")},
    verification=Verification(
        runner="plain",
        tests={"cases.jsonl": File(b"")},
        plain=PlainCheck("calc:add", "cases.jsonl"),
        fail_to_pass=("a", "b"),
        pass_to_pass=("c",),
    ),
)


def judged(**tests: TestStatus) -> Verdict:
    passed = all(status == "passed" for status in tests.values())
    return Verdict("valid", "passed" if passed else "partial", 1.0 if passed else 0.3, tests=tests)


def test_a_potential_is_the_share_of_tests_that_newly_pass() -> None:
    """It goes from 0 to 1 as tests pass, and back to 0 where one that passed before is broken."""
    states = [
        judged(a="failed", b="failed", c="passed"),
        judged(a="passed", b="failed", c="passed"),
        judged(a="passed", b="passed", c="failed"),
        judged(a="passed", b="passed", c="passed"),
    ]
    assert potentials_of(TASK, states) == [0.0, 0.5, 0.0, 1.0]


def test_a_failed_build_has_none() -> None:
    """A state that does not build is worth as much as the untouched one."""
    assert potentials_of(TASK, [Verdict("valid", "build_failed", -0.5)]) == [0.0]


def test_without_a_verdict_on_each_state_there_is_no_credit_by_turn() -> None:
    """One state that could not be judged, or no state at all, gives None and not a guess."""
    assert potentials_of(TASK, [judged(a="passed", b="passed", c="passed"), None]) is None
    assert potentials_of(TASK, [Verdict("unscorable", None, None)]) is None
    assert potentials_of(TASK, []) is None
