"""Two pipelines joined by a bounded queue: attempts are rolled out, and what they come to is judged.

Owns: `Collector`, `Group`, `Bounds`, `cancelled`.
Invariant: every attempt that is begun leaves once, as the trajectory it came to or as a cancellation with a reason. An
attempt gives its place back only once there is room for its submission behind it, so that slow judging slows rolling
out. A group is whole, or it says that it is not: what is lost through a fault is made again, never what earned little.
Must not know: what rolling out and judging are made of, training. Time is the event loop's, so that it may be virtual.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from practicum.errors import PracticumError, category_of
from practicum.records.trajectory import Fault, Trajectory
from practicum.rollouts.attempt import AttemptSpec, Parked, Rolled
from practicum.scheduling.emission import Emissions
from practicum.scheduling.expected import Durations
from practicum.scheduling.permits import Permits

RollOut = Callable[[AttemptSpec], Awaitable[Rolled | Parked]]
Turn = Callable[[AttemptSpec], AbstractAsyncContextManager[object]]
JudgeOne = Callable[[Rolled], Awaitable[Trajectory]]
OnDone = Callable[[Trajectory], None]
SPARE = "Spare"
"""Kind of the fault on attempts that were given up because enough of their group had ended."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`rolling` attempts act at once; `backlog` submissions wait for the judge or are with it.

    Nothing waits for its place longer than `wait_s` seconds.
    """

    rolling: int
    backlog: int
    wait_s: float = 6 * 3600.0

    def __post_init__(self) -> None:
        if min(self.rolling, self.backlog) < 1:
            raise ValueError(f"{self}: at least one attempt must act, and one be judged")


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts that belong together, of which `size` are wanted (all of `specs` where it is None).

    `refills` replace, in order, attempts that an infrastructure fault took. Where there are more `specs` than `size`,
    the first `size` that end unmasked make the group, and the others are given up.
    """

    specs: tuple[AttemptSpec, ...]
    refills: tuple[AttemptSpec, ...] = ()
    size: int | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """How the attempts of a group go."""

    turn: Turn
    roll: RollOut
    judge: JudgeOne


def _no_turn(_: AttemptSpec) -> AbstractAsyncContextManager[object]:
    return nullcontext()


