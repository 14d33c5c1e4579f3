"""Verdicts: what they may say, and the reward table."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.records.tree import Change, File
from practicum.records.verdict import Outcome, Status, Submission, Verdict, default_reward

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@pytest.mark.parametrize(
    ("outcome", "newly_passed", "total", "reward"),
    [
        ("tampered", 4, 4, -1.0),
        ("build_failed", 0, 4, -0.5),
        ("passed", 4, 4, 1.0),
        ("partial", 1, 4, 0.05),
        ("partial", 3, 4, 0.55),
        ("failed", 0, 4, -0.2),
        ("failed", 3, 4, -0.2),
    ],
)
def test_default_reward_is_the_table(outcome: Outcome, newly_passed: int, total: int, reward: float) -> None:
    """Each row of the table gives its number; what passed counts in a partial outcome only."""
    assert default_reward(outcome, newly_passed=newly_passed, total=total) == pytest.approx(reward)


@given(st.integers(2, 500), st.data())
def test_order_of_rewards(total: int, data: st.DataObject) -> None:
    """A pass beats every part of one, a part beats nothing, nothing beats a broken build, and that beats cheating."""
    some = data.draw(st.integers(1, total - 1))
    rewards = [
        default_reward(outcome, newly_passed=some, total=total)
        for outcome in ("passed", "partial", "failed", "build_failed", "tampered")
    ]
    assert rewards == sorted(rewards, reverse=True)
    assert len(set(rewards)) == 5


@pytest.mark.parametrize(
    ("status", "outcome", "reward"),
    [
        case
        for case in itertools.product(get_args(Status), (None, *OUTCOMES), (None, 0.0, 1.0))
        if (case[0] == "valid") != (case[1] is not None) or (case[0] == "valid") != (case[2] is not None)
    ],
)
def test_only_a_valid_verdict_has_a_number(status: Status, outcome: Outcome | None, reward: float | None) -> None:
    """A verdict that is not valid carries neither outcome nor reward, and a valid one carries both."""
    with pytest.raises(ValueError, match=f"a {status} verdict cannot have"):
        Verdict(status, outcome, reward)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_valid_verdicts(outcome: Outcome) -> None:
    """Only the outcome `passed` is a pass."""
    assert Verdict("valid", outcome, 0.0).passed == (outcome == "passed")


@pytest.mark.parametrize("status", ["invalid", "unscorable"])
def test_faults_never_pass(status: Status) -> None:
    """A fault of the task or of the host is no pass."""
    assert not Verdict(status, None, None, reason="the host went away").passed


def test_submissions_are_named_by_their_changes() -> None:
    """Content, mode, kind and path each change the digest; findings do not."""
    base = Submission((Change("a", "add", File(b"x")),))
    others = [
        Submission((Change("a", "edit", File(b"x")),)),
        Submission((Change("b", "add", File(b"x")),)),
        Submission((Change("a", "add", File(b"y")),)),
        Submission((Change("a", "add", File(b"x", 0o755)),)),
        Submission((Change("a", "delete"),)),
        Submission(()),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == 7
