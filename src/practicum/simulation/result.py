"""What a simulation showed, added up.

Owns: `simulate`, `Result`, `measure`.
Invariant: rates are those after the warm-up; shares of a worker's time sum to 1; the bound is what `bounds` says.
Must not know: how results are shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from practicum.scheduling.bound import Bound
from practicum.simulation.bounds import bound_of
from practicum.simulation.run import Outcome, Simulation
from practicum.simulation.scenario import Scenario, Scheduler
from practicum.simulation.virtual import run_virtual


@dataclass(frozen=True, slots=True)
class Result:
    """One scheduler on one scenario. Seconds are virtual, but for `wall_s`, which the simulation itself took."""

    scheduler: Scheduler
    bound: Bound
    episodes_per_s: float
    reported_once: bool
    scored_faults: int
    staleness_max: int
    staleness_mean: float
    staleness_turns: Mapping[int, int]
    workers: Mapping[str, Mapping[str, float]]
    episodes: Mapping[str, Any]
    faults: Mapping[str, int]
    waits: Mapping[str, Mapping[str, Any]]
    breakers: tuple[str, ...]
    decisions: tuple[str, ...]
    virtual_s: float
    wall_s: float

    @property
    def fraction(self) -> float:
        """Achieved, of the bound."""
        return self.bound.fraction(self.episodes_per_s)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scenario's own scheduler, and others on the same work by name; always the synchronous one."""

    scenario: Scenario
    result: Result
    others: Mapping[Scheduler, Result] = field(default_factory=dict)

    @property
    def speedup_vs_sync(self) -> float:
        """How many times as fast as the synchronous loop."""
        return self.result.episodes_per_s / self.others["synchronous"].episodes_per_s

    @property
    def ran(self) -> tuple[Result, ...]:
        """All results, the scenario's own first."""
        return tuple(({self.result.scheduler: self.result} | dict(self.others)).values())

    @property
    def wall_s(self) -> float:
        """Real seconds that all simulations took."""
        return sum(each.wall_s for each in self.ran)

    def document(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        result, bound = self.result, self.result.bound
        return {
            "bound": bound.to_json(),
            "achieved_episodes_per_s": result.episodes_per_s,
            "fraction_of_bound": result.fraction,
            "speedup_vs_sync": self.speedup_vs_sync,
            "reported_once": result.reported_once,
            "scored_faults": result.scored_faults,
            "staleness": {
                "max": result.staleness_max,
                "mean": result.staleness_mean,
                "turns": {str(versions): turns for versions, turns in result.staleness_turns.items()},
            },
            "time_identity": dict(result.workers["places"]),
            "workers": {name: dict(shares) for name, shares in result.workers.items()},
            "scheduler": result.scheduler,
            "episodes": dict(result.episodes),
            "faults": dict(result.faults),
            "waits": {name: dict(waits) for name, waits in result.waits.items()},
            "breakers": list(result.breakers),
            "concurrency_decisions": list(result.decisions),
            "schedulers": {
                each.scheduler: {
                    "episodes_per_s": each.episodes_per_s,
                    "fraction_of_bound": each.fraction,
                    "staleness_max": each.staleness_max,
                    "reported_once": each.reported_once,
                    "scored_faults": each.scored_faults,
                }
                for each in self.ran
            },
            "virtual_s": result.virtual_s,
            "wall_s": self.wall_s,
            "scenario": self.scenario.model_dump(mode="json"),
        }


def simulate(scenario: Scenario, told: Callable[[Scheduler], None] = lambda scheduler: None) -> Comparison:
    """Run `scenario` under its scheduler, the synchronous loop and those of `compare`; `told` hears what begins."""
    results: dict[Scheduler, Result] = {}
    for scheduler in (scenario.scheduler, "synchronous", *scenario.compare):
        if scheduler not in results:
            told(scheduler)
            results[scheduler] = measure(replace_scheduler(scenario, scheduler))
    own = results[scenario.scheduler]
    others = {name: each for name, each in results.items() if name != scenario.scheduler or name == "synchronous"}
    return Comparison(scenario, own, others)


def replace_scheduler(scenario: Scenario, scheduler: Scheduler) -> Scenario:
    """The same work under another scheduler."""
    return scenario.model_copy(update={"scheduler": scheduler})


def measure(scenario: Scenario) -> Result:
    """Run `scenario` under its own scheduler only, on virtual time."""

    async def main() -> Outcome:
        return await Simulation(scenario).run()

    began = time.perf_counter()
    outcome = run_virtual(main())
    return _added_up(scenario, outcome, time.perf_counter() - began)


def _added_up(scenario: Scenario, outcome: Outcome, wall_s: float) -> Result:
    world, accounts, updates = outcome.world, outcome.accounts, outcome.updates
    measured = updates[scenario.warmup :]
    seconds = measured[-1].at_s - updates[scenario.warmup - 1].at_s
    stale = Counter(versions for update in updates for versions in update.staleness)
    turns = sum(stale.values())
    virtual_s = outcome.ended_s - outcome.began_s
    return Result(
        scheduler=scenario.scheduler,
        bound=bound_of(scenario),
        episodes_per_s=sum(update.episodes for update in measured) / seconds,
        reported_once=accounts.reported_once,
        scored_faults=accounts.scored_faults,
        staleness_max=max(stale, default=0),
        staleness_mean=sum(versions * count for versions, count in stale.items()) / max(1, turns),
        staleness_turns=dict(sorted(stale.items())),
        workers=_workers(outcome, virtual_s),
        episodes={
            "dispatched": len(accounts.dispatched),
            "trained": sum(update.episodes for update in updates),
            "masked_groups": outcome.masked_groups,
            "turns": accounts.turns,
            "p50_s": accounts.seconds.quantile(0.5),
            "p99_s": accounts.seconds.quantile(0.99),
            "mean_s": accounts.seconds.mean_s,
            **{name: accounts.lives[name] for name in sorted(accounts.lives)},
        },
        faults=dict(sorted((world.provider.faults.counts + Counter(_elsewhere(outcome))).items())),
        waits=_waits(outcome),
        breakers=tuple(
            f"{notice.at_s - outcome.began_s:.0f} s  {notice.key}: {notice.before} → {notice.after}, {notice.reason}"
            for notice in sorted(
                (*world.provider.hosts.breakers.drain(), *world.policy.breakers.drain()), key=lambda each: each.at_s
            )
        ),
        decisions=tuple(
            f"{at_s - outcome.began_s:.0f} s  {each.before} → {each.cap}: {each.reason}"
            for at_s, each in outcome.decisions
        ),
        virtual_s=virtual_s,
        wall_s=wall_s,
    )


def _elsewhere(outcome: Outcome) -> dict[str, int]:
    """Faults that were not the boxes', and what attempts were masked for at last."""
    masked = {
        "under way at the end" if kind == "Cancelled" else f"masked {kind}": count
        for kind, count in outcome.accounts.faults.items()
    }
    return {"verifier_fault": outcome.world.verifier.faults, "policy_error": outcome.world.policy.errors, **masked}


def _workers(outcome: Outcome, virtual_s: float) -> dict[str, dict[str, float]]:
    """Shares of time by worker: places to act in, engines, judges, the trainer."""
    world, trainer = outcome.world, outcome.accounts.trainer
    scenario = world.scenario
    assert trainer is not None
    engines = sum(replica.busy_s for replica in world.engines.replicas) / (scenario.engines.replicas * virtual_s)
    judges = min(1.0, world.verifier.busy_s / (scenario.verifier.slots * virtual_s))
    return {
        "places": outcome.accounts.places.shares(),
        "engines": {"generate": engines, "idle": 1 - engines},
        "judges": {"verify": judges, "idle": 1 - judges},
        "trainer": trainer.account().shares(),
    }


def _waits(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Wait statistics of each queue, in virtual seconds."""
    now, collector = outcome.ended_s, outcome.collector
    engine, created = outcome.world.policy.waited, outcome.world.provider.created
    return {
        "place": collector.rolling.waits.to_json(now),
        "backlog": collector.backlog.waits.to_json(now),
        "judge": outcome.world.verifier.permits.waits.to_json(now),
        "engine": {"count": engine.count, "p50_s": engine.quantile(0.5), "p99_s": engine.quantile(0.99)},
        "box": {"count": created.count, "p50_s": created.quantile(0.5), "p99_s": created.quantile(0.99)},
    }
