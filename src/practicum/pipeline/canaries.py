"""Canaries in a run: known submissions judged again, so that a judge that changes underneath is noticed.

Owns: `CanaryGuard`, `admitted`, `read_again`; `suspect.json` in a run folder.
Invariant: verdicts are asked of the run's own worker, in line with its attempts, and an update is made of no batch
that a bad look had come before; what was collected since the last good look is marked durably before anybody is
told, and a resume sets it apart.
Must not know: what makes a verdict, training.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from practicum.errors import CanaryDeviated, StoreError, TaskError
from practicum.pipeline.orders import Judge
from practicum.pipeline.run import Run
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Verdict
from practicum.tasks.harbor import load_task
from practicum.trajectories.durable import write_atomic
from practicum.verification.calibration.canaries import KNOWN, Canary, deviation
from practicum.verification.fusion import unshaped

SUSPECT_FILE = "suspect.json"
EVENT = "canary_deviated"
_TOLD = 3  # deviations told in the error itself


@dataclass(frozen=True, slots=True)
class Deviation:
    """One canary, or task on disk, that is not as it was."""

    name: str
    said: str


def deviations(canaries: Sequence[Canary], verdicts: Sequence[Verdict]) -> list[Deviation]:
    """Those of `canaries` whose verdict is not the known one. Pure."""
    said = [(canary.name, deviation(canary, verdict)) for canary, verdict in zip(canaries, verdicts, strict=True)]
    return [Deviation(name, text) for name, text in said if text is not None]


@dataclass(frozen=True, slots=True)
class Admitted:
    """What a run knows of one of its tasks since admission: its digest, and what was judged then."""

    digest: str
    attempts: tuple[Trajectory, ...]

    def canaries(self, task: Task) -> list[Canary]:
        """The gold and the untouched state, to be judged by `task`, with the verdicts that they had."""
        return [
            Canary(f"{task.id} ({what})", task, a.submission, was.status, was.outcome, unshaped(task, was))
            for a in self.attempts
            if (was := a.verdict) is not None and a.submission is not None
            for what in ["gold" if was.passed else "untouched"]
        ]


def admitted(folder: RunFolder) -> dict[str, Admitted]:
    """The tasks that the run admitted, by id. Raises `StoreError`."""
    names = {row["task"] for row in folder.metrics() if row["kind"] == "admission" and row["admitted"]}
    attempts: dict[str, list[Trajectory]] = {}
    for trajectory in folder.store.read("admission"):
        if trajectory.task_id in names:
            attempts.setdefault(trajectory.task_id, []).append(replace(trajectory, turns=()))
    return {name: Admitted(each[0].task_digest, tuple(each)) for name, each in sorted(attempts.items())}


def read_again(known: Mapping[str, Admitted], tasks_folder: Path) -> tuple[dict[str, Task], list[Deviation]]:
    """Tasks as they stand on disk now, and those that are not what they were when they were admitted."""
    tasks: dict[str, Task] = {}
    found: list[Deviation] = []
    for name, was in known.items():
        try:
            task = load_task(tasks_folder / name)
        except TaskError as error:
            found.append(Deviation(name, f"its directory can no longer be used: {error.message}"))
            continue
        tasks[name] = task
        if task.digest != was.digest:
            found.append(Deviation(name, f"it changed on disk: admitted as {was.digest[:12]}, now {task.digest[:12]}"))
    return tasks, found


class CanaryGuard:
    """Looks at the canaries of one run: `ask` puts a look in line behind the orders sent so far, `hear` takes it.

    Before the tasks were admitted (`begin`), only the canaries that come with the package are looked at.
    """

    def __init__(self, run: Run, tasks_folder: Path) -> None:
        self._run = run
        self._tasks_folder = tasks_folder
        self._asked: dict[str, list[Canary]] = {}
        self._known: dict[str, Admitted] = {}

    def begin(self) -> None:
        """Admission is over: from here on, the run's own tasks are looked at too."""
        self._known = admitted(self._run.folder)

    def due(self, batch: int) -> bool:
        """Whether a look belongs between batch `batch` and its update. The last batch is looked at by the end."""
        every, made = self._run.config.verification.canary_every, batch + 1
        return every > 0 and made % every == 0 and made < self._run.config.rl.updates

    def check(self, name: str, *, update: int) -> None:
        """Look now. Raises `CanaryDeviated`."""
        self.ask(name)
        self.hear(name, update=update)

    def ask(self, name: str) -> None:
        """Have the known canaries judged, and gold and untouched state of some of the run's tasks, read anew."""
        run = self._run
        self._asked[name] = [*KNOWN, *self._own(name)]
        items = tuple((canary.task, canary.submission) for canary in self._asked[name])
        run.process.send(Judge(f"canary-{name}", items))

    def hear(self, name: str, *, update: int) -> None:
        """Take the answer to `ask`. Good: all up to `update` is trusted. Raises `CanaryDeviated` otherwise."""
        run, canaries = self._run, self._asked.pop(name)
        with run.meter.span("canaries"):
            judged = run.process.wait_judged(f"canary-{name}")
            _, found = read_again(self._known, self._tasks_folder)
        run.state.boxes_created += judged.boxes
        found += deviations(canaries, judged.verdicts)
        row: dict[str, Any] = {"kind": "canary", "update": max(update, 0), "look": name, "judged": len(canaries)}
        row |= {"deviations": [asdict(each) for each in found]}
        if found:
            _mark(run.folder, run.state.trusted, name, found)
            run.show(row)
            raise _error(run.folder, run.state.trusted, name, found)
        run.show(row)
        run.state.trusted = update

    def _own(self, name: str) -> list[Canary]:
        run = self._run
        rng = random.Random(f"canaries-{run.config.seed}-{name}")
        count = min(run.config.verification.canary_tasks, len(self._known))
        chosen = {task: self._known[task] for task in rng.sample(list(self._known), count)}
        tasks, _ = read_again(chosen, self._tasks_folder)  # what cannot be read is told by `hear`
        return [canary for task in tasks.values() for canary in chosen[task.id].canaries(task)]


def _mark(folder: RunFolder, trusted: int, look: str, found: Sequence[Deviation]) -> None:
    batches = [batch.path.name for batch in folder.store.batches() if batch.update > trusted]
    document = {"trusted": trusted, "look": look, "deviations": [asdict(each) for each in found], "batches": batches}
    write_atomic(folder.path / SUSPECT_FILE, json.dumps(document, indent=1).encode())
    folder.audit(EVENT, **document)


def _error(folder: RunFolder, trusted: int, look: str, found: Sequence[Deviation]) -> CanaryDeviated:
    told = "; ".join(f"{each.name}: {each.said}" for each in found[:_TOLD])
    more = f"; and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return CanaryDeviated(
        f"the judge is not what it was ({look}): {told}{more}. No further update was made; what was collected after "
        f"{f'update {trusted}' if trusted >= 0 else 'the start'} is marked as suspect and will not train",
        fix=f"restore what changed (`practicum verifier canary {folder.path}` looks again), then continue from what is "
        f"in no doubt: practicum train --resume {folder.path}",
    )


def suspect(folder: RunFolder) -> Mapping[str, Any] | None:
    """What a bad look left: `trusted`, the last update that is in no doubt, `deviations` and `batches`; or None."""
    path = folder.path / SUSPECT_FILE
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        return document | {"trusted": int(document["trusted"])}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


def forget_suspect(folder: RunFolder) -> None:
    """To be called once what was suspect has been set apart; the audit trail keeps the event."""
    (folder.path / SUSPECT_FILE).unlink(missing_ok=True)
