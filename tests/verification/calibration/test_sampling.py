"""Which verdicts a person is asked about."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.records.verdict import Finding, Signal, Verdict
from practicum.verification.calibration.sampling import draw, reliability

PASSED = Verdict("valid", "passed", 1.0)
items = st.lists(st.tuples(st.booleans(), st.sampled_from([0.2, 1.0])), max_size=60)


@given(items, st.integers(1, 40), st.integers(0, 5))
def test_a_sample_is_whole_and_repeatable(population: list[tuple[bool, float]], size: int, seed: int) -> None:
    """As many as asked for are drawn, none twice, at the rate that is told, and the same again for the same seed."""
    numbered = list(enumerate(population))
    drawn = draw(numbered, lambda item: item[1], size=size, seed=seed)
    assert len(drawn) == len({each.item[0] for each in drawn}) == min(size, len(population))
    assert drawn == draw(numbered, lambda item: item[1], size=size, seed=seed)
    for stratum, count in Counter(each.stratum for each in drawn).items():
        members = [each for each in drawn if each.stratum == stratum]
        kind = {(each.item[1][0], each.item[1][1] < 0.75) for each in members}
        assert len(kind) == 1
        whole = sum((passed, trust < 0.75) in kind for passed, trust in population)
        assert members[0].rate == pytest.approx(count / whole)


def test_much_reward_with_little_trust_comes_first() -> None:
    """Of a large population half of the sample passed with low reliability, and no stratum is left out."""
    population = [(passed, trust) for passed in (True, False) for trust in (0.2, 1.0)] * 100
    strata = Counter(each.stratum for each in draw(population, lambda item: item, size=20, seed=0))
    assert strata["passed, unsure"] == 10
    assert strata["passed, sure"] == 5
    assert min(strata.values()) >= 2
    assert len(strata) == 4


def test_reliability() -> None:
    """Findings, unreliable signals and a noisy task each lower it; it stays within 0 and 1."""
    assert reliability(PASSED) == 1.0
    noted = Verdict("valid", "passed", 1.0, findings=(Finding("shadow_module", "x.py", "add"),))
    assert reliability(noted) < 0.75
    assert reliability(Verdict("valid", "passed", 1.0, signals=(Signal("judge", 1.0, reliability=0.6),))) == 0.6
    judged = Signal("reliability", 0.7, weight=0.0)  # what the judge said of its own verdict
    assert reliability(Verdict("valid", "passed", 1.0, signals=(judged,))) == 0.7
    assert reliability(PASSED, youden_low=0.4) == 0.4
    assert reliability(PASSED, youden_low=-0.4) == 0.0
