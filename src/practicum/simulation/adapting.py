"""The real concurrency controller, fed with what the simulated plant shows.

Owns: `adapt`.
Invariant: only what a real plant could measure goes in.
Must not know: how the controller decides.
"""

from __future__ import annotations

import asyncio

from practicum.rollouts.collector import Collector
from practicum.scheduling.concurrency import Bounds, Concurrency, Decision, Signals
from practicum.simulation.accounts import Accounts
from practicum.simulation.world import World

_EVERY_S = 5.0
_WINDOW_S, _ENOUGH = 60.0, 20  # tries to create: a share of fewer, or of older ones, says nothing
_START = 4  # it begins with this part of the places


async def adapt(
    world: World, collector: Collector, accounts: Accounts, decisions: list[tuple[float, Decision]]
) -> None:
    """Resize the collector's permits every few seconds, for ever; decisions that changed the cap are kept."""
    scenario, loop = world.scenario, asyncio.get_running_loop()
    bounds = Bounds(lowest=min(scenario.group_size, scenario.concurrent), highest=scenario.concurrent)
    controller = Concurrency(bounds, cap=scenario.concurrent // _START)
    collector.rolling.resize(controller.cap)
    ended = 0
    while True:
        await asyncio.sleep(_EVERY_S)
        replicas = world.engines.replicas
        tries = [took for at_s, took in world.provider.recent if at_s > loop.time() - _WINDOW_S]
        created = sorted(took for took in tries if took is not None)
        queued = sum(replica.queued for replica in replicas)
        decision = controller.decide(
            Signals(
                in_use=collector.rolling.held,
                ended=accounts.ended - ended,
                engine_running=sum(replica.load for replica in replicas) - queued,
                engine_queue=queued,
                create_p95_s=created[int(0.95 * len(created))] if len(created) >= _ENOUGH else None,
                create_failed=1 - len(created) / len(tries) if len(tries) >= _ENOUGH else None,
                verify_backlog=world.verifier.permits.waits.depth / scenario.verifier.slots,
            )
        )
        ended = accounts.ended
        if decision.change != "kept":
            collector.rolling.resize(decision.cap)
            decisions.append((loop.time(), decision))
