"""What is dispatched when, and what each update trains: the two ways of a run.

Owns: `Feed`, `Gathered`, `open_feed`.
Invariant: nothing that is gathered is staler than the run allows; each group trains once. By `batches`, batch b holds
the groups b × n to (b + 1) × n − 1, sampled by version max(0, b − max_staleness), whatever the timing. In the flow
(`continuous`), an update trains what ended first, those before all that would be too old for the next.
Must not know: how groups are made, what training is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from practicum.pipeline.curriculum import next_batch
from practicum.pipeline.orders import Done, Order
from practicum.pipeline.run import Run, specs_of
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.scheduling.pacing import Pace
from practicum.tasks.sampler import Curriculum


@dataclass(frozen=True, slots=True)
class Gathered:
    """What one update trains. `seconds` of wall clock that making it took, `queues` as of `Done`."""

    trajectories: tuple[Trajectory, ...]
    seconds: float
    boxes: int
    queues: dict[str, Any]


class Feed(Protocol):
    """Where batches come from."""

    def fill(self) -> list[int]:
        """Dispatch what may go while the trainer stands where it does; the batches that were drawn whole with it."""
        ...

    def gather(self, batch: int) -> Gathered:
        """Wait for what the update that makes `batch` + 1 trains, and account for it."""
        ...


def open_feed(run: Run, plan: Curriculum) -> Feed:
    """The feed that the configuration asks for."""
    return Batches(run, plan) if run.config.schedule.mode == "batches" else Flow(run, plan)


class Batches:
    """Whole batches in turn. Batches that are replayed are not sampled again."""

    def __init__(self, run: Run, plan: Curriculum) -> None:
        self._run, self._plan = run, plan
        self._pace = Pace(1, run.config.rollout.max_staleness)  # of batches
        self._drawn = self._sent = run.state.version

    def fill(self) -> list[int]:
        run, drawn, last = self._run, list[int](), self._run.config.rl.updates
        # Drawn when overlap would draw it, from what is known then, even where it is sent later.
        while self._drawn < last and self._pace.may_dispatch(self._drawn, run.state.version):
            next_batch(run, self._plan, self._drawn)
            drawn.append(self._drawn)
            self._drawn += 1
        while self._sent < (self._drawn if run.config.schedule.overlap else min(self._drawn, run.state.version + 1)):
            self._send(self._sent)
            self._sent += 1
        return drawn

    def _send(self, batch: int) -> None:
        run = self._run
        if batch not in run.replay:
            chosen = next_batch(run, self._plan, batch)
            groups = [(f"rl-{batch}-{number}-{name}", name) for number, name in enumerate(chosen)]
            run.process.send(order_of(run, f"rl-{batch}", groups, self._pace.needed_version(batch)))

    def gather(self, batch: int) -> Gathered:
        run = self._run
        done = run.replay.take(batch) if batch in run.replay else run.process.wait(f"rl-{batch}")
        return Gathered(tuple(run.account(done, update=batch + 1)), done.seconds, done.boxes, dict(done.queues))


class Flow:
    """Groups one by one; `state.born` holds those that were dispatched and have not trained, across a resume."""

    def __init__(self, run: Run, plan: Curriculum) -> None:
        self._run, self._plan = run, plan
        self._size = run.config.rollout.tasks_per_update
        self._pace = Pace(self._size, run.config.rollout.max_staleness)
        self._ready: dict[str, Done] = {}
        self._drawn: list[str] = []
        self._began = time.perf_counter()
        self._boxes = 0
        for name, born in run.state.born.items():
            self._send(name, born)
        self._dispatched = self._pace.resumed(run.state.version, len(run.state.born))

    def fill(self) -> list[int]:
        run, drawn = self._run, list[int]()
        last = run.config.rl.updates * self._size
        while self._dispatched < last and self._pace.may_dispatch(self._dispatched, run.state.version):
            batch, number = divmod(self._dispatched, self._size)
            if not self._drawn:
                self._drawn = list(next_batch(run, self._plan, batch))[number:]
            name = f"rl-{batch}-{number}-{self._drawn.pop(0)}"
            run.state.born[name] = run.state.version
            self._send(name, run.state.version)
            self._dispatched += 1
            if number + 1 == self._size:
                drawn.append(batch)
        return drawn

    def gather(self, batch: int) -> Gathered:
        run = self._run
        while (chosen := self._pace.choose(batch, list(self._ready), run.state.born)) is None:
            done = run.process.wait_any(run.state.born.keys() - self._ready.keys())
            self._boxes += done.boxes  # of all that goes on, not of this group alone
            self._ready[done.order] = replace(done, boxes=0)
        dones = [self._ready.pop(name) for name in chosen]
        for name in chosen:
            del run.state.born[name]
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        boxes, self._boxes = self._boxes, 0
        run.state.boxes_created += boxes
        trajectories = [t for done in dones for t in run.account(done, update=batch + 1)]
        return Gathered(tuple(trajectories), seconds, boxes, dict(dones[-1].queues))

    def _send(self, name: str, version: int) -> None:
        task = name.split("-", 3)[3]
        self._run.process.send(order_of(self._run, name, [(name, task)], version, flowing=True))


def order_of(run: Run, name: str, groups: Sequence[tuple[str, str]], version: int, *, flowing: bool = False) -> Order:
    """The order to make `groups` (names with ids of tasks), with the refills and spares that the run allows."""
    rollout, schedule = run.config.rollout, run.config.schedule
    by_id: dict[str, Task] = {task.id: task for task in run.tasks["train"]}
    size = rollout.group_size + schedule.spares
    named = [(group, by_id[task]) for group, task in groups]
    every = specs_of(run.config.seed, named, size=size + schedule.refills, temperature=rollout.temperature)
    return Order(
        name,
        "model",
        tuple(spec for spec in every if spec.index < size),
        version,
        refills=tuple(spec for spec in every if spec.index >= size),
        size=rollout.group_size if schedule.spares else None,
        flowing=flowing,
    )
