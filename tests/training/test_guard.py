"""The watch on losses and gradient norms."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.training.guard import Bounds, StepGuard

NUMBERS = st.floats(-1e6, 1e6)
NORMS = st.floats(0, 1e6)


def after(steps: list[tuple[float, float]], bounds: Bounds | None = None) -> StepGuard:
    guard = StepGuard(bounds or Bounds(), "cross-entropy")
    for loss, norm in steps:
        guard = guard.taken(loss, norm)
    return guard


def usual(count: int = 20, seed: int = 0) -> list[tuple[float, float]]:
    """Steps of a training run: losses near 0.5, norms that vary by factors."""
    rng = random.Random(seed)
    return [(rng.gauss(0.5, 0.1), math.exp(rng.gauss(0.0, 0.5))) for _ in range(count)]


@given(st.lists(st.tuples(NUMBERS, NORMS), max_size=30), NUMBERS, NORMS)
def test_what_is_not_finite_is_always_refused(steps: list[tuple[float, float]], loss: float, norm: float) -> None:
    """Whatever came before, a loss or norm that is not a number or without bounds is never let pass."""
    guard = after(steps)
    for bad in (math.nan, math.inf, -math.inf):
        assert guard.objection(bad, norm) == "the loss is not finite"
        assert guard.objection(loss, bad) == "the gradient is not finite"


@given(st.lists(st.tuples(NUMBERS, NORMS), max_size=7), NUMBERS, NORMS)
def test_nothing_is_out_of_proportion_to_too_little(steps: list[tuple[float, float]], loss: float, norm: float) -> None:
    """Before enough steps were taken every finite one passes."""
    assert after(steps).objection(loss, norm) is None


@given(st.lists(st.tuples(NUMBERS, NORMS), min_size=8, max_size=80), st.data())
def test_the_middle_always_passes(steps: list[tuple[float, float]], data: st.DataObject) -> None:
    """A loss and a norm no larger than most that were seen are no spike, and smaller ones are not either."""
    guard = after(steps)
    loss, norm = sorted(guard.losses)[len(guard.losses) // 2], sorted(guard.norms)[len(guard.norms) // 2]
    assert guard.objection(loss, norm) is None
    assert guard.objection(data.draw(st.floats(-1e9, loss)), data.draw(st.floats(0, norm))) is None


@given(st.integers(0, 1000))
def test_spikes_are_refused_and_ordinary_steps_are_not(seed: int) -> None:
    """After a usual beginning more of the same passes; an absurd norm, or a far higher loss, does not."""
    guard = after(usual(seed=seed))
    for loss, norm in usual(10, seed + 5000):
        assert guard.objection(loss, norm) is None
    assert "norm" in str(guard.objection(0.5, 1e5))
    assert "loss" in str(guard.objection(9.0, 1.0))
    assert guard.objection(-9.0, 1.0) is None  # a loss that falls is no accident


@given(st.lists(st.tuples(NUMBERS, NORMS), max_size=80))
def test_bounds_rise_with_loss_and_norm(steps: list[tuple[float, float]]) -> None:
    """What is refused stays refused when loss or norm is larger still."""
    guard = after(steps)
    refused = [guard.objection(0.0, 10.0**power) is not None for power in range(-6, 12)]
    assert refused == sorted(refused)
    refused = [guard.objection(10.0**power, 0.0) is not None for power in range(-6, 12)]
    assert refused == sorted(refused)


def test_small_norms_are_harmless() -> None:
    """Gradients of exactly 0, as without credit, do not make a usual one a spike."""
    guard = after([(0.0, 0.0)] * 20)
    assert guard.objection(0.1, 0.9) is None
    assert guard.objection(0.1, 1.1) is not None


@given(NUMBERS, st.floats(-10, 10), NORMS)
def test_a_step_stays_unless_it_ruined_something(before: float, change: float, weights: float) -> None:
    """What is worse by more than the bound, or not finite, does not stay; all else does."""
    guard = after(usual())
    assert (guard.ruin(before, before + change, weights) is not None) == (before + change > before + guard.bounds.ruin)
    for bad in (math.nan, math.inf):
        assert guard.ruin(before, bad, weights) == "after the step its own samples have no finite loss"
        assert guard.ruin(before, before, bad) == "the step left weights that are not finite"


@given(st.lists(st.tuples(NUMBERS, NORMS), max_size=20), st.integers(1, 5))
def test_refused_steps_leave_no_trace(steps: list[tuple[float, float]], times: int) -> None:
    """They are counted, never measured by, and a step that is taken clears the count."""
    before = after(steps)
    guard = before
    for number in range(1, times + 1):
        guard = guard.not_taken()
        assert guard.refused == number
        assert guard.spent == (number > guard.bounds.patience)
    assert (guard.losses, guard.norms) == (before.losses, before.norms)
    assert guard.taken(0.0, 1.0) == before.taken(0.0, 1.0)
    assert not guard.taken(0.0, 1.0).spent


@given(st.lists(st.tuples(NUMBERS, NORMS), max_size=100))
def test_memory_is_bounded_and_comes_back_bit_for_bit(steps: list[tuple[float, float]]) -> None:
    """No more than the window is kept, and what was written as JSON is the same guard again."""
    guard = after(steps).not_taken()
    assert len(guard.losses) == len(guard.norms) == min(len(steps), guard.bounds.window)
    assert StepGuard().remembering(json.loads(json.dumps(guard.to_dict()))) == guard


def test_another_loss_is_another_scale() -> None:
    """The memory begins anew with another loss, and stays with the same; steps not taken are still counted."""
    guard = after(usual()).not_taken()
    assert guard.under("cross-entropy") is guard
    other = guard.under("")
    assert (other.losses, other.refused) == ((), 1)
    assert other.objection(50.0, 1e6) is None


@pytest.mark.parametrize("damage", [{"losses": [1.0]}, {"norms": ["x"]}, {"losses": None}, {"losses": [math.nan] * 2}])
def test_damaged_memory_is_refused(damage: dict[str, object]) -> None:
    """What is not the memory of a guard is an error, not a guard that forgets."""
    data = after([(0.5, 1.0), (0.4, 1.0)]).to_dict() | damage
    with pytest.raises((KeyError, TypeError, ValueError)):
        StepGuard().remembering(data)


def test_a_surrogate_is_watched_by_its_gradient_alone() -> None:
    """A loss without a name is as large as the advantages are, which says nothing; its gradient still does."""
    guard = StepGuard()
    for _ in range(20):
        guard = guard.taken(0.01, 1.0)
    assert guard.objection(40.0, 1.0) is None
    assert guard.objection(0.01, 1e5) is not None
