"""One simulation: the real roll-out, judgement, collector, pace, permits and breakers on a simulated plant.

Owns: `Simulation`, `Outcome`.
Invariant: dispatch goes by `Pace`, and by the places there are, so that nothing trained is staler than allowed and
nothing grows old in a line; a group that is not whole is masked as a whole, and another takes its place.
Must not know: virtual from real time, how the outcome is shown.

Three schedulers differ only in when a group may go. `synchronous`: staleness 0, so that all wait for each update.
`batches`: one batch is collected at a time, while the update before it runs. `continuous`: as soon as there is a place.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from practicum.errors import ConfigError
from practicum.records.trajectory import Trajectory
from practicum.rollouts.attempt import AttemptSpec, Rolled, judge_rolled, roll_out
from practicum.rollouts.collector import Bounds, Collector, Group
from practicum.scheduling.concurrency import Decision
from practicum.scheduling.expected import Durations
from practicum.scheduling.identity import Clock
from practicum.scheduling.pacing import Pace
from practicum.simulation.accounts import Accounts
from practicum.simulation.adapting import adapt
from practicum.simulation.plans import draw
from practicum.simulation.scenario import Scenario
from practicum.simulation.world import HARNESS, World

_MOST_MASKED = 64  # groups in a row
_BACKLOG = 2  # submissions before the judge, for each of its slots


class _Enough(Exception):
    """The trainer has made its updates; what is still under way is given up."""


@dataclass(frozen=True, slots=True)
class Update:
    """One update: when it was done (seconds), and how many versions old each turn was that it trained on."""

    at_s: float
    episodes: int
    staleness: tuple[int, ...]


@dataclass(slots=True)
class Outcome:
    """What a simulation came to, before it is added up."""

    world: World
    accounts: Accounts
    collector: Collector
    updates: list[Update] = field(default_factory=list)
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    masked_groups: int = 0
    began_s: float = 0.0
    ended_s: float = 0.0


class Simulation:
    """One scenario under its scheduler. Make it, and `run` it, inside a running loop."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._loop = asyncio.get_running_loop()
        self._world = world = World(scenario)
        eta = 0 if scenario.scheduler == "synchronous" else scenario.max_staleness
        self._pace = Pace(scenario.groups_per_update, eta)
        self._accounts = Accounts(world)
        backlog = _BACKLOG * scenario.verifier.slots
        self._collector = Collector(
            self._judge, Bounds(scenario.concurrent, backlog), durations=Durations(), on_done=self._accounts.reported
        )
        self._outcome = Outcome(world, self._accounts, self._collector, began_s=self._loop.time())
        self._source = random.Random(f"trainer:{scenario.seed}")
        self._changed = asyncio.Event()  # whoever dispatches is to look again
        self._ended = asyncio.Event()  # a group has ended: there may be enough for an update
        self._version = 0
        self._groups = 0  # that were begun, masked ones included
        self._born: dict[str, int] = {}
        self._ready: list[str] = []
        self._whole: dict[str, tuple[Trajectory, ...]] = {}
        self._in_line: set[str] = set()  # attempts that wait for a place

    @property
    def samples(self) -> int:
        """Samples that the policy has made so far."""
        return self._world.policy.waited.count

    async def run(self) -> Outcome:
        """Make all updates. What is under way at the end is given up, and reported as such."""
        try:
            async with self._collector:
                async with asyncio.TaskGroup() as tasks:
                    others = [tasks.create_task(self._dispatch(), name="dispatch")]
                    if self._scenario.adaptive:
                        sampling = adapt(self._world, self._collector, self._accounts, self._outcome.decisions)
                        others.append(tasks.create_task(sampling, name="adapt"))
                    await self._train()
                    self._outcome.ended_s = self._loop.time()
                    self._accounts.stop()
                    for task in others:
                        task.cancel()
                raise _Enough
        except _Enough:
            pass
        self._accounts.close()
        return self._outcome

    async def _dispatch(self) -> None:
        while True:
            while self._may_go():
                self._submit()
            self._changed.clear()
            await self._changed.wait()

    def _may_go(self) -> bool:
        scenario, out = self._scenario, self._groups - self._outcome.masked_groups
        if not self._pace.may_dispatch(out, self._version):
            return False
        if scenario.scheduler == "continuous":
            return not self._in_line  # born too early is old too early
        if scenario.scheduler == "batches" and out % scenario.groups_per_update == 0:
            return len(self._ready) == len(self._born)
        return True

    def _submit(self) -> None:
        scenario, number = self._scenario, self._groups
        name, size = f"g{number}", scenario.group_size
        task = self._world.task(self._world.plans.task(number))
        specs = [
            AttemptSpec(task, name, index, seed=scenario.seed, patience=self._world.patience)
            for index in range(2 * size + scenario.spares)
        ]
        first = size + scenario.spares
        self._groups += 1
        self._born[name] = self._version
        self._in_line.update(spec.id for spec in specs[:first])
        self._accounts.dispatched.update(spec.id for spec in specs[:first])
        self._accounts.refills.update(spec.id for spec in specs[first:])
        group = Group(tuple(specs[:first]), tuple(specs[first:]), size if scenario.spares else None)
        self._collector.submit(self._roll, group).add_done_callback(lambda done: self._end(name, done))

    def _end(self, name: str, done: asyncio.Task[tuple[Trajectory, ...]]) -> None:
        if done.cancelled() or done.exception() is not None:
            return  # the collector tells of it
        found = done.result()
        self._in_line.difference_update([trajectory.id for trajectory in found])
        whole = [trajectory for trajectory in found if trajectory.fault is None][: self._scenario.group_size]
        if len(whole) == self._scenario.group_size:
            self._whole[name] = tuple(whole)
            self._ready.append(name)
        else:
            del self._born[name]
            self._outcome.masked_groups += 1
        self._changed.set()
        self._ended.set()

    async def _roll(self, spec: AttemptSpec) -> Rolled:
        self._in_line.discard(spec.id)
        self._accounts.dispatched.add(spec.id)
        self._changed.set()
        world = self._world
        with self._accounts.holding(spec.id):
            rolled = await roll_out(
                spec, provider=world.provider, policy=world.policy, renderer=world.renderer, harness=HARNESS
            )
            self._accounts.rolled(rolled)
        return rolled

    async def _judge(self, rolled: Rolled) -> Trajectory:
        return await judge_rolled(rolled, self._world.verifier)

    async def _train(self) -> None:
        clock = Clock(self._loop.time, "wait_rollouts")
        self._accounts.trainer = clock
        masked, most_masked = 0, max(_MOST_MASKED, 4 * self._pace.per_update)
        while self._version < self._scenario.updates:
            enough = len(self._ready) >= self._pace.per_update  # `choose` looks at every group
            chosen = self._pace.choose(self._version, self._ready, self._born) if enough else None
            if chosen is None:
                if self._outcome.masked_groups - masked > most_masked:
                    raise ConfigError(
                        f"{most_masked} groups in a row were lost to faults, and no update could be made",
                        fix="lower `faults`, or let what dies come back (`hosts_back_at_s`, `engines_back_at_s`)",
                    )
                self._ended.clear()
                await self._ended.wait()
                continue
            masked = self._outcome.masked_groups
            trained = [trajectory for name in chosen for trajectory in self._whole.pop(name)]
            for name in chosen:
                del self._born[name]
            self._ready = [name for name in self._ready if name in self._born]
            with clock.during("update"):
                await asyncio.sleep(draw(self._scenario.train, self._source))
            with clock.during("weight_sync"):
                await self._world.engines.publish(self._version + 1)
            staleness = tuple(self._version - turn.policy_version for each in trained for turn in each.turns)
            self._outcome.updates.append(Update(self._loop.time(), len(trained), staleness))
            self._version += 1
            self._changed.set()
