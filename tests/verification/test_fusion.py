"""Signals shape a pass within its band and nothing else; what is missing changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.records.task import RewardRule, Task, Verification
from practicum.records.verdict import Signal, Verdict, default_reward
from practicum.verification.fusion import TABLES, WIDEST, fuse, reward_problem, shaped

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
SIGNALS = st.lists(st.builds(Signal, st.sampled_from("abc"), NUMBERS, NUMBERS, NUMBERS), max_size=4)
RULES = st.builds(RewardRule, st.sampled_from(sorted(TABLES)), st.floats(0, WIDEST), st.just(("a", "b")))


@given(RULES, SIGNALS, SIGNALS, st.integers(2, 1000), st.data())
def test_no_failed_attempt_outranks_a_passed_one(
    rule: RewardRule, good: list[Signal], bad: list[Signal], total: int, data: st.DataObject
) -> None:
    """Whatever the signals are, in every table; and every failure's reward is the table's own."""
    passed = fuse(rule, "passed", good, newly=total, total=total)
    assert 1.0 - rule.band - 1e-9 <= passed <= 1.0
    for outcome in ("partial", "failed", "build_failed", "tampered"):
        newly = data.draw(st.integers(1, total - 1))
        failed = fuse(rule, outcome, bad, newly=newly, total=total)
        assert failed < passed
        assert failed == TABLES[rule.table](outcome, newly_passed=newly, total=total)
        assert outcome != "tampered" or failed <= 0


def test_the_mean_of_what_is_known_shapes() -> None:
    """Weighted by weight and reliability; unnamed, unusable and missing signals count for nothing."""
    rule = RewardRule("default", 0.2, ("a", "b"))

    def reward(*signals: Signal) -> float:
        return fuse(rule, "passed", signals, newly=1, total=1)

    assert reward() == 1.0
    assert reward(Signal("a", 0.5)) == pytest.approx(0.9)
    assert reward(Signal("a", 0.0), Signal("b", 1.0, weight=3.0)) == pytest.approx(0.95)
    assert reward(Signal("a", 0.0, reliability=0.5), Signal("b", 1.0, weight=1.5)) == pytest.approx(0.95)
    assert reward(Signal("c", 0.0)) == 1.0
    assert reward(Signal("a", math.nan), Signal("b", 2.0), Signal("a", 0.0, weight=0.0)) == 1.0


@given(SIGNALS.filter(lambda signals: len(signals) > 1), st.randoms())
def test_the_order_of_signals_does_not_matter(signals: list[Signal], rng: Any) -> None:
    """The same signals give the same bytes."""
    rule, mixed = RewardRule("default", 0.2, ("a", "b", "c")), list(signals)
    rng.shuffle(mixed)
    assert fuse(rule, "passed", signals, newly=1, total=1) == fuse(rule, "passed", mixed, newly=1, total=1)


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        (RewardRule("golden"), "default, strict, binary"),
        (RewardRule("default", 0.3, ("a",)), "outrank"),
        (RewardRule("default", -0.1, ("a",)), "outrank"),
        (RewardRule("default", math.nan, ("a",)), "outrank"),
        (RewardRule("default", 0.1), "go together"),
        (RewardRule("default", 0.0, ("a",)), "go together"),
    ],
)
def test_a_rule_that_cannot_hold_is_named(rule: RewardRule, word: str) -> None:
    """An unknown table, a band that is too wide, and half a rule are problems of the task."""
    assert word in str(reward_problem(rule))


def test_the_default_rule_is_the_default_table() -> None:
    """A task that says nothing gets the plain table."""
    assert reward_problem(RewardRule()) is None
    assert fuse(RewardRule(), "partial", (), newly=1, total=4) == default_reward("partial", newly_passed=1, total=4)


def test_further_signals_shape_a_verdict() -> None:
    """A pass gets a new reward; a failure and a verdict without a number keep what they have."""
    check = Verification("plain", {}, reward=RewardRule("default", 0.1, ("style",)))
    task = Task("t", "Do it.", {}, check)
    signal = Signal("style", 0.0)
    passed = shaped(task, Verdict("valid", "passed", 1.0), [signal])
    assert passed.reward == pytest.approx(0.9)
    assert passed.signals == (signal,)
    assert shaped(task, Verdict("valid", "failed", -0.2), [signal]).reward == -0.2
    assert shaped(task, Verdict("unscorable", None, None), [signal]).reward is None
    plain = replace(task, verification=replace(check, reward=RewardRule()))
    assert shaped(plain, Verdict("valid", "passed", 1.0), [signal]).reward == 1.0
    assert check.digest != plain.verification.digest
