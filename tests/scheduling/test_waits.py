"""Waits and their quantiles in bounded memory."""

from __future__ import annotations

import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.scheduling.histogram import Histogram
from practicum.scheduling.waits import Waits

seconds = st.floats(1e-6, 1e6)
many = st.lists(seconds | st.just(0.0), min_size=1, max_size=80)


def filled(values: list[float]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@given(many, st.floats(0, 1))
def test_a_quantile_is_close_to_the_true_one(values: list[float], share: float) -> None:
    """Within 5 % of the value at that rank, and never above the largest."""
    true = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    found = filled(values).quantile(share)
    assert abs(found - true) <= 0.05 * true + 1e-12
    assert found <= max(values)


@given(many, many)
def test_merging_is_adding_all(first: list[float], second: list[float]) -> None:
    """Two histograms merged are the histogram of all values, also after a way through JSON."""
    merged = Histogram.from_json(json.loads(json.dumps(filled(first).to_json())))
    merged.merge(filled(second))
    together = filled(first + second)
    assert merged.to_json()["buckets"] == together.to_json()["buckets"]
    assert (merged.count, merged.max_s) == (together.count, together.max_s)
    assert merged.mean_s == pytest.approx(together.mean_s)


def test_memory_does_not_grow() -> None:
    """A hundred thousand values take the room of a few."""
    few, lots = filled([1.0, 2.0]), filled([float(number) for number in range(100_000)])
    assert sys.getsizeof(lots._buckets) == sys.getsizeof(few._buckets)


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
def test_what_is_no_duration_is_refused(wrong: float) -> None:
    """Negative, infinite and undefined seconds are an error, and leave the counts as they were."""
    histogram = filled([1.0])
    with pytest.raises(ValueError, match="duration"):
        histogram.add(wrong)
    assert (histogram.count, histogram.total_s) == (1, 1.0)


def test_who_waits_and_for_how_long() -> None:
    """Depth and age are of those who wait now; each wait ends once, one way or another."""
    waits = Waits()
    first, second, third = waits.begin(10), waits.begin(12), waits.begin(13)
    assert (waits.depth, waits.oldest_s(20)) == (3, 10)
    waits.end(first, 20)
    assert (waits.depth, waits.oldest_s(20)) == (2, 8)
    waits.end(second, 21, "timed_out")
    waits.end(third, 21, "cancelled")
    waits.none()
    with pytest.raises(KeyError):
        waits.end(first, 22)
    told = waits.to_json(22)
    assert (told["count"], told["timed_out"], told["cancelled"], told["deepest"], told["depth"]) == (2, 1, 1, 3, 0)
    assert (told["p50_s"], told["p99_s"], told["max_s"], told["mean_s"], told["oldest_s"]) == (0, 10, 10, 5, 0)
    other = Waits()
    other.merge(waits)
    other.merge(waits)
    assert (other.count, other.timed_out, other.cancelled, other.deepest) == (4, 2, 2, 3)
