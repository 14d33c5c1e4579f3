"""One simulated plant, and what befalls it as a whole.

Owns: `World`, `HARNESS`.
Invariant: made inside a running loop, whose time is the plant's.
Must not know: who schedules.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache

from practicum.records.task import Limits, Task, Verification
from practicum.rollouts.harness import Harness
from practicum.rollouts.session import Budgets
from practicum.rollouts.spec import Patience
from practicum.simulation.boxes import SimulatedProvider
from practicum.simulation.engines import Engines
from practicum.simulation.judging import SimulatedVerifier
from practicum.simulation.plans import Plans
from practicum.simulation.sampling import SimulatedPolicy, SimulatedRenderer
from practicum.simulation.scenario import Scenario

_NEVER = 10**9
_MARGIN_S = 60.0
HARNESS = Harness(Budgets(max_turns=_NEVER, max_tokens=_NEVER, max_context=_NEVER))


class World:
    """Hosts, engines and judges of a scenario, to be handed to the real roll-out and judgement."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.plans = Plans(scenario)
        self.engines = Engines(scenario.engines)
        self.patience = _patience(scenario)
        self.policy = SimulatedPolicy(scenario, self.plans, self.engines, patience_s=self.patience.sample_s)
        self.renderer = SimulatedRenderer()
        self.provider = SimulatedProvider(scenario)
        self.verifier = SimulatedVerifier(scenario)
        self.task = lru_cache(maxsize=None)(self._task)
        self._befall()

    def _task(self, number: int) -> Task:
        shape = self.scenario.episode
        limits = Limits(command_s=shape.command_s, episode_s=shape.deadline_s)
        return Task(f"task-{number}", "", {}, Verification("command", {}), limits=limits)

    def _befall(self) -> None:
        """Set the timers of what dies and comes back."""
        faults, loop = self.scenario.faults, asyncio.get_running_loop()
        for host in range(faults.hosts_lost):
            loop.call_later(faults.hosts_lost_at_s, self._host, host, False)
            if faults.hosts_back_at_s is not None:
                loop.call_later(faults.hosts_back_at_s, self._host, host, True)
        for replica in self.engines.replicas[: faults.engines_lost]:
            loop.call_later(faults.engines_lost_at_s, replica.end, "hung" if faults.engines_hang else "dead")
            if faults.engines_back_at_s is not None:
                loop.call_later(faults.engines_back_at_s, replica.begin)

    def _host(self, host: int, up: bool) -> None:
        self.provider.hosts.up[host] = up


def _patience(scenario: Scenario) -> Patience:
    """Deadlines that only what hangs can miss: what a scenario calls usual must not be cut by them."""
    engines = scenario.engines
    slowest = min(engines.stream_tokens_per_s, engines.tokens_per_s / engines.slots)
    sample_s = _MARGIN_S + 2 * scenario.episode.max_tokens / slowest
    seconds = scenario.verifier.seconds
    verify_s = 600.0 + 100 * (seconds.p99 or seconds.mean or 0.0)
    return Patience(sample_s=sample_s, verify_s=verify_s)
