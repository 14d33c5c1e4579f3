"""Credit within a group, a batch, an episode and a tree."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.training.advantages import (
    batch_advantages,
    branch_advantages,
    generalised_advantages,
    group_advantages,
    leave_one_out,
    shaped_turns,
    turn_advantages,
)

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


@given(REWARDS)
def test_leave_one_out_by_hand(rewards: list[float | None]) -> None:
    """Each member's credit is its reward less the mean of the others that were judged."""
    found = leave_one_out(rewards)
    valid = [reward for reward in rewards if reward is not None]
    if len(set(valid)) < 2:
        assert found == [None] * len(rewards)
        return
    for at, reward in enumerate(rewards):
        if reward is None:
            assert found[at] is None
            continue
        others = [r for i, r in enumerate(rewards) if i != at and r is not None]
        assert found[at] == pytest.approx(reward - statistics.fmean(others))


@given(st.lists(REWARDS, max_size=5), st.booleans())
def test_batch_credit_is_standard_over_the_batch(groups: list[list[float | None]], centred: bool) -> None:
    """Over all members with credit, mean 0 and spread 1; groups without signal, and masked members, have none."""
    found = batch_advantages(groups, centre_groups=centred)
    assert [len(group) for group in found] == [len(group) for group in groups]
    assert all(a is None for g, f in zip(groups, found, strict=True) for r, a in zip(g, f, strict=True) if r is None)
    credits = [credit for group in found for credit in group if credit is not None]
    if credits:
        assert statistics.fmean(credits) == pytest.approx(0, abs=1e-9)
        assert statistics.pstdev(credits) == pytest.approx(1)
    if centred:
        for group, credit in zip(groups, found, strict=True):
            if len({reward for reward in group if reward is not None}) < 2:
                assert credit == [None] * len(group)


def test_batch_credit_keeps_the_groups_scale() -> None:
    """A group with a wide spread keeps more credit than one with a narrow spread, unlike under GRPO."""
    wide, narrow = batch_advantages([[1.0, -1.0], [0.1, 0.0]])
    assert wide[0] is not None
    assert narrow[0] is not None
    assert wide[0] == pytest.approx(20 * narrow[0])


EPISODE = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=6)


@given(EPISODE, st.floats(0, 1), st.floats(0, 1))
def test_gae_is_the_weighted_sum_of_later_surprises(
    episode: list[tuple[float, float]], discount: float, trace: float
) -> None:
    """The advantage at t is Σ (γλ)^l δ_{t+l}, written out; returns are advantages plus values."""
    rewards, values = [r for r, _ in episode], [*(v for _, v in episode), 0.0]
    deltas = [rewards[t] + discount * values[t + 1] - values[t] for t in range(len(rewards))]
    expected = [
        math.fsum((discount * trace) ** (later - t) * deltas[later] for later in range(t, len(deltas)))
        for t in range(len(deltas))
    ]
    found, returns = generalised_advantages(rewards, values, discount=discount, trace=trace)
    assert found.tolist() == pytest.approx(expected, abs=1e-9)
    assert returns.tolist() == pytest.approx([a + v for a, v in zip(expected, values, strict=False)], abs=1e-9)


def test_gae_needs_a_value_more_than_rewards() -> None:
    """The value after the last step must be given."""
    with pytest.raises(ValueError, match="2 rewards need 3 values"):
        generalised_advantages([1.0, 0.0], [0.0, 0.0], discount=1, trace=1)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=7), st.floats(0, 1))
def test_shaping_pays_the_same_for_every_way(potentials: list[float], discount: float) -> None:
    """Discounted and added up, shaping is −Φ of the start whatever happened between: no way is preferred by it."""
    parts = shaped_turns(potentials, discount=discount)
    assert len(parts) == len(potentials) - 1
    total = math.fsum(discount**k * part for k, part in enumerate(parts))
    assert total == pytest.approx(-potentials[0], abs=1e-9)


def test_turn_credit_by_hand() -> None:
    """A turn is credited with what comes after it, against what the group had coming at that turn."""
    found = turn_advantages([1.0, 0.0, None], [[0.2, 0.0], [0.0], [9.0]])
    assert found[2] is None
    assert found[0] == pytest.approx([1.2 - 0.6, 0.0])
    assert found[1] == pytest.approx([0.0 - 0.6])
    assert turn_advantages([1.0, 0.0], [[0.0, 0.0], [0.0, 0.0]], discount=0.5)[0] == pytest.approx([0.25, 0.5])


@given(st.lists(st.sampled_from([None, -0.2, 1.0]), min_size=1, max_size=6), st.integers(1, 4))
def test_turn_credit_without_shaping_is_the_centred_outcome(rewards: list[float | None], turns: int) -> None:
    """Where no turn is shaped and all members have as many, each turn has its member's distance from the mean."""
    found = turn_advantages(rewards, [[0.0] * turns for _ in rewards])
    plain = group_advantages(rewards, scale=False)
    for each, expected in zip(found, plain, strict=True):
        assert (each is None) == (expected is None)
        if each is not None:
            assert each == pytest.approx([expected] * turns)


def test_branch_credit_by_hand() -> None:
    """A branch earns what its continuations are worth beyond its parent's; masked leaves count nowhere."""
    parents = {"root": None, "a": "root", "b": "root", "a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    found = branch_advantages(parents, {"a1": 1.0, "a2": 0.0, "b1": 0.0, "b2": None})
    third = 1 / 3
    assert found["a"] == pytest.approx(0.5 - third)
    assert found["b"] == pytest.approx(0.0 - third)
    assert (found["a1"], found["a2"], found["b1"], found["b2"]) == (0.5, -0.5, 0.0, None)


def test_branch_credit_along_a_way_is_the_leafs_distance_from_the_root() -> None:
    """The credits on the way to a leaf add up to its reward less the mean of all."""
    parents = {"r": None, "x": "r", "y": "x", "z": "x", "w": "r"}
    rewards = {"y": 1.0, "z": 0.25, "w": 0.0}
    found = branch_advantages(parents, rewards)
    mean = statistics.fmean(rewards.values())
    assert (found["x"] or 0) + (found["y"] or 0) == pytest.approx(1.0 - mean)


def test_branch_credit_of_what_is_no_tree() -> None:
    """A circle and a node that nobody knows are refused by name."""
    with pytest.raises(ValueError, match="circle"):
        branch_advantages({"a": "b", "b": "a"}, {"a": 1.0})
    with pytest.raises(ValueError, match="'c' is not in the tree"):
        branch_advantages({"a": None}, {"c": 1.0})
