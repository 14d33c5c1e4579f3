"""The outcome follows from statuses alone, and doing nothing never pays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.records.task import Verification
from practicum.records.verdict import default_reward
from practicum.verification.outcome import decide, decide_score

CHECK = Verification("pytest", {}, fail_to_pass=("a", "b", "c", "d"), pass_to_pass=("p",))
ALL = dict.fromkeys(("a", "b", "c", "d", "p"), "passed")


@pytest.mark.parametrize(
    ("change", "options", "outcome", "newly"),
    [
        ({}, {}, "passed", 4),
        ({"a": "failed"}, {}, "partial", 3),
        ({"a": "missing", "b": "failed"}, {}, "partial", 2),
        ({"a": None}, {}, "partial", 3),
        ({"p": "failed"}, {}, "failed", 4),
        ({"p": None}, {}, "failed", 4),
        (dict.fromkeys("abcd", "failed"), {}, "failed", 0),
        ({}, {"complete": False}, "failed", 4),
        ({}, {"fresh": (10, 10)}, "passed", 4),
        ({}, {"fresh": (9, 10)}, "partial", 3),
        ({}, {"fresh": (0, 10)}, "failed", 0),
    ],
)
def test_the_table(change: dict[str, Any], options: dict[str, Any], outcome: str, newly: int) -> None:
    """Each row of the outcome table."""
    statuses = {name: status for name, status in (ALL | change).items() if status}
    assert decide(CHECK, statuses, **options) == (outcome, newly)


STATUS = st.sampled_from(["passed", "failed", "missing"])


@given(st.dictionaries(st.sampled_from("abcdpxyz"), STATUS), st.none() | st.tuples(st.integers(0, 9), st.just(9)))
def test_only_a_full_pass_is_worth_the_most(statuses: dict[str, Any], fresh: tuple[int, int] | None) -> None:
    """Whatever is reported, a reward of 1 means every expected id passed; a no-op never gets more than −0.2."""
    outcome, newly = decide(CHECK, statuses, fresh=fresh)
    reward = default_reward(outcome, newly_passed=newly, total=4)
    full = all(statuses.get(name) == "passed" for name in ALL) and fresh in (None, (9, 9))
    assert (reward == 1.0) == (outcome == "passed") == full
    if not any(statuses.get(name) == "passed" for name in "abcd"):
        assert reward == -0.2


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_score_is_bounded_by_the_table(score: float) -> None:
    """A finite number from a task's own script passes at 1 and otherwise stays below 0.8."""
    outcome, newly, total = decide_score(score)
    reward = default_reward(outcome, newly_passed=newly, total=total)
    assert (outcome == "passed") == (score >= 1)
    assert reward == 1.0 if score >= 1 else -0.2 <= reward < 0.8
