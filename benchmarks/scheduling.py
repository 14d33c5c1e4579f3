"""What the scheduler reaches of the bound, what faults cost, and what it takes itself.

Run: python benchmarks/scheduling.py [--cluster] [--json]. Simulations run on virtual time, so their figures do not
depend on the host; `seconds` is what they took here. The overhead is measured in real time: the real loop, collector,
roll-out and journal-free records with simulated parts that really sleep, 1,000 episodes at once, turns of twenty
seconds; cpu is that of this process, less that of a process which only sleeps as often.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from typing import Any

from practicum.simulation.result import Result, measure, simulate
from practicum.simulation.run import Simulation
from practicum.simulation.scenario import Scenario
from practicum.simulation.shipped import load_scenario

_CONCURRENT = 1000
_TURN_S = 20.0  # half of it generating, half acting


def long_tail() -> dict[str, Any]:
    """Of the bound, and of the synchronous loop; episodes whose p99 is more than ten times their median."""
    found = simulate(load_scenario("long-tail"))
    each = found.result.episodes
    return {
        "p99_over_median": each["p99_s"] / each["p50_s"],
        "binding_term": found.result.bound.binding,
        "bound_per_s": found.result.bound.per_s,
        "achieved_per_s": found.result.episodes_per_s,
        "fraction_of_bound": found.result.fraction,
        "speedup_vs_sync": found.speedup_vs_sync,
        "staleness_max": found.result.staleness_max,
        "reported_once": found.result.reported_once,
    }


def faults(scenario: str, fault_free_per_s: float) -> dict[str, Any]:
    """What is left of the throughput when things die."""
    result: Result = measure(load_scenario(scenario))
    return {
        "of_fault_free": result.episodes_per_s / fault_free_per_s,
        "achieved_per_s": result.episodes_per_s,
        "boxes_lost": result.episodes["boxes_lost"],
        "reported_once": result.reported_once,
        "scored_faults": result.scored_faults,
        "masked_groups": result.episodes["masked_groups"],
        "staleness_max": result.staleness_max,
    }


def cluster() -> dict[str, Any]:
    """Ten thousand episodes at once over a thousand hosts, beside the synchronous loop."""
    found = simulate(load_scenario("cluster"))
    return {
        "concurrent": found.scenario.concurrent,
        "hosts": found.scenario.hosts.count,
        "turns": sum(each.episodes["turns"] for each in found.ran),
        "fraction_of_bound": found.result.fraction,
        "binding_term": found.result.bound.binding,
        "speedup_vs_sync": found.speedup_vs_sync,
        "reported_once": found.result.reported_once,
        "scored_faults": found.result.scored_faults,
    }


async def _core_share(until: asyncio.Task[Any], seconds: float) -> float:
    """The share of a core that this process takes while `until` runs, after a ramp of a few turns."""
    await asyncio.sleep(3 * _TURN_S)
    began, cpu = time.monotonic(), time.process_time()
    await asyncio.sleep(seconds)
    share = (time.process_time() - cpu) / (time.monotonic() - began)
    until.cancel()
    await asyncio.wait([until])
    return share


async def _sleepers() -> None:
    """As many sleeps as the simulated parts make, and nothing else."""

    async def sleep(number: int) -> None:
        await asyncio.sleep(_TURN_S * number / _CONCURRENT)
        for _ in itertools.repeat(None):
            await asyncio.sleep(_TURN_S / 2)

    async with asyncio.TaskGroup() as tasks:
        for number in range(_CONCURRENT):
            tasks.create_task(sleep(number))


def overhead(seconds: float = 100.0) -> dict[str, Any]:
    """The share of one core that 1,000 episodes at once cost in real time, each about as long as is measured."""
    scenario = Scenario.model_validate(
        {
            "updates": 1000,
            "warmup": 1,
            "groups_per_update": 32,
            "group_size": 8,
            "max_staleness": 8,
            "train": 10,
            "episode": {"turns": 5, "tokens": 100, "action": {"kind": "exponential", "mean": _TURN_S / 2}},
            "hosts": {"count": 20, "slots": 50, "create": 1.0, "creations_per_s": 10.0},
            "engines": {
                "replicas": 10, "slots": 128, "stream_tokens_per_s": 200 / _TURN_S, "tokens_per_s": 12800 / _TURN_S,
            },
            "verifier": {"slots": 200, "seconds": 10},
        }
    )  # fmt: skip

    async def scheduled() -> tuple[float, int]:
        simulation = Simulation(scenario)
        share = await _core_share(asyncio.create_task(simulation.run()), seconds)
        return share, simulation.samples

    async def bare() -> float:
        return await _core_share(asyncio.create_task(_sleepers()), seconds / 2)

    share, samples = asyncio.run(scheduled())
    sleeping = asyncio.run(bare())
    return {
        "concurrent": _CONCURRENT,
        "samples": samples,
        "core_share": share,
        "core_share_of_bare_sleeps": sleeping,
        "core_share_net": share - sleeping,
    }


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", action="store_true", help="also the cluster of ten thousand episodes")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}

    def take(name: str, found: dict[str, Any], began: float) -> None:
        figures[name] = found | {"seconds": time.perf_counter() - began}
        if not options.json:
            values = ", ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in figures[name].items()
            )
            print(f"{name}: {values}", flush=True)

    began = time.perf_counter()
    take("long tail", long_tail(), began)
    fault_free = figures["long tail"]["achieved_per_s"]
    for name in ("box-death", "dead-engine", "dead-host", "hung"):
        began = time.perf_counter()
        take(name, faults(name, fault_free), began)
    if options.cluster:
        began = time.perf_counter()
        take("cluster", cluster(), began)
    began = time.perf_counter()
    take("overhead", overhead(), began)
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
