"""The real scheduler in a simulated plant: nothing lost, nothing scored that broke, nothing too old."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.simulation.bounds import expected_work
from practicum.simulation.result import Result, measure, replace_scheduler, simulate
from practicum.simulation.run import Simulation
from practicum.simulation.scenario import SCHEDULERS, Scenario, Scheduler
from practicum.simulation.shipped import load_scenario

SMALL: dict[str, Any] = {
    "updates": 5,
    "warmup": 1,
    "groups_per_update": 2,
    "group_size": 4,
    "max_staleness": 2,
    "train": 10,
    "episode": {"turns": 4, "tokens": 50, "action": {"kind": "exponential", "mean": 4.0}, "spread_p99": 6.0},
    "hosts": {"count": 4, "slots": 4},
    "engines": {"replicas": 2, "slots": 16},
}


def small(**changes: Any) -> Scenario:
    return Scenario.model_validate(SMALL | changes)


def sound(result: Result, most: int) -> None:
    """What must hold whatever happens."""
    assert result.reported_once
    assert result.scored_faults == 0
    assert result.staleness_max <= most
    for shares in result.workers.values():
        assert sum(shares.values()) == pytest.approx(1.0)
        assert all(share >= 0 for share in shares.values())


rates = st.sampled_from([0.0, 0.05, 0.2])


@settings(max_examples=15, deadline=None)
@given(
    scheduler=st.sampled_from(SCHEDULERS),
    seed=st.integers(0, 99),
    staleness=st.integers(0, 3),
    spares=st.integers(0, 2),
    adaptive=st.booleans(),
    rate=st.fixed_dictionaries(
        dict.fromkeys(("box_death", "create_failure", "verifier_fault", "policy_error", "hang"), rates)
    ),
    lost=st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans()),
)
def test_faults_of_every_kind_lose_nothing_and_are_never_scored(
    scheduler: Scheduler,
    seed: int,
    staleness: int,
    spares: int,
    adaptive: bool,
    rate: dict[str, float],
    lost: tuple[int, int, bool],
) -> None:
    """All updates are made, every attempt is reported once, no fault is a reward, and nothing is too old."""
    hosts, engines, hang = lost
    losses = {"hosts_lost": hosts, "hosts_lost_at_s": 30, "engines_lost": engines, "engines_lost_at_s": 20}
    scenario = small(
        updates=3,
        scheduler=scheduler,
        seed=seed,
        max_staleness=staleness,
        spares=spares,
        adaptive=adaptive,
        faults=rate | losses | {"engines_hang": hang},
    )
    result = measure(scenario)
    assert result.episodes["trained"] == scenario.updates * scenario.per_update
    sound(result, staleness)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_one_seed_is_one_result(scheduler: Scheduler) -> None:
    """The same scenario ends the same way, whatever the host does meanwhile."""
    scenario = small(scheduler=scheduler, adaptive=True, faults={"box_death": 0.2, "policy_error": 0.05})
    one, other = (simulate(scenario).document() for _ in range(2))
    assert one.pop("wall_s") != other.pop("wall_s")
    assert one == other


def test_without_faults_every_scheduler_trains_the_same_work_and_none_beats_the_bound() -> None:
    """The bound holds, and overlapping is what it is for."""
    scenario = small(updates=16, warmup=6)
    found = {name: measure(replace_scheduler(scenario, name)) for name in SCHEDULERS}
    for result in found.values():
        sound(result, scenario.max_staleness)
        # Work that was begun in the warm-up may end after it, so a short window can lie a little above.
        assert result.fraction <= 1.05
        assert not result.faults.keys() - {"under way at the end"}
    assert found["synchronous"].staleness_max == 0
    assert found["synchronous"].episodes_per_s < found["batches"].episodes_per_s < found["continuous"].episodes_per_s


@pytest.mark.parametrize(
    ("change", "binding"),
    [
        ({"verifier": {"slots": 1, "seconds": 20}}, "verification"),
        ({"train": 900}, "update"),
        ({"engines": {"tokens_per_s": 20.0, "stream_tokens_per_s": 20.0}}, "generation"),
        ({"hosts": {"count": 1, "slots": 4}}, "boxes"),
    ],
)
def test_what_is_slowest_binds_and_is_reached(change: dict[str, Any], binding: str) -> None:
    """The bound names the slowest part, and the scheduler keeps that part busy."""
    result = measure(small(updates=12, warmup=5, max_staleness=4, **change))
    assert result.bound.binding == binding
    assert result.fraction > 0.85


def test_the_means_of_the_bound_are_those_of_what_ran() -> None:
    """Expected seconds are worked out from plans before anything runs; one episode at a time takes just these."""
    scenario = small(
        max_concurrent=1, group_size=1, groups_per_update=1, updates=9, max_staleness=0, scheduler="synchronous"
    )
    work, result = expected_work(scenario, 0, 9), measure(scenario)
    assert result.episodes["mean_s"] == pytest.approx(work.held_s + work.reset_s, rel=0.01)


def test_a_dead_host_is_left_alone_and_used_again_when_it_is_back() -> None:
    """Its breaker opens, work goes on elsewhere, and closes after a probe."""
    faults = {"hosts_lost": 1, "hosts_lost_at_s": 20, "hosts_back_at_s": 120}
    result = measure(small(updates=14, faults=faults))
    sound(result, 2)
    assert any("host 0: closed → open" in line for line in result.breakers)
    assert any("host 0: half-open → closed" in line for line in result.breakers)
    assert not any("host 1:" in line for line in result.breakers)


def test_a_box_that_died_costs_no_turn_twice() -> None:
    """An attempt goes on in a fresh box from the last turn; what was sampled is not sampled again."""
    plain = measure(small(scheduler="synchronous"))
    faulty = measure(small(scheduler="synchronous", faults={"box_death": 0.2}))
    assert faulty.episodes["boxes_lost"] > 0
    assert faulty.episodes["restarts"] == 0
    assert faulty.episodes["turns"] == plain.episodes["turns"]


def test_a_group_that_cannot_be_made_whole_is_masked_and_replaced() -> None:
    """Where boxes die too often for the refills, the whole group is left out, and updates still get their number."""
    result = measure(small(updates=3, faults={"box_death": 0.85}))
    sound(result, 2)
    assert result.episodes["masked_groups"] > 0
    assert result.episodes["trained"] == 3 * 2 * 4


def test_adaptive_concurrency_finds_its_level_and_says_why() -> None:
    """It begins low, grows while all is calm, and each change has its reason."""
    result = measure(small(updates=16, adaptive=True))
    sound(result, 2)
    assert any("all signals are calm" in line for line in result.decisions)


def test_the_same_simulation_runs_in_real_time() -> None:
    """Nothing in it knows virtual from real seconds: on an ordinary loop it takes them."""
    scenario = small(
        updates=2,
        train=0.02,
        episode={"turns": 2, "tokens": 1, "action": 0.01},
        hosts={"count": 1, "slots": 16, "create": 0.01, "close_s": 0.0, "creations_per_s": 1000.0},
        engines={"stream_tokens_per_s": 1000.0, "publish_s": 0.0},
        verifier={"seconds": 0.01},
    )

    async def main() -> bool:
        return (await Simulation(scenario).run()).accounts.reported_once

    assert asyncio.run(main())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_figures_of_the_shipped_scenarios() -> None:
    """A long tail: 95 % of the bound, twice the synchronous loop; 90 % of that with box deaths and an engine lost."""
    few = ["updates=16"]
    plain = measure(load_scenario("long-tail", few))
    faulty = measure(load_scenario("dead-engine", few))
    sync = measure(load_scenario("long-tail", ["updates=4", "warmup=1", "scheduler=synchronous"]))
    for result in (plain, faulty):
        sound(result, 8)
    assert plain.episodes["p99_s"] >= 10 * plain.episodes["p50_s"]
    assert plain.fraction >= 0.95
    assert plain.episodes_per_s >= 2 * sync.episodes_per_s
    assert faulty.episodes["boxes_lost"] > 0.03 * faulty.episodes["dispatched"]
    assert faulty.episodes_per_s >= 0.9 * plain.episodes_per_s
