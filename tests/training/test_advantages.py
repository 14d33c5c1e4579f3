"""Credit within a group."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.training.advantages import group_advantages

REWARDS = st.lists(st.sampled_from([None, -1.0, -0.5, -0.2, 0.05, 0.3, 0.55, 1.0]), max_size=12)


@given(REWARDS, st.booleans())
def test_masked_members_are_nowhere(rewards: list[float | None], scale: bool) -> None:
    """Leaving masked members out of the group changes nobody's credit, and they get none."""
    given_ = group_advantages(rewards, scale=scale)
    assert len(given_) == len(rewards)
    assert all(a is None for a, r in zip(given_, rewards, strict=True) if r is None)
    alone = group_advantages([r for r in rewards if r is not None], scale=scale)
    assert [a for a, r in zip(given_, rewards, strict=True) if r is not None] == alone


@given(REWARDS)
def test_credit_is_the_standard_score(rewards: list[float | None]) -> None:
    """Credit is the distance from the mean in standard deviations of the valid members."""
    valid = [reward for reward in rewards if reward is not None]
    found = group_advantages(rewards)
    if len(set(valid)) < 2:
        assert found == [None] * len(rewards)
        return
    mean, spread = statistics.fmean(valid), statistics.pstdev(valid)
    for advantage, reward in zip(found, rewards, strict=True):
        assert (advantage is None) == (reward is None)
        if advantage is not None and reward is not None:
            assert advantage == pytest.approx((reward - mean) / spread)
    credits = [advantage for advantage in found if advantage is not None]
    assert math.fsum(credits) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("reward", [1.0, 0.1, -0.2, 1 / 3])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_no_signal_no_credit(reward: float, size: int) -> None:
    """A group whose rewards are all the same gives none, not a rounding error divided by another."""
    assert group_advantages([reward] * size) == [None] * size


@pytest.mark.parametrize("rewards", [[], [1.0], [None, None], [1.0, None], [None, 1.0, None]])
def test_too_few(rewards: list[float | None]) -> None:
    """One valid member has nobody to be compared with."""
    assert group_advantages(rewards) == [None] * len(rewards)


def test_least() -> None:
    """A group with fewer valid members than asked for gives no credit."""
    assert group_advantages([1.0, 0.0, None], least=3) == [None] * 3
    assert group_advantages([1.0, 0.0, 0.0], least=3)[0] == pytest.approx(math.sqrt(2))


def test_without_scale() -> None:
    """Unscaled credit is the distance from the mean."""
    assert group_advantages([1.0, 0.0, 0.5, None], scale=False) == [0.5, -0.5, 0.0, None]
