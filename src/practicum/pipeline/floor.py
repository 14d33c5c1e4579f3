"""Where orders are carried out: attempts act in one pipeline and are judged in another.

Owns: `Floor`.
Invariant: orders begin one after another, each under exactly the weights it names (in the flow: under the newest), and
the next begins while the last is still being judged; an order is answered once, with each of its attempts.
Must not know: processes, training.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from practicum.errors import AttemptTimedOut, PracticumError
from practicum.pipeline.adapting import Adapting
from practicum.pipeline.breaking import Breaking, row_of
from practicum.pipeline.crew import Crew, Recall
from practicum.pipeline.orders import Done, Failed, Judge, Judged, Order, Progress, Settled, Told, WorkerSetup
from practicum.records.trajectory import Fault, Trajectory
from practicum.rollouts.attempt import AttemptSpec, Parked, Rolled, judge_rolled, roll_or_park
from practicum.rollouts.collector import Bounds, Collector, Group, JudgeOne, RollOut
from practicum.rollouts.harness import Harness
from practicum.sandboxes.provider import HostProvider
from practicum.scheduling.concurrency import Decision
from practicum.trajectories.journal import Journal
from practicum.verification.contract import Verifier
from practicum.verification.judging import judge_all
from practicum.verification.reuse import ReusingVerifier

_COMPACT_EVERY = 16  # settlements


@dataclass
class _Rolling:
    """How far an order has come: attempts that still act, beside refills."""

    left: set[str]
    over: asyncio.Event

    def one(self, name: str) -> None:
        self.left.discard(name)
        if not self.left:
            self.over.set()


class Floor:
    """The places of one run. `send` tells the trainer."""

    def __init__(
        self,
        setup: WorkerSetup,
        provider: HostProvider,
        verifier: Verifier,
        journal: Journal,
        send: Callable[[object], None],
    ) -> None:
        self._setup, self._provider, self._verifier = setup, provider, verifier
        self._journal, self._send = journal, send
        self._crew = Crew(setup)
        self._recall = Recall(journal)
        if journal.lost:
            reason = f"{journal.lost} bytes at the end of the journal made no sense: what they held is done anew"
            send(Told({"kind": "journal", "lost": journal.lost, "reason": reason}))
        judge = partial(judge_rolled, verifier=verifier, journal=journal)
        self.collector = Collector(judge, Bounds(setup.sandbox.max_concurrent, setup.schedule.backlog))
        self._adapting: Adapting | None = None
        if setup.schedule.adaptive:
            self._adapting = Adapting(
                setup.sandbox.max_concurrent, setup.sandbox.verify_concurrent, self._usage, self._tune
            )
        self._breaking = Breaking(provider.name, lambda notice: send(Told(row_of(notice))))
        self._most = self._cap = setup.sandbox.max_concurrent
        self._units: dict[str, list[str]] = {}
        self._boxes_told = self._settlements = self._others = 0

    async def carry_out(self, order: Order | Judge) -> None:
        """Answer `order`. Raises what a data error of a task or configuration raises."""
        if isinstance(order, Judge):
            await self._judge(order)
            return
        self._units[order.id] = [spec.id for spec in (*order.specs, *order.refills)]
        judge = self._judging(order)
        rolling = _Rolling({spec.id for spec in order.specs}, asyncio.Event())
        if not order.specs:
            rolling.over.set()
        async with self._turn(order) as again:
            start = time.perf_counter()
            self._most = order.most or self._setup.sandbox.max_concurrent
            self._resize()
            roll, turn = self._rolling(order, rolling), self._late(order, again)
            groups = [self.collector.submit(roll, group, judge=judge, turn=turn) for group in groups_of(order)]
            await rolling.over.wait()
        trajectories = [trajectory for group in groups for trajectory in await group]
        seconds = time.perf_counter() - start
        self._send(Done(order.id, tuple(trajectories), seconds, self._fresh_boxes(), self._queues()))

    async def adapt(self) -> None:
        """Keep the number of places at what the host bears, where that is wanted, until cancelled."""
        if self._adapting is not None:
            await self._adapting.run()

    async def settle(self, settled: Settled) -> None:
        """Forget what the journal holds of orders whose outcome is on record elsewhere."""
        for order in settled.orders:
            self._journal.handed(self._units.pop(order, ()))
        self._settlements += 1
        if self._settlements % _COMPACT_EVERY == 0:
            await self._journal.compact()

    async def _judge(self, order: Judge) -> None:
        try:  # by no verdict on an equal submission: what is asked here is what the judge says now
            verdicts = await judge_all(self._verifier, order.items)
        except PracticumError as error:
            self._send(Failed(order.id, error))
            return
        self._send(Judged(order.id, tuple(verdicts), self._fresh_boxes()))

    @asynccontextmanager
    async def _turn(self, order: Order) -> AsyncIterator[int | None]:
        """Hold what `order` needs until all of it has acted; gives the version that a late refill must ask for."""
        turns = self._crew.turns
        if order.flowing:
            turns.newest = max(turns.newest, order.version)
            await turns.renew()
            yield None
        elif order.who == "model":
            async with turns.under(order.version):
                yield order.version
        else:
            self._others += 1
            async with turns.under(-self._others):  # nobody shares it
                yield None

    def _late(self, order: Order, again: int | None) -> Callable[[AttemptSpec], AbstractAsyncContextManager[object]]:
        """The turn of an attempt that is not covered by its order's."""
        turns, first = self._crew.turns, frozenset(spec.id for spec in order.specs)

        def turn(spec: AttemptSpec) -> AbstractAsyncContextManager[object]:
            if order.flowing:
                return turns.flow()
            return nullcontext() if spec.id in first or again is None else turns.under(again)

        return turn

    def _rolling(self, order: Order, rolling: _Rolling) -> RollOut:
        park = self._crew.turns.park if order.flowing else None

        async def roll(spec: AttemptSpec) -> Rolled | Parked:
            try:
                # Somebody waits for this turn: it is of no use to lease a box for it.
                return Parked(spec) if park is not None and park.is_set() else await self._act(order, spec, park)
            finally:
                rolling.one(spec.id)

        return self._recall.rolling(roll, on_recalled=lambda spec: rolling.one(spec.id))

    async def _act(self, order: Order, spec: AttemptSpec, park: asyncio.Event | None) -> Rolled | Parked:
        agent, attempt_s = self._crew.agent(order), self._setup.schedule.attempt_s
        try:
            async with asyncio.timeout(attempt_s) as deadline:
                return await self._breaking.through(
                    lambda: roll_or_park(
                        spec,
                        provider=self._provider,
                        policy=agent.policy,
                        renderer=agent.renderer,
                        harness=Harness(budgets=agent.budgets),
                        journal=self._journal,
                        park=park,
                    )
                )
        except TimeoutError:
            if not deadline.expired():
                raise
            error = AttemptTimedOut(f"the attempt had not ended after {attempt_s:g} s")
            return Rolled(spec, (), "fault", Fault(error.kind, error.message), None, {})

    def _judging(self, order: Order) -> JudgeOne:
        judge = partial(judge_rolled, verifier=ReusingVerifier(self._verifier), journal=self._journal)
        done = 0

        async def counted(rolled: Rolled) -> Trajectory:
            nonlocal done
            trajectory = await judge(rolled)
            if self._adapting is not None:
                self._adapting.saw(trajectory)
            done += 1
            self._send(Progress(order.id, done, len(order.specs)))
            return trajectory

        return self._recall.judging(counted)

    def _usage(self) -> tuple[int, int]:
        return self.collector.rolling.held, self.collector.backlog.held

    def _tune(self, decision: Decision) -> None:
        self._cap = decision.cap
        self._resize()
        row = {"kind": "concurrency", "cap": decision.cap, "before": decision.before, "reason": decision.reason}
        self._send(Told(row))

    def _resize(self) -> None:
        self.collector.rolling.resize(min(self._most, self._cap))

    def _fresh_boxes(self) -> int:
        before, self._boxes_told = self._boxes_told, self._provider.created
        return self._boxes_told - before

    def _queues(self) -> dict[str, Any]:
        now = asyncio.get_running_loop().time()
        places = {"place": self.collector.rolling, "judge": self.collector.backlog}
        return {name: permits.waits.to_json(now) for name, permits in places.items()}


def groups_of(order: Order) -> list[Group]:
    """The attempts of `order` by group, each with the refills of its own. Pure."""
    members: defaultdict[str, list[AttemptSpec]] = defaultdict(list)
    refills: defaultdict[str, list[AttemptSpec]] = defaultdict(list)
    for spec in order.specs:
        members[spec.group_id].append(spec)
    for spec in order.refills:
        refills[spec.group_id].append(spec)
    return [Group(tuple(each), tuple(refills[name]), order.size) for name, each in members.items()]
