"""What bounds a scenario, from its plans alone.

Owns: `expected_work`, `plant_of`, `bound_of`.
Invariant: the bound is that of a plant without faults in which nothing ever waits; nothing that was measured goes in.
Must not know: schedulers, what was achieved.

The means are those of the very episodes that will be dispatched, cut where their deadlines cut them, so that the luck
of a heavy tail falls on both sides of "achieved / bound".
"""

from __future__ import annotations

from practicum.scheduling.bound import Bound, Plant, Work, throughput_bound
from practicum.simulation.plans import Plans, mean_of
from practicum.simulation.scenario import Scenario


def expected_work(scenario: Scenario, first_group: int, groups: int) -> Work:
    """Means over the episodes of so many groups, from `first_group` on: unloaded engines, nothing fails."""
    plans, shape = Plans(scenario), scenario.episode
    tokens, tools_s, count = 0, 0.0, 0
    for group in range(first_group, first_group + groups):
        for index in range(scenario.group_size):
            plan = plans.of(f"g{group}/{index}").until(shape.deadline_s)
            tokens, tools_s, count = tokens + sum(plan.tokens), tools_s + sum(plan.actions), count + 1
    engines = scenario.engines
    return Work(
        decode_s=tokens / count / min(engines.stream_tokens_per_s, engines.tokens_per_s),
        tools_s=tools_s / count,
        verify_s=mean_of(scenario.verifier.seconds),
        start_s=mean_of(scenario.hosts.create),
        reset_s=scenario.hosts.close_s,
        tokens=tokens / count,
    )


def plant_of(scenario: Scenario) -> Plant:
    """What there is to do the work with, as long as nothing dies."""
    hosts = scenario.hosts
    return Plant(
        per_update=scenario.per_update,
        update_s=mean_of(scenario.train) + scenario.engines.publish_s,
        max_staleness=scenario.max_staleness,
        replicas=scenario.engines.replicas,
        tokens_per_s=min(scenario.engines.tokens_per_s, scenario.engines.slots * scenario.engines.stream_tokens_per_s),
        boxes=scenario.concurrent,
        verifiers=scenario.verifier.slots,
        creations_per_s=hosts.count * hosts.creations_per_s,
    )


def bound_of(scenario: Scenario) -> Bound:
    """Episodes per second that no scheduler can exceed, over the updates that are measured."""
    measured = scenario.updates - scenario.warmup
    first = scenario.warmup * scenario.groups_per_update
    return throughput_bound(expected_work(scenario, first, measured * scenario.groups_per_update), plant_of(scenario))
