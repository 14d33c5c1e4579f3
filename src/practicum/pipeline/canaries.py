"""Canaries in a run: known submissions judged again, so that a judge that changes underneath is noticed.

Owns: `CanaryGuard`, `admitted`, `read_again`; `suspect.json` in a run folder.
Invariant: verdicts are asked of the run's own worker, in line with its attempts, and an update is made of no batch
that a bad look had come before; what was collected since the last good look is marked durably before anybody is
told, and a resume sets it apart. Where verdicts on some task's own canaries deviate and all others hold, the task is
to blame, not the judge: it goes to quarantine, and the run goes on.
Must not know: what makes a verdict, training.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from practicum.curation.drift import Suspicion, blame, gold_lost
from practicum.errors import CanaryDeviated, StoreError, TaskError
from practicum.pipeline.orders import Judge
from practicum.pipeline.quarantine import Quarantine
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
_CONTROLS = 4  # other tasks that are looked at where a task's own canaries deviate


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

    def __init__(self, run: Run, tasks_folder: Path, quarantine: Quarantine) -> None:
        self._run = run
        self._tasks_folder = tasks_folder
        self._quarantine = quarantine
        self._asked: dict[str, list[Canary]] = {}
        self._known: dict[str, Admitted] = {}
        self._parked: set[str] = set()

    def begin(self) -> None:
        """Admission is over: from here on, the run's own tasks are looked at too."""
        self._known = admitted(self._run.folder)
        self._quarantine.begin({name: known.attempts for name, known in self._known.items()})

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
        self._asked[name] = [*KNOWN, *self._own(name)]
        self._send(f"canary-{name}", self._asked[name])

    def hear(self, name: str, *, update: int) -> None:
        """Take the answer to `ask`. Good: all up to `update` is trusted.

        Raises `CanaryDeviated` where the judge is not what it was, or what stands on disk; `WentBack` or `TaskError`
        where tasks are to blame and the run cannot just go on without them.
        """
        run, canaries = self._run, self._asked.pop(name)
        verdicts = self._take(f"canary-{name}")
        _, found = read_again(self._known, self._tasks_folder)
        own = _by_task(canaries[len(KNOWN) :], verdicts[len(KNOWN) :])
        deviating = {task: said for task, said in own.items() if said}
        found += deviations(canaries, verdicts)
        row: dict[str, Any] = {"kind": "canary", "update": max(update, 0), "look": name, "judged": len(canaries)}
        row |= {"deviations": [asdict(each) for each in found]}
        lost: list[Suspicion] = []
        if deviating and len(found) == sum(map(len, deviating.values())):  # nothing else deviates
            lost = self._blamed(name, own)
        run.show(row | {"blamed": [each.task for each in lost]})
        if found and not lost:
            _mark(run.folder, run.state.trusted, name, found)
            raise _error(run.folder, run.state.trusted, name, found)
        if lost:
            self._quarantine.lost(lost, lambda task: _mark(run.folder, run.state.trusted, name, found, task=task))
        run.state.trusted = update

    def _blamed(self, name: str, own: Mapping[str, Sequence[str]]) -> list[Suspicion]:
        """Look again, at others too: the tasks that are to blame, or none where it may be the judge."""
        deviating = sorted(task for task, said in own.items() if said)
        rng = random.Random(f"controls-{self._run.config.seed}-{name}")
        others = [task for task in self._open() if task not in own]
        chosen = deviating + sorted(rng.sample(others, min(_CONTROLS, len(others))))
        canaries = self._canaries(chosen)
        self._send(f"canary-{name}-again", [*KNOWN, *canaries])
        verdicts = self._take(f"canary-{name}-again")
        known_hold = not deviations(KNOWN, verdicts[: len(KNOWN)])
        again = _by_task(canaries, verdicts[len(KNOWN) :])
        bad = sorted({*deviating, *(task for task, said in again.items() if said)})
        holding = sorted({*own, *again} - set(bad))
        if blame(bad, holding, known_hold=known_hold) == "judge":
            return []
        said = {task: [*own.get(task, ()), *again.get(task, ())] for task in bad}
        return [
            gold_lost(task, list(dict.fromkeys(said[task])), again=bool(again.get(task)), holding=len(holding))
            for task in bad
        ]

    def _send(self, order: str, canaries: Sequence[Canary]) -> None:
        self._run.process.send(Judge(order, tuple((canary.task, canary.submission) for canary in canaries)))

    def _take(self, order: str) -> tuple[Verdict, ...]:
        with self._run.meter.span("canaries"):
            judged = self._run.process.wait_judged(order)
        self._run.state.boxes_created += judged.boxes
        return judged.verdicts

    def _open(self) -> list[str]:
        """The tasks that were admitted and are not quarantined."""
        return [task for task in self._known if task not in self._quarantine.names]

    def _own(self, name: str) -> list[Canary]:
        """Of some tasks drawn by chance; and of those that were parked since: impossible, or no longer possible?"""
        run, known = self._run, self._open()
        most = run.config.verification.canary_tasks
        rng = random.Random(f"canaries-{run.config.seed}-{name}")
        chosen = rng.sample(known, min(most, len(known)))
        beliefs = run.state.sampler.beliefs
        parked = [task for task in known if task in beliefs and beliefs[task].standing == "parked"]
        fresh = [task for task in parked if task not in self._parked and task not in chosen][:most]
        self._parked |= {*fresh, *chosen}.intersection(parked)
        return self._canaries([*chosen, *fresh])

    def _canaries(self, names: Sequence[str]) -> list[Canary]:
        tasks, _ = read_again({name: self._known[name] for name in names}, self._tasks_folder)  # `hear` tells the rest
        return [canary for task in tasks.values() for canary in self._known[task.id].canaries(task)]


def _by_task(canaries: Sequence[Canary], verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """What deviates, by task: nothing where all hold."""
    said: dict[str, list[str]] = {canary.task.id: [] for canary in canaries}
    for canary, verdict in zip(canaries, verdicts, strict=True):
        if (text := deviation(canary, verdict)) is not None:
            said[canary.task.id].append(f"{canary.name}: {text}")
    return said


def _mark(folder: RunFolder, trusted: int, look: str, found: Sequence[Deviation], *, task: str | None = None) -> None:
    """Make durable that what came after `trusted` is in doubt: because of the judge, or of `task` alone."""
    batches = [batch.path.name for batch in folder.store.batches() if batch.update > trusted]
    document = {"trusted": trusted, "look": look, "deviations": [asdict(each) for each in found], "batches": batches}
    write_atomic(folder.path / SUSPECT_FILE, json.dumps(document | {"task": task}, indent=1).encode())
    if task is None:
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
