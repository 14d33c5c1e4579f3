"""The throughput bound, against figures worked out by hand and by simulation."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.scheduling.bound import (
    Plant,
    Work,
    expected_max,
    in_flight,
    least_staleness,
    retried,
    synchronous_bound,
    throughput_bound,
)

WORK = Work(start_s=1, decode_s=30, tools_s=69, verify_s=20, reset_s=5, tokens=2000)
PLANT = Plant(
    per_update=64, update_s=40, max_staleness=1, replicas=2, tokens_per_s=3000, boxes=210, verifiers=50,
    creations_per_s=0.5, uses_per_box=8,
)  # fmt: skip


def test_each_term_is_its_formula() -> None:
    """R·μ/L, S/(W + T_r), V/T_v, B/T_u, u·C and (η + 1)·B/W, and the least of them is named."""
    bound = throughput_bound(WORK, PLANT)
    assert bound.terms == {
        "generation": 2 * 3000 / 2000,
        "boxes": 210 / 105,
        "verification": 50 / 20,
        "update": 64 / 40,
        "creation": 0.5 * 8,
        "staleness": 2 * 64 / 100,
    }
    assert (bound.binding, bound.per_s) == ("staleness", 1.28)
    assert bound.fraction(0.64) == 0.5
    told = json.loads(json.dumps(throughput_bound(WORK, Plant(per_update=64, boxes=210)).to_json()))
    assert told == {"episodes_per_s": 2.0, "binding_term": "boxes", "terms": {"boxes": 2.0}}


def test_the_reference_figures() -> None:
    """512 in flight at 20 minutes give 0.43/s."""
    slots = throughput_bound(Work(decode_s=1200, verify_in_box=True), Plant(per_update=512, boxes=512))
    assert slots.per_s == pytest.approx(0.43, abs=0.005)
    assert in_flight(slots.per_s, 1200) == pytest.approx(512)


def test_a_verification_in_the_same_box_holds_it() -> None:
    """Only then is T_v part of W."""
    assert Work(decode_s=10, tools_s=5, start_s=1, verify_s=4).held_s == 16
    assert Work(decode_s=10, tools_s=5, start_s=1, verify_s=4, verify_in_box=True).held_s == 20


def test_the_synchronous_loop_waits_for_the_slowest() -> None:
    """X = B/(E[max W] + T_v,tail + T_u); with few boxes, B·(W + T_r)/S stands in place of the slowest."""
    work = Work(decode_s=10)
    bound = synchronous_bound(work, Plant(per_update=8, update_s=20), slowest_s=70, verify_tail_s=10)
    assert (bound.per_s, bound.binding) == (8 / 100, "slowest")
    few = synchronous_bound(work, Plant(per_update=80, update_s=20, boxes=4), slowest_s=70, verify_tail_s=10)
    assert few.binding == "boxes"
    assert few.per_s == pytest.approx(80 / 220)
    slow = synchronous_bound(work, Plant(per_update=8, update_s=200), slowest_s=70)
    assert slow.binding == "update"


@given(st.floats(0.1, 1e4), st.integers(1, 500), st.floats(1e-3, 1e3))
def test_the_least_staleness_is_the_least(held_s: float, per_update: int, per_s: float) -> None:
    """At η the staleness term allows the rate, and at η − 1 it does not."""
    eta = least_staleness(held_s, per_update, per_s)
    assert (eta + 1) * per_update / held_s >= per_s * (1 - 1e-6)
    assert eta == 0 or eta * per_update / held_s < per_s


def test_the_largest_of_many_draws() -> None:
    """E[max] of k draws from a sample is what drawing again and again gives."""
    assert expected_max([3.0, 1.0, 2.0], 1) == pytest.approx(2)
    assert expected_max([1.0, 2.0], 2) == pytest.approx(1.75)
    source = random.Random("draws")
    sample = [source.lognormvariate(0, 1) for _ in range(50)]
    drawn = sum(max(source.choices(sample, k=8)) for _ in range(20_000)) / 20_000
    assert expected_max(sample, 8) == pytest.approx(drawn, rel=0.03)
    with pytest.raises(ValueError, match="neither may be 0"):
        expected_max([], 3)


def test_what_retries_achieve_and_cost() -> None:
    """Two retries of what fails one time in ten leave one failure in a thousand, for 1.11 tries."""
    assert retried(0.1, 2) == pytest.approx((0.999, 1.11))
    with pytest.raises(ValueError, match=r"\[0, 1"):
        retried(1, 3)


def test_what_is_no_work_or_plant_is_refused() -> None:
    """Work without time, capacities of 0 and a plant that limits nothing are errors at once."""
    with pytest.raises(ValueError, match="takes some"):
        Work(decode_s=0)
    with pytest.raises(ValueError, match="more than 0"):
        Plant(per_update=1, boxes=0)
    with pytest.raises(ValueError, match="limits nothing"):
        throughput_bound(WORK, Plant(per_update=1))
