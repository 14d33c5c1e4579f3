"""How long something will probably take."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.scheduling.expected import Durations

records = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.floats(0, 1e5)), min_size=1, max_size=40)


def filled(given_records: list[tuple[str, str, float]]) -> Durations:
    durations = Durations()
    for family, key, seconds in given_records:
        durations.record(key, seconds, family=family)
    return durations


@given(records, st.sampled_from("abc"), st.sampled_from("xyz"))
def test_an_expectation_is_among_what_was_seen(seen: list[tuple[str, str, float]], family: str, key: str) -> None:
    """It lies between the shortest and the longest record, is repeatable, and survives a way through JSON."""
    durations = filled(seen)
    expected = durations.expected(key, family=family)
    assert expected is not None
    assert min(r[2] for r in seen) - 1e-6 <= expected <= max(r[2] for r in seen) + 1e-6
    assert filled(seen).expected(key, family=family) == expected
    again = Durations()
    again.restore(json.loads(json.dumps(durations.to_json())))
    assert again.expected(key, family=family) == expected
    assert again.known(key, family=family) == ((family, key) in {(r[0], r[1]) for r in seen})


def test_own_records_then_siblings_then_all() -> None:
    """An unknown task is expected to take what its family took, an unknown family what all took."""
    durations = filled([("long", "x", 100.0)] * 10 + [("short", "y", 1.0)] * 10)
    unknown_of_long = durations.expected("new", family="long")
    unknown_of_short = durations.expected("new", family="short")
    unknown = durations.expected("new", family="other")
    known = durations.expected("x", family="long")
    assert unknown_of_long is not None
    assert unknown_of_short is not None
    assert unknown is not None
    assert known is not None
    assert unknown_of_short < unknown < unknown_of_long < known <= 100
    assert Durations().expected("x") is None


def test_what_ran_lately_counts_more() -> None:
    """A task that became quick is soon expected to be quick."""
    durations = filled([("", "x", 100.0)] * 50 + [("", "x", 1.0)] * 20)
    expected = durations.expected("x")
    assert expected is not None
    assert expected < 25


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
def test_what_is_no_duration_is_refused(wrong: float) -> None:
    """It is refused, and leaves nothing behind."""
    durations = Durations()
    with pytest.raises(ValueError, match="x cannot have taken"):
        durations.record("x", wrong)
    assert durations.expected("x") is None
    with pytest.raises(ValueError, match="keep"):
        Durations(keep=0)
