"""Canaries by hand: the package's own, and those of a run or a task set.

Owns: `Inspection`, `inspect`.
Invariant: a run is read and never written; its tasks are judged as they stand on disk now, against the verdicts that
admitted them.
Must not know: who asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from practicum.curation.admission import check_tasks
from practicum.errors import ConfigError
from practicum.pipeline.canaries import Deviation, admitted, deviations, read_again
from practicum.pipeline.execute import open_workshop
from practicum.pipeline.judging import open_judge
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task
from practicum.tasks.taskset import load_taskset
from practicum.verification.calibration.canaries import KNOWN, Canary
from practicum.verification.judging import judge_all


class Counter(Protocol):
    """Told of each verdict."""

    def advance(self, note: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one look came to. `tasks` were read again from disk; `unscorable` verdicts decided nothing."""

    judged: int
    tasks: int
    deviations: tuple[Deviation, ...]
    unscorable: int
    verifier_version: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "good": not self.deviations}


async def inspect(where: Path | None, *, most: int | None, seed: int, progress: Callable[[int], Counter]) -> Inspection:
    """Judge the known canaries, and those of the run or task set at `where`: all its tasks, or `most` of them.

    Raises `ConfigError` where a run has admitted no task, and `TaskError` for a task set that cannot be used.
    """
    canaries: list[Canary] = list(KNOWN)
    found: list[Deviation] = []
    read, judge_seed = 0, 0
    tasks: list[Task] = []
    if where is not None and (where / "config.toml").is_file():
        with RunFolder.open(where) as folder:
            known, judge_seed = admitted(folder), folder.config.seed
        if not known:
            raise ConfigError(f"{where} has admitted no task yet", fix="leave it out to look at the known canaries")
        again, found = read_again(known, where / "tasks")
        read = len(known)
        canaries += [
            canary for name in _some(sorted(again), most, seed) for canary in known[name].canaries(again[name])
        ]
    elif where is not None:
        by_id = {task.id: task for task in load_taskset(where)}
        tasks, read = [by_id[name] for name in _some(sorted(by_id), most, seed)], len(by_id)
    counter = progress(len(canaries) + 2 * len(tasks))
    async with open_judge(seed=judge_seed) as bench:
        items = [(canary.task, canary.submission) for canary in canaries]
        verdicts = await judge_all(bench.verifier, items, on_done=lambda _: counter.advance())
        version = bench.verifier.version
    found += deviations(canaries, verdicts)
    unscorable = sum(verdict.status == "unscorable" for verdict in verdicts)
    if tasks:
        async with open_workshop() as workshop:
            admissions = await check_tasks(workshop, tasks, on_done=lambda _: counter.advance())
        found += [Deviation(each.task.id, each.reason or "") for each in admissions if not each.admitted]
        unscorable += sum(each.unscorable for each in admissions)
    return Inspection(len(canaries) + 2 * len(tasks), read, tuple(found), unscorable, version)


def _some(names: Sequence[str], most: int | None, seed: int) -> list[str]:
    if most is None or most >= len(names):
        return list(names)
    return random.Random(f"inspection-{seed}").sample(list(names), most)
