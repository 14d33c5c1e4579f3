"""Many attempts at once, each reported exactly once.

Owns: `run_attempts`.
Invariant: every attempt that was asked for leaves once: as the trajectory it came to, or as a cancellation with a
reason. At most `max_concurrent` run at a time.
Must not know: what an attempt does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from practicum.errors import PracticumError
from practicum.records.trajectory import Fault, Trajectory
from practicum.rollouts.attempt import AttemptSpec

RunOne = Callable[[AttemptSpec], Awaitable[Trajectory]]
OnDone = Callable[[Trajectory], None]


async def run_attempts(
    specs: Sequence[AttemptSpec], run: RunOne, *, max_concurrent: int, on_done: OnDone | None = None
) -> list[Trajectory]:
    """Trajectories in the order of `specs`; `run` is `run_attempt` with its parts bound.

    `on_done` gets each as it ends. When the call is cancelled, or `run` or `on_done` raises, all that have not
    ended are reported as cancelled before the error goes on; a lone `PracticumError` goes on as itself.
    Raises `ValueError` where two specs have one id.
    """
    if len({spec.id for spec in specs}) != len(specs):
        raise ValueError("two attempts have the same id")
    if max_concurrent < 1:
        raise ValueError(f"max_concurrent is {max_concurrent}; at least one attempt must run")
    report = _Report(specs, on_done)
    permits = asyncio.Semaphore(max_concurrent)

    async def one(position: int) -> None:
        async with permits:
            report.emit(position, await run(specs[position]))

    reason = "the run was cancelled"
    try:
        async with asyncio.TaskGroup() as group:
            for position in range(len(specs)):
                group.create_task(one(position))
    except BaseExceptionGroup as errors:
        first = errors.exceptions[0]
        reason = f"{type(first).__name__}: {first}"
        if len(errors.exceptions) == 1 and isinstance(first, PracticumError):
            raise first from None
        raise
    finally:
        report.cancel_rest(reason)
    return report.all()


def cancelled(spec: AttemptSpec, reason: str) -> Trajectory:
    """The record of an attempt that did not come to an end."""
    return Trajectory(
        id=spec.id,
        group_id=spec.group_id,
        task_id=spec.task.id,
        task_digest=spec.task.digest,
        turns=(),
        stop_reason="cancelled",
        fault=Fault("Cancelled", reason),
        seed=spec.seed,
    )


class _Report:
    """Which attempts have left. One terminal state each: the second emission of a position is a bug and raises."""

    def __init__(self, specs: Sequence[AttemptSpec], on_done: OnDone | None) -> None:
        self._specs = specs
        self._on_done = on_done
        self._done: dict[int, Trajectory] = {}

    def emit(self, position: int, trajectory: Trajectory) -> None:
        if position in self._done:
            raise RuntimeError(f"attempt {self._specs[position].id} was reported twice")
        self._done[position] = trajectory
        if self._on_done is None:
            return
        try:
            self._on_done(trajectory)
        except BaseException:
            # A receiver that is broken is not called again; its error is the one to see.
            self._on_done = None
            raise

    def cancel_rest(self, reason: str) -> None:
        for position, spec in enumerate(self._specs):
            if position not in self._done:
                self.emit(position, cancelled(spec, reason))

    def all(self) -> list[Trajectory]:
        return [self._done[position] for position in range(len(self._specs))]
