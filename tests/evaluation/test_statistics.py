"""Statistics against published values, brute force and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.evaluation.statistics import (
    clustered_wilson,
    mcnemar_exact,
    paired_interval,
    pass_at_k,
    sign_flip_p,
    wilson,
)


def pairs(both: int, lost: int, gained: int, neither: int) -> tuple[list[float], list[float]]:
    before = [1.0] * (both + lost) + [0.0] * (gained + neither)
    after = [1.0] * both + [0.0] * lost + [1.0] * gained + [0.0] * neither
    return before, after


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_equals_published_values(successes: int, n: int, low: float, high: float) -> None:
    """Table I of Newcombe, Statistics in Medicine 17 (1998) 857–872, method 3."""
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_rate_and_mirrors(case: tuple[int, int]) -> None:
    """The interval lies in [0, 1], holds the rate, has a width, and swaps ends when success and failure do."""
    k, n = case
    low, high = wilson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert high > low
    mirrored = wilson(n - k, n)
    assert (1 - high, 1 - low) == pytest.approx(mirrored)


def test_wilson_of_nothing_is_everything() -> None:
    """Without a sample nothing is known."""
    assert wilson(0, 0) == (0.0, 1.0)


def test_one_sample_a_task_is_plain_wilson() -> None:
    """Clusters of one are no clusters, and a task without a judged sample says nothing."""
    counts = [(1, 1)] * 7 + [(0, 1)] * 3 + [(0, 0)]
    assert clustered_wilson(counts) == pytest.approx(wilson(7, 10))


def test_repeating_samples_that_always_agree_adds_nothing() -> None:
    """Ten identical samples of each task know no more than one, apart from the small-sample factor."""
    low, high = clustered_wilson([(10, 10)] * 7 + [(0, 10)] * 3)
    assert (low, high) == pytest.approx(wilson(7, 10), abs=0.01)
    assert clustered_wilson([(10, 10)] * 8)[0] == pytest.approx(wilson(8, 8)[0])


def test_clustered_intervals_cover() -> None:
    """With tasks of very different difficulty and 8 samples each, the interval holds the mean about as often as it
    says, where the plain one would not."""
    random = np.random.default_rng(0)
    held = plain = 0
    rounds = 400
    for _ in range(rounds):
        chances = random.beta(0.5, 0.5, size=30)
        passed = random.binomial(8, chances)
        counts = [(int(p), 8) for p in passed]
        low, high = clustered_wilson(counts)
        held += low <= 0.5 <= high
        low, high = wilson(int(passed.sum()), 240)
        plain += low <= 0.5 <= high
    assert 0.91 <= held / rounds <= 0.99
    assert plain / rounds < 0.8


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        # Fagerland, Lydersen, Laake, Statistics in Medicine 33 (2014) 2850–2875: airway hyper-responsiveness.
        ((1, 1, 7, 12), 0.026, 0.507),
        # Altman, Machin, Bryant, Gardner, Statistics with Confidence (2000), table 6.2.
        ((14, 5, 0, 22), -0.226, -0.011),
    ],
)
def test_the_paired_interval_equals_published_values(table: tuple[int, int, int, int], low: float, high: float) -> None:
    """For pairs of 0 and 1 it is Newcombe's method 10."""
    assert paired_interval(*pairs(*table)) == pytest.approx((low, high), abs=5e-4)


tables = st.tuples(*[st.integers(0, 12)] * 4).filter(lambda t: sum(t) > 0)


@given(tables)
def test_the_paired_interval_holds_the_difference_and_mirrors(table: tuple[int, int, int, int]) -> None:
    """It lies in [−1, 1] around the difference, is never a point, and swapping sides swaps its ends."""
    before, after = pairs(*table)
    low, high = paired_interval(before, after)
    difference = (sum(after) - sum(before)) / len(before)
    assert -1 <= low <= difference + 1e-9
    assert difference - 1e-9 <= high <= 1
    assert high - low > 0.01
    swapped = paired_interval(after, before)
    assert (-swapped[1], -swapped[0]) == pytest.approx((low, high))


def test_the_paired_interval_covers() -> None:
    """Over simulated pairs, of single and of repeated samples, it holds the truth at least 93 times in 100."""
    random = np.random.default_rng(1)
    for samples in (1, 4):
        held = 0
        for _ in range(400):
            easy = random.random(40)
            before = random.binomial(samples, easy * 0.6) / samples
            after = random.binomial(samples, 0.3 + easy * 0.6) / samples
            low, high = paired_interval(before.tolist(), after.tolist())
            held += low <= 0.3 <= high
        assert held / 400 >= 0.93


def test_mcnemar_equals_published_and_counted_values() -> None:
    """0.0703 for 1 against 7 (Fagerland et al.), and the sum over all orders of discordant pairs otherwise."""
    assert mcnemar_exact(7, 1) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_exact(0, 0) == 1.0
    for gained, lost in itertools.product(range(5), repeat=2):
        n = gained + lost
        extreme = abs(gained - lost)
        count = sum(abs(2 * sum(order) - n) >= extreme for order in itertools.product((0, 1), repeat=n))
        assert mcnemar_exact(gained, lost) == pytest.approx(count / 2**n)


@given(st.integers(0, 7), st.integers(0, 7))
def test_sign_flips_of_single_samples_are_mcnemar(gained: int, lost: int) -> None:
    """Two ways to the same number."""
    assert sign_flip_p([1.0] * gained + [-1.0] * lost + [0.0] * 3) == pytest.approx(mcnemar_exact(gained, lost))


def test_drawn_sign_flips_are_near_the_exact_value_and_repeatable() -> None:
    """Beyond 14 differences signs are drawn with a seed."""
    differences = [1.0] * 14 + [-1.0] * 5
    drawn = sign_flip_p(differences, seed=1)
    assert drawn == sign_flip_p(differences, seed=1)
    assert drawn == pytest.approx(mcnemar_exact(14, 5), abs=0.01)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_counts_the_subsets(case: tuple[int, int, int]) -> None:
    """It is the share of all k-subsets of the samples that hold a success."""
    n, successes, k = case
    subsets = list(itertools.combinations(range(n), k))
    share = sum(any(i < successes for i in subset) for subset in subsets) / len(subsets)
    assert pass_at_k(n, successes, k) == pytest.approx(share)
    assert math.isclose(pass_at_k(n, successes, 1), successes / n, abs_tol=1e-12)


def test_pass_at_more_than_there_is_is_an_error() -> None:
    """pass@5 of three samples is not known."""
    with pytest.raises(ValueError, match="pass@5"):
        pass_at_k(3, 1, 5)
