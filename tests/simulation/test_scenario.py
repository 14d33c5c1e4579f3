"""Scenarios: what is shipped can be loaded, what cannot be simulated is refused with its arithmetic."""

from __future__ import annotations

import random
import statistics

import pytest

from practicum.errors import ConfigError
from practicum.simulation.plans import Plan, Plans, draw, mean_of
from practicum.simulation.scenario import Scenario, Spread
from practicum.simulation.shipped import load_scenario, scenarios


def test_every_shipped_scenario_loads_and_says_what_it_is_about() -> None:
    """The list is what the command shows."""
    known = scenarios()
    assert {"long-tail", "slow-verify", "slow-trainer", "box-death", "dead-engine", "dead-host", "hung", "cluster"} == {
        *known
    }
    for name, about in known.items():
        assert about.endswith(".")
        load_scenario(name)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("episode.tokns=3", "did you mean episode.tokens?"),
        ("scheduler=best", "scheduler = 'best'"),
        ("warmup=99", "warmup 99 ≥ updates 24"),
        ("max_concurrent=9999", "hosts.count 8 × hosts.slots 32 = 256 boxes"),
        ("faults.engines_lost=8", "leaves no engine of 8"),
        ("faults.hosts_lost=8", "leaves no host of 8"),
        ("episode.command_s=700", "episode.command_s 700 is above episode.deadline_s 600"),
        ('train={kind="log-normal", mean=3}', "has `median` and `p99`"),
        ('train={kind="log-normal", median=3, p99=1}', "p99 1 < median 3"),
        ("train={median=3}", "has `mean`"),
    ],
)
def test_what_cannot_be_simulated_is_refused(override: str, said: str) -> None:
    """The message names the key and shows the numbers."""
    with pytest.raises(ConfigError) as caught:
        load_scenario("long-tail", [override])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "spread",
    [
        Spread(kind="fixed", mean=3.0),
        Spread(kind="exponential", mean=3.0),
        Spread(kind="log-normal", median=2.0, p99=10.0),
    ],
)
def test_the_mean_is_that_of_what_is_drawn(spread: Spread) -> None:
    """Bounds are worked out from means, so these must be right."""
    source = random.Random("mean")
    drawn = [draw(spread, source) for _ in range(20_000)]
    assert statistics.fmean(drawn) == pytest.approx(mean_of(spread), rel=0.04)
    if spread.p99 is not None:
        assert statistics.quantiles(drawn, n=100)[98] == pytest.approx(spread.p99, rel=0.1)


def test_a_plan_depends_on_seed_and_name_alone() -> None:
    """Every scheduler is given the same work, in whatever order it asks."""
    scenario = load_scenario("long-tail")
    one, other = Plans(scenario), Plans(scenario)
    names = [f"g{group}/{index}" for group in range(5) for index in range(3)]
    assert [one.of(name) for name in names] == [other.of(name) for name in reversed(names)][::-1]
    assert one.of("g0/0") != Plans(scenario.model_copy(update={"seed": 1})).of("g0/0")


def test_a_deadline_cuts_a_plan_where_its_time_ends() -> None:
    """The action that it ends in is the last, and the episode does not pass."""
    plan = Plan((5, 6, 7), (10.0, 20.0), True)
    assert plan.until(31) == plan
    assert plan.until(15) == Plan((5, 6), (10.0, 5.0), False)
    assert plan.until(10) == Plan((5,), (10.0,), False)


def test_a_number_stands_for_an_amount_that_does_not_vary() -> None:
    """`train = 30` is short for the table."""
    assert Scenario.model_validate({"train": 30}).train == Spread(kind="fixed", mean=30)
