"""Measuring difficulty: attempts of reference policies at tasks, counted where others can read it.

Owns: `Reference`, `measure`, `golds`.
Invariant: only what is missing is attempted, each attempt with a seed of its own; what was judged before an
interruption is kept. An attempt that was cancelled is not counted at all.
Must not know: which policies there are, what is made of the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from practicum.curation.difficulty import Measured, append_measured, read_difficulty
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.tree import Change
from practicum.rollouts.agents import Agent, oracle_agent
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.workshop import Workshop, run_specs, specs_for

OnDone = Callable[[Trajectory], None]


@dataclass(frozen=True, slots=True)
class Reference:
    """A policy that difficulty is measured by: `name` and `version` say which, whoever asks."""

    name: str
    version: str
    agent: Agent

    @property
    def harness(self) -> dict[str, Any]:
        """By what loop, with what budgets, it works: attempts under others are not counted together."""
        return {"loop": "built-in", "temperature": self.agent.temperature, **asdict(self.agent.budgets)}


class _Book:
    """Counts attempts of one policy by task, and writes a task's row when all that were asked have ended."""

    def __init__(self, path: Path, missing: Mapping[str, Measured], asked: Mapping[str, int]) -> None:
        self._path = path
        self._rows = dict(missing)
        self._left = dict(asked)

    def take(self, trajectory: Trajectory) -> None:
        digest = trajectory.task_digest
        self._rows[digest] = _counted(self._rows[digest], trajectory)
        self._left[digest] -= 1
        if self._left[digest] == 0 and self._rows[digest].attempts:
            date = datetime.now(UTC).isoformat(timespec="seconds")
            append_measured(self._path, replace(self._rows[digest], date=date))


async def measure(
    workshop: Workshop,
    reference: Reference,
    tasks: Sequence[Task],
    path: Path,
    *,
    samples: int,
    seed: int = 0,
    on_done: OnDone | None = None,
) -> None:
    """Attempt `tasks` until each has `samples` attempts of `reference` that were judged, and add the counts to `path`.

    Attempts that met a fault are tried again by the next call, not by this one; verdicts that blame the task are not.
    Raises `StoreError`; what was counted before is then kept.
    """
    todo = missing(read_difficulty(path), reference, tasks, samples=samples, seed=seed)
    rows = {spec.task.digest: _empty(spec, reference) for spec in reversed(todo)}
    asked: dict[str, int] = {}
    for spec in todo:
        asked[spec.task.digest] = asked.get(spec.task.digest, 0) + 1
    book = _Book(path, rows, asked)

    def done(trajectory: Trajectory) -> None:
        book.take(trajectory)
        if on_done is not None:
            on_done(trajectory)

    await run_specs(workshop, reference.agent, todo, on_done=done)


def missing(
    known: Mapping[str, Sequence[Measured]], reference: Reference, tasks: Sequence[Task], *, samples: int, seed: int
) -> list[AttemptSpec]:
    """The attempts that are still to be made, each task's with seeds that were not used on it yet. Pure."""
    todo: list[AttemptSpec] = []
    for task in {task.digest: task for task in tasks}.values():
        wanted = Measured(task.digest, task.id, reference.name, reference.version, reference.harness)
        have = next((each for each in known.get(task.digest, ()) if each.key == wanted.key), wanted)
        first, rest = have.attempts, samples - have.judged - have.invalid
        for spec in specs_for([task], reference.agent, samples=max(0, rest)):
            todo.append(replace(spec, index=first + spec.index, seed=seed + first + spec.index))
    return todo


async def golds(workshop: Workshop, tasks: Sequence[Task]) -> dict[str, tuple[Change, ...]]:
    """What the solution of each task changes, by task id, carried out in boxes; left out where that met a fault."""
    agent = oracle_agent()
    specs = [replace(spec, judged=False) for spec in specs_for([task for task in tasks if task.solution], agent)]
    attempts = await run_specs(workshop, agent, specs)
    return {a.task_id: a.submission.changes for a in attempts if a.fault is None and a.submission is not None}


def _empty(spec: AttemptSpec, reference: Reference) -> Measured:
    task = spec.task
    return Measured(task.digest, task.id, reference.name, reference.version, reference.harness, seed=spec.seed)


def _counted(row: Measured, trajectory: Trajectory) -> Measured:
    verdict = trajectory.verdict
    if trajectory.fault is not None:
        return row if trajectory.fault.kind == "Cancelled" else replace(row, unscorable=row.unscorable + 1)
    if verdict is None or verdict.status == "unscorable":
        return replace(row, unscorable=row.unscorable + 1)
    if verdict.status == "invalid":
        return replace(row, invalid=row.invalid + 1)
    return replace(row, judged=row.judged + 1, passed=row.passed + verdict.passed)
