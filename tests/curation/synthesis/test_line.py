"""Strategies take turns, whatever is fast or slow."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from practicum.curation.synthesis.journal import Entry, Journal
from practicum.curation.synthesis.line import Line, Outcome
from practicum.curation.synthesis.strategy import Candidate, Refusal
from practicum.records.task import Task, Verification

# how many candidates there are, and of how many the last becomes a task
STRATEGIES = {"common": (40, 1), "rare": (60, 3), "never": (30, 99), "few": (2, 1)}


def _outcome(candidate: Candidate) -> Outcome:
    number = int(candidate.provenance["number"])
    if number % STRATEGIES[candidate.strategy][1]:
        return Refusal("survived")
    return Task(f"{candidate.strategy}-{number}", "", {}, Verification("pytest", {}))


class Run:
    """One run of the line whose delays are drawn by `pace`."""

    def __init__(self, out: Path, count: int, pace: int, slow: str = "", tries: int | None = None) -> None:
        self.rng = random.Random(pace)
        self.slow = slow
        self.tries = tries
        self.tried = 0
        self.journal = Journal(out, "p")
        self.line = Line(self.journal, count, 3, list(STRATEGIES), self.write)

    def write(self, candidate: Candidate, outcome: Outcome) -> Entry:
        task = outcome.id if isinstance(outcome, Task) else ""
        return Entry("p", candidate.key, candidate.strategy, "k", task, "" if task else "survived")

    async def propose(self, name: str) -> None:
        for number in range(1, STRATEGIES[name][0] + 1):
            candidate = Candidate(name, "k", {}, {}, {"number": number})
            await asyncio.sleep(self.rng.random() / (50 if name == self.slow else 5000))
            if candidate.key not in self.journal.tried:
                await self.line.put(name, candidate)
        await self.line.put(name, None)

    async def work(self) -> None:
        while (seat := await self.line.take()) is not None:
            await asyncio.sleep(self.rng.random() / 2000)
            if self.tries is not None and self.tried >= self.tries:
                return
            self.tried += 1
            self.line.tell(seat, _outcome(seat.candidate))

    async def go(self) -> tuple[str, ...]:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            sources = [group.create_task(self.propose(name)) for name in STRATEGIES]
            await asyncio.gather(*(group.create_task(self.work()) for _ in range(3)))
            for source in sources:
                source.cancel()
        self.line.flush()
        return self.journal.kept


@pytest.mark.parametrize(("pace", "slow"), [(1, ""), (2, ""), (3, "common"), (4, "rare"), (5, "few")])
def test_what_is_made_does_not_depend_on_speed(tmp_path: Path, pace: int, slow: str) -> None:
    """The same candidates give the same tasks in the same order; every strategy that can has its share."""
    usual = asyncio.run(Run(tmp_path / "usual", 12, 0).go())
    other = Run(tmp_path / "other", 12, pace, slow)
    assert asyncio.run(other.go()) == usual
    shares = Counter(task.partition("-")[0] for task in usual)
    assert shares == {"common": 5, "rare": 5, "few": 2}
    assert other.tried <= len(other.journal.tried) + 3 + 2 * 3  # little was tried for nothing


def test_all_is_tried_where_there_is_not_enough(tmp_path: Path) -> None:
    """Where nothing is left, everyone stops, and all that can be a task is one."""
    run = Run(tmp_path, 1000, 7)
    assert len(asyncio.run(run.go())) == 40 + 20 + 2
    assert len(run.journal.tried) == sum(count for count, _ in STRATEGIES.values())


def test_a_stopped_run_loses_nothing_that_was_tried(tmp_path: Path) -> None:
    """What was known when a run stopped is written down, and the next one goes on with whose turn it is."""
    first = Run(tmp_path, 12, 3, tries=15)
    before = asyncio.run(first.go())
    assert len(first.journal.tried) == 15
    after = asyncio.run(Run(tmp_path, 12, 4).go())
    assert after[: len(before)] == before
    assert len(after) == 12
    assert max(Counter(task.partition("-")[0] for task in after).values()) <= 6