class Collector:
    """Works off groups; a context manager around what is under way.

    `judge` makes trajectories of what was rolled out. Attempts that `durations` expects to take longest go first.
    `on_done` gets each trajectory as it ends. Where `on_done`, a roll-out or the judge raises, all that has not ended
    is reported as cancelled, and the error goes on from the `async with`; a lone `PracticumError` as itself.
    """

    def __init__(
        self, judge: JudgeOne, bounds: Bounds, *, durations: Durations | None = None, on_done: OnDone | None = None
    ) -> None:
        self.bounds = bounds
        self.rolling = Permits(bounds.rolling, name="a place to act")
        self.backlog = Permits(bounds.backlog, name="a place before the judge")
        self.durations = durations or Durations()
        self._judge = judge
        self._on_done = on_done
        self._emissions = Emissions()
        self._specs: dict[str, AttemptSpec] = {}
        self._asked: dict[str, float] = {}
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reason = "the run was cancelled"
        try:
            await self._tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as errors:
            first: BaseException = errors.exceptions[0]
            reason = f"{type(first).__name__}: {first}"
            # An attempt's error may come once more from the group that waited for it.
            alone = all(each is first for each in errors.exceptions)
            if alone and (first is error or isinstance(first, PracticumError)):
                raise first from None
            raise
        finally:
            for name in self._emissions.open:
                self._emit(cancelled(self._specs[name], reason))

    def submit(
        self, roll: RollOut, group: Group, *, judge: JudgeOne | None = None, turn: Turn | None = None
    ) -> asyncio.Task[tuple[Trajectory, ...]]:
        """Begin `group`; its trajectories, masked and given-up ones included, in the order of specs and refills.

        `judge` is for this group, in place of the collector's. What `turn` gives is entered before an attempt asks for
        its place, so that nobody holds a place who waits for a turn; a parked attempt gives up both, and asks again.

        Raises `ValueError` where an attempt of this name is under way.
        """
        for spec in (*group.specs, *group.refills):
            if spec.id in self._specs:
                raise ValueError(f"attempt {spec.id} is under way already")
            self._specs[spec.id] = spec
        for spec in group.specs:
            self._dispatch(spec)
        way = _Way(turn or _no_turn, roll, judge or self._judge)
        return self._tasks.create_task(self._collect(way, group))

    def _dispatch(self, spec: AttemptSpec) -> None:
        self._emissions.dispatch(spec.id)
        self._asked[spec.id] = asyncio.get_running_loop().time()

    async def _collect(self, way: _Way, group: Group) -> tuple[Trajectory, ...]:
        found: dict[str, Trajectory] = {}
        refills, refilled = iter(group.refills), 0
        running = {self._tasks.create_task(self._attempt(way, spec)): spec for spec in group.specs}
        while running:
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(ended, key=lambda each: running[each].index):
                spec = running.pop(task)
                found[spec.id] = task.result()
            whole = group.size is not None and sum(t.fault is None for t in found.values()) >= group.size
            if whole:
                found |= await self._give_up(running)
                break
            lost = sum(map(_lost, found.values())) - refilled
            for fresh in itertools.islice(refills, lost):
                refilled += 1
                self._dispatch(fresh)
                running[self._tasks.create_task(self._attempt(way, fresh))] = fresh
        for spec in (*group.specs, *group.refills):
            del self._specs[spec.id]
        return tuple(found[spec.id] for spec in (*group.specs, *group.refills) if spec.id in found)

    async def _attempt(self, way: _Way, spec: AttemptSpec) -> Trajectory:
        loop, wait_s, name = asyncio.get_running_loop(), self.bounds.wait_s, spec.id
        acted = 0.0
        async with AsyncExitStack() as behind:
            expected = self.durations.expected(spec.task.id) or 0.0
            rolled: Rolled | Parked = Parked(spec)
            while isinstance(rolled, Parked):
                async with way.turn(rolled.spec), self.rolling.take(priority=expected, timeout_s=wait_s):
                    began = loop.time()
                    rolled = await way.roll(rolled.spec)
                    rolled_at = loop.time()
                    acted += rolled_at - began
                    if isinstance(rolled, Rolled):
                        await behind.enter_async_context(self.backlog.take(timeout_s=wait_s))
            backlog_s = loop.time() - rolled_at
            self.durations.record(spec.task.id, acted)
            waited = {"wait_place_s": rolled_at - self._asked[name] - acted, "wait_backlog_s": backlog_s}
            trajectory = await way.judge(rolled)
        waited["total_s"] = loop.time() - self._asked.pop(name)
        trajectory = replace(trajectory, cost={**trajectory.cost, **waited})
        self._emit(trajectory)
        return trajectory

    async def _give_up(self, running: dict[asyncio.Task[Trajectory], AttemptSpec]) -> dict[str, Trajectory]:
        """Cancel what is `running`, and empty it; the cancellations by attempt."""
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        found = {}
        for task, spec in running.items():
            if task.cancelled():
                spent = asyncio.get_running_loop().time() - self._asked.pop(spec.id)
                given_up = cancelled(spec, "enough of its group had ended", kind=SPARE)
                found[spec.id] = replace(given_up, cost={"total_s": spent})
                self._emit(found[spec.id])
            else:  # it had ended meanwhile
                found[spec.id] = task.result()
        running.clear()
        return found

    def _emit(self, trajectory: Trajectory) -> None:
        if trajectory.stop_reason == "cancelled":
            self._emissions.cancel(trajectory.id, trajectory.fault.message if trajectory.fault else "")
        else:
            self._emissions.end(trajectory.id)
        if self._on_done is None:
            return
        try:
            self._on_done(trajectory)
        except BaseException:
            # A receiver that is broken is not called again; its error is the one to see.
            self._on_done = None
            raise


def cancelled(spec: AttemptSpec, reason: str, *, kind: str = "Cancelled") -> Trajectory:
    """The record of an attempt that did not come to an end."""
    return Trajectory(
        id=spec.id,
        group_id=spec.group_id,
        task_id=spec.task.id,
        task_digest=spec.task.digest,
        turns=(),
        stop_reason="cancelled",
        fault=Fault(kind, reason),
        seed=spec.seed,
    )


def _lost(trajectory: Trajectory) -> bool:
    return trajectory.fault is not None and category_of(trajectory.fault.kind) == "infrastructure"
