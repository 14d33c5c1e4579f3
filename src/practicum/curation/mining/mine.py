"""The walk through a history: which commits are tried, what came of each, and going on where it was left.

Owns: `mine`, `Yield`.
Invariant: what came of a commit is written down before the next is counted, so that a second run goes on from there and
comes to the same set; with as many tries at once as asked for, tasks are counted in the order of commits.
Must not know: how a commit is tried.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from practicum.curation.mining.digging import VERSION, Dig
from practicum.curation.mining.prospects import Refused, looked_at
from practicum.errors import SandboxError, TaskError, VerifierError
from practicum.records.task import Task
from practicum.records.tree import digest_of
from practicum.tasks.harbor import save_task
from practicum.tasks.repositories import Commit, Repository

STATE = ".practicum"
_JOURNAL = "mining.jsonl"
HOST = "the host kept it from being tried"
_MOST_FAULTS = 3  # in a row, before it is the host that must be looked at
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[\d:]+Z?)?")


_Known = Refused | str  # why a commit became no task, or the id of its task
_Trial = asyncio.Task[Task | Refused | None]


@dataclass(slots=True)
class Yield:
    """What came of a walk. `commits` were looked at, `candidates` of them change sources and tests."""

    commits: int = 0
    candidates: int = 0
    tasks: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    from_journal: int = 0
    stopped: str = ""  # why before the end of the history: "limit", "budget" or nothing


async def mine(
    dig: Dig,
    out: Path,
    *,
    limit: int = 20,
    since: str | None = None,
    budget_s: float | None = None,
    concurrent: int = 2,
    on_done: Callable[[Commit, str], None] | None = None,
) -> Yield:
    """Write tasks of the newest commits below `out` until there are `limit`, or `budget_s` of wall time have passed.

    `since` is a commit (it and what came before it is left out) or a date (ISO 8601). What was found out before, by
    this generator with these settings, is taken from the journal in `out`. Raises what `Dig.try_out` raises, but for
    single faults of the host.
    """
    count = _Count(out, Journal(out, dig), on_done)
    found = count.found
    start = time.monotonic()
    running: deque[tuple[Commit, _Known | _Trial]] = deque()
    permits = asyncio.Semaphore(concurrent)

    def spent() -> bool:
        return budget_s is not None and time.monotonic() - start > budget_s

    async def tried(commit: Commit) -> Task | Refused | None:
        async with permits:
            return None if spent() else await dig.try_out(commit)

    try:
        for commit in _walk(dig.repository, since):
            found.commits += 1
            worth = looked_at(commit)
            if worth is False:
                continue
            known = worth if isinstance(worth, Refused) else count.journal.outcome(commit)
            if known is None and spent():
                found.stopped = "budget"
                break
            running.append((commit, known if known is not None else asyncio.create_task(tried(commit))))
            while running and (len(running) > 2 * concurrent or not isinstance(running[0][1], asyncio.Task)):
                if len(found.tasks) < limit:
                    await count.settle(*running.popleft())
                else:
                    break
            if len(found.tasks) >= limit:
                break
        while running and len(found.tasks) < limit:
            await count.settle(*running.popleft())
        found.stopped = found.stopped or ("limit" if len(found.tasks) >= limit else "")
    finally:
        left = [what for _, what in running if isinstance(what, asyncio.Task)]
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
    return found


@dataclass(slots=True)
class _Count:
    """Counts what came of commits, in their order, after writing it down."""

    out: Path
    journal: Journal
    on_done: Callable[[Commit, str], None] | None
    found: Yield = field(default_factory=Yield)
    faults: int = 0  # of the host, in a row

    async def settle(self, commit: Commit, what: _Known | _Trial) -> None:
        """Wait for one commit's outcome and count it; None is one that was not begun in time."""
        outcome: Task | Refused | str | None
        found, tried = self.found, isinstance(what, asyncio.Task)
        try:
            outcome = await what if isinstance(what, asyncio.Task) else what
            self.faults = 0
        except (SandboxError, VerifierError) as error:
            self.faults += 1
            if self.faults > _MOST_FAULTS or error.category == "data":
                raise
            outcome = Refused(HOST, str(error))  # not the commit's doing: another run tries it again
        if outcome is None:
            found.stopped = "budget"
            return
        if isinstance(outcome, Task):
            outcome = _written(outcome, self.out)
        if tried and not (isinstance(outcome, Refused) and outcome.reason == HOST):
            self.journal.add(commit, outcome)
        found.candidates += 1
        found.from_journal += not tried and not isinstance(looked_at(commit), Refused)
        if isinstance(outcome, str):
            found.tasks.append(outcome)
        else:
            found.refused[outcome.reason] += 1
        if self.on_done is not None:
            self.on_done(commit, outcome if isinstance(outcome, str) else outcome.reason)


def _walk(repository: Repository, since: str | None) -> Iterator[Commit]:
    if since is None:
        yield from repository.commits()
    elif _DATE.fullmatch(since):
        yield from (commit for commit in repository.commits() if commit.authored >= since)
    else:
        older = {commit.sha for commit in repository.commits(since, merges=True)}
        yield from (commit for commit in repository.commits() if commit.sha not in older)


def _written(task: Task, out: Path) -> str | Refused:
    try:
        save_task(task, out / task.id)
    except TaskError as error:
        return Refused("its task cannot be written", error.message)
    return task.id


class Journal:
    """What came of commits, a JSON line each, in the hidden folder of the task set."""

    def __init__(self, out: Path, dig: Dig) -> None:
        self._out = out
        self._path = out / STATE / _JOURNAL
        layer = dig.layer if isinstance(dig.layer, str) else dig.layer.digest
        self._settings = [VERSION, dig.name, layer, dig.allow_unlicensed, dig.seed, dig.suite_s]
        self._known: dict[str, dict[str, Any]] = {}
        if self._path.is_file():
            for line in self._path.read_text("utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # cut off when the run was ended
                self._known[str(entry.get("key"))] = entry

    def _key(self, commit: Commit) -> str:
        return digest_of([commit.sha, *self._settings])

    def outcome(self, commit: Commit) -> str | Refused | None:
        """The task's id or the reason; None where it is not known, or the task is gone."""
        entry = self._known.get(self._key(commit))
        if entry is None:
            return None
        if entry["task"]:
            return str(entry["task"]) if (self._out / entry["task"] / "task.toml").is_file() else None
        return Refused(str(entry["reason"]), str(entry["detail"]))

    def add(self, commit: Commit, outcome: str | Refused) -> None:
        """Write down what came of a commit."""
        entry: dict[str, Any] = {"key": self._key(commit), "commit": commit.sha, "task": "", "reason": "", "detail": ""}
        if isinstance(outcome, str):
            entry["task"] = outcome
        else:
            entry |= {"reason": outcome.reason, "detail": outcome.detail}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, sort_keys=True) + "\n")
