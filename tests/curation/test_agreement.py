"""Agreement of reviewers, and bounds on the defects of a set."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.agreement import (
    Agreement,
    Sampled,
    cohen_kappa,
    defect_estimate,
    light_kappa,
    plainly,
)


def pairs_of(both: int, first: int, second: int, neither: int) -> list[tuple[str, str]]:
    y, n = "accept", "defect"
    return [(y, y)] * both + [(y, n)] * first + [(n, y)] * second + [(n, n)] * neither


def test_kappa_of_a_known_table() -> None:
    """The textbook table of 20, 5, 10, 15 has 70 % agreement, 50 % of it by chance, and so κ = 0.4."""
    found = cohen_kappa(pairs_of(20, 5, 10, 15))
    assert (found.n, found.agreed) == (50, 35)
    assert found.kappa == pytest.approx(0.4)
    assert found.low is not None
    assert found.high is not None
    assert [found.low, found.high] == pytest.approx([0.1249, 0.6172], abs=1e-3)


def test_kappa_by_more_than_two_answers() -> None:
    """Cohen's own example with three categories gives κ = 0.492 (1960, table 1, in hundreds)."""
    table = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
    pairs = [(i, j) for i, j in product(range(3), range(3)) for _ in range(table[i][j])]
    assert cohen_kappa(pairs).kappa == pytest.approx(0.492, abs=5e-4)


def test_kappa_where_chance_explains_all() -> None:
    """Two reviewers who accept everything agree, and nothing follows from it."""
    assert cohen_kappa(pairs_of(12, 0, 0, 0)) == Agreement(12, 12, None, None, None)
    assert cohen_kappa([]) == Agreement(0, 0, None, None, None)
    assert light_kappa([cohen_kappa(pairs_of(12, 0, 0, 0))]) is None
    assert light_kappa([cohen_kappa(pairs_of(20, 5, 10, 15)), cohen_kappa(pairs_of(9, 0, 0, 9))]) == pytest.approx(0.7)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=40))
def test_kappa_lies_in_its_interval_and_is_symmetric(pairs: list[tuple[int, int]]) -> None:
    """The interval holds the estimate, has width, and does not depend on who is named first."""
    found = cohen_kappa(pairs)
    assert found == cohen_kappa([(b, a) for a, b in pairs])
    if found.kappa is not None:
        assert found.low is not None
        assert found.high is not None
        assert -1 <= found.low <= found.kappa + 1e-12
        assert found.kappa <= found.high + 1e-12
        assert found.high <= 1
        assert found.low < found.high


def test_no_defect_in_sixty_supports_below_five_percent() -> None:
    """Sixty clean reviews bound the rate below 5 %, in one stratum and in several drawn in proportion."""
    one = defect_estimate([Sampled("all", 1000, 60, 0)])
    assert one.high == pytest.approx(1 - 0.05 ** (1 / 60))
    assert one.high < 0.05
    several = defect_estimate([Sampled("a", 500, 30, 0), Sampled("b", 300, 18, 0), Sampled("c", 200, 12, 0)])
    assert several.high == pytest.approx(one.high)
    assert "3/n = 5.0%" in plainly(one)
    few = defect_estimate([Sampled("all", 10, 3, 0)])
    assert "3/n" not in plainly(few)  # a bound of 100 % beside the exact one would say another thing
    assert "goes back whole" in plainly(one, 0.02)
    assert "within the target" in plainly(one, 0.05)


def test_the_rate_is_weighted_by_stratum() -> None:
    """A defect in a large stratum of which few were seen weighs more than one in a small stratum."""
    large = defect_estimate([Sampled("large", 900, 10, 1), Sampled("small", 100, 10, 0)])
    small = defect_estimate([Sampled("large", 900, 10, 0), Sampled("small", 100, 10, 1)])
    assert [large.rate, small.rate] == pytest.approx([0.09, 0.01])


def test_what_was_looked_at_wholly_is_known_and_what_nobody_saw_may_be_bad() -> None:
    """A census has no uncertainty; an unseen stratum counts as bad in the bound, and leaves no estimate."""
    census = defect_estimate([Sampled("a", 20, 20, 1), Sampled("b", 5, 5, 0)])
    assert [census.rate, census.high] == pytest.approx([0.04, 0.04])
    blind = defect_estimate([Sampled("a", 90, 90, 0), Sampled("b", 10, 0, 0)])
    assert blind.rate is None
    assert blind.high == pytest.approx(0.1)
    assert defect_estimate([Sampled("a", 10, 0, 0)]).high == 1
    assert defect_estimate([]).high == 1
    assert "nobody" in plainly(defect_estimate([Sampled("a", 10, 0, 0)]), 0.05)


SIZES = st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5)


@given(SIZES)
def test_the_bound_is_above_the_rate_and_grows_with_defects(parts: list[tuple[int, float, float]]) -> None:
    """One more defect never lowers the bound, and the bound is never below the estimate."""
    strata = [Sampled(str(i), n, round(n * a), round(round(n * a) * b)) for i, (n, a, b) in enumerate(parts)]
    found = defect_estimate(strata)
    assert found.rate is None or found.rate <= found.high + 1e-9
    for i, each in enumerate(strata):
        if each.defects < each.reviewed:
            worse = [*strata[:i], Sampled(each.name, each.size, each.reviewed, each.defects + 1), *strata[i + 1 :]]
            assert defect_estimate(worse).high >= found.high - 1e-9


@pytest.mark.parametrize("bad", [(40, 0, 0), (10, 6, 4), (0, 30, 30), (2, 1, 1), (100, 2, 0)])
@pytest.mark.parametrize("drawn", [(40, 24, 16), (20, 20, 20), (45, 8, 7)])
def test_the_bound_holds_as_often_as_it_says(bad: tuple[int, ...], drawn: tuple[int, ...]) -> None:
    """Over many draws from a set whose defects are known, the bound is below the truth in at most 5 % of them."""
    sizes = (200, 120, 80)
    rng = random.Random(f"coverage-{bad}-{drawn}")
    truth, rounds = sum(bad) / sum(sizes), 400
    misses = 0
    for _ in range(rounds):
        strata = []
        for name, size, n, wrong in zip("abc", sizes, drawn, bad, strict=True):
            found = sum(index < wrong for index in rng.sample(range(size), n))
            strata.append(Sampled(name, size, n, found))
        misses += defect_estimate(strata).high < truth
    assert misses / rounds <= 0.05 + 3 * (0.05 * 0.95 / rounds) ** 0.5
