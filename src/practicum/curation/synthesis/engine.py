"""Trying candidates until there are enough tasks: strategies take turns, several candidates are tried at once.

Owns: `synthesise`, `Order`, `Made`.
Invariant: tasks are written as they come and candidates are never tried twice, so that a run that is stopped at any
moment goes on where it was; without a budget, what is made depends on project, strategies and seed alone.
Must not know: strategies, who prints the outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from practicum.curation.projects.measured import Measured
from practicum.curation.projects.project import Project
from practicum.curation.projects.steadiness import Sentinels, Survey, survey
from practicum.curation.projects.testbed import Testbed, open_testbed
from practicum.curation.synthesis.baseline import Baseline, baseline_of
from practicum.curation.synthesis.bench import Workbench
from practicum.curation.synthesis.journal import Entry, Journal
from practicum.curation.synthesis.line import Line
from practicum.curation.synthesis.proposing import open_proposer
from practicum.curation.synthesis.strategy import Candidate, Ground, Refusal, Settings, Strategy
from practicum.curation.synthesis.yields import Yield
from practicum.errors import TaskError
from practicum.records.task import Task
from practicum.sandboxes.contract import SandboxProvider
from practicum.tasks.harbor import save_task

OnTried = Callable[[Yield, Entry], None]
OnPhase = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """How much is asked for. `count` tasks of this project in all; `budget_s` of wall clock for this run, or none.

    `concurrent` runs of tests at once.
    """

    count: int
    budget_s: float | None = None
    concurrent: int = 2


@dataclass(frozen=True, slots=True)
class Made:
    """What there is after a run: ids of all tasks of the project, how many of them were there before, and the yield.

    `baseline` is None where the budget ended before it was known; `ended_while` says what the budget cut off.
    """

    tasks: tuple[str, ...]
    before: int
    result: Yield
    baseline: Baseline | None
    ended_while: str = ""


@dataclass(slots=True)
class _Phase:
    """What is being done, for who watches."""

    tell: OnPhase
    text: str = ""

    def begin(self, text: str) -> None:
        self.text = text
        self.tell(text)


async def synthesise(
    provider: SandboxProvider,
    project: Project,
    strategies: Sequence[Strategy],
    settings: Settings,
    order: Order,
    out: Path,
    *,
    on_tried: OnTried | None = None,
    on_phase: OnPhase = lambda phase: None,
) -> Made:
    """Make tasks from `project` below `out` until there are enough, the time is over, or nothing is left to try.

    The budget is of all that is done here; what was measured and tried when it ends is kept below `out`. `on_phase` is
    told what is begun. Raises `TaskError` where the project's tests cannot be relied on, and what making boxes and
    files raises.
    """
    result, phase = Yield(), _Phase(on_phase)
    journal, measured = Journal(out, project.digest), Measured(out, project.digest)
    result.before = before = len(journal.kept)
    baseline: Baseline | None = None
    async with open_testbed(provider, project, concurrent=order.concurrent) as testbed:
        try:
            async with asyncio.timeout(order.budget_s):
                found = await _measure(testbed, measured, result, phase)
                baseline = baseline_of(found)
                if not baseline.reach:
                    raise TaskError(f"{project.name}: its tests run no line of its sources")
                phase.begin("trying candidates")
                sentinels = Sentinels(provider, project, found, measured)
                bench = Workbench(Ground(project, baseline), testbed, settings, result.phases, sentinels)
                await _make(bench, journal, strategies, order, result, out, on_tried)
        except TimeoutError:
            return Made(journal.kept, before, result, baseline, phase.text)
    return Made(journal.kept, before, result, baseline)


async def _measure(testbed: Testbed, measured: Measured, result: Yield, phase: _Phase) -> Survey:
    # under one seed whatever that of the tasks is: who asks for other tasks has not to wait for it again
    with result.timed("baseline"):
        return await survey(testbed, measured=measured, tell=phase.begin)


async def _make(
    bench: Workbench,
    journal: Journal,
    strategies: Sequence[Strategy],
    order: Order,
    result: Yield,
    out: Path,
    on_tried: OnTried | None,
) -> None:
    def write(candidate: Candidate, made: Task | Refusal) -> Entry:
        if isinstance(made, Task):
            with result.timed("writing"):
                save_task(made, out / made.id)
        entry = _entry(bench.ground.project.digest, candidate, made)
        result.count(candidate.strategy, candidate.kind, reason=entry.reason, killed=entry.killed)
        if on_tried is not None:
            on_tried(result, entry)
        return entry

    count = order.concurrent + 1  # one more than there are boxes, so that none waits for the host
    line = Line(journal, order.count, count, [strategy.name for strategy in strategies], write)
    if line.enough:
        return
    try:
        async with asyncio.TaskGroup() as group:
            sources = [group.create_task(_propose(line, strategy, bench, result)) for strategy in strategies]
            workers = [group.create_task(_work(line, bench, strategies)) for _ in range(count)]
            await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            if not line.enough:  # nothing is left to try: the others finish what they have
                await asyncio.wait(workers)
            for task in (*sources, *workers):
                task.cancel()
    finally:  # what was in work when the time was over is tried again another time
        line.flush()


async def _propose(line: Line, strategy: Strategy, bench: Workbench, result: Yield) -> None:
    seconds = 0.0
    async with open_proposer(strategy, bench.ground, bench.settings.seed, line.journal.tried) as ask:
        while True:
            candidate, spent = await ask()
            result.phases["proposing"] = result.phases.get("proposing", 0.0) + spent - seconds
            seconds = spent
            await line.put(strategy.name, candidate)
            if candidate is None:
                return


async def _work(line: Line, bench: Workbench, strategies: Sequence[Strategy]) -> None:
    by_name = {strategy.name: strategy for strategy in strategies}
    while (seat := await line.take()) is not None:
        line.tell(seat, await by_name[seat.candidate.strategy].realise(bench, seat.candidate))


def _entry(project: str, candidate: Candidate, made: Task | Refusal) -> Entry:
    if isinstance(made, Refusal):
        return Entry(
            project, candidate.key, candidate.strategy, candidate.kind, "", made.reason, made.detail, made.killed
        )
    return Entry(project, candidate.key, candidate.strategy, candidate.kind, made.id, killed=True)
