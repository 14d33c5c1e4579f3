"""Bounds of rates."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.verification.calibration.bounds import SIDE, Rate, beta_below, beta_quantile, clopper_pearson

counts = st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def tail(errors: int, trials: int, rate: float) -> float:
    """P(at most `errors` of `trials`), summed term by term."""
    return math.fsum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(errors + 1))


@given(counts)
def test_the_bounds_are_exact(count: tuple[int, int]) -> None:
    """At each bound, what was observed or anything more extreme has exactly the chance that was allowed."""
    errors, trials = count
    low, high = clopper_pearson(errors, trials)
    if errors < trials:
        assert tail(errors, trials, high) == pytest.approx(SIDE, rel=1e-6)
    if errors:
        assert 1 - tail(errors - 1, trials, low) == pytest.approx(SIDE, rel=1e-6)


@given(counts)
def test_the_bounds_are_monotone(count: tuple[int, int]) -> None:
    """More errors never lower a bound, more clean trials never raise one, and the observed share lies inside."""
    errors, trials = count
    low, high = clopper_pearson(errors, trials)
    rate = Rate(errors, trials)
    assert 0.0 <= low <= rate.value or trials == 0
    assert rate.value <= high <= 1.0
    cleaner = clopper_pearson(errors, trials + 1)
    assert cleaner[0] <= low
    assert cleaner[1] <= high
    if errors < trials:
        worse = clopper_pearson(errors + 1, trials)
        assert worse[0] >= low
        assert worse[1] >= high


def test_known_values() -> None:
    """Published and closed-form values are met; nothing tried means that nothing is known."""
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    assert clopper_pearson(0, 10)[1] == pytest.approx(1 - SIDE ** (1 / 10), rel=1e-9)
    assert clopper_pearson(10, 10)[0] == pytest.approx(SIDE ** (1 / 10), rel=1e-9)
    assert clopper_pearson(1, 10) == pytest.approx((0.0025286, 0.4450161), abs=1e-6)
    with pytest.raises(ValueError, match="3 errors in 2 trials"):
        Rate(3, 2)


@given(st.floats(0.001, 0.999), st.integers(1, 2000), st.integers(1, 2000))
def test_quantile_inverts_the_distribution(p: float, a: int, b: int) -> None:
    """The quantile is where the distribution reaches `p`."""
    assert beta_below(beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-9)
