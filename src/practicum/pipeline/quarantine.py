"""Feedback from training to tasks: those that outcomes speak against leave the run by themselves.

Owns: `Quarantine`, `WentBack`, `recorded`; the event `task_quarantined` in a run's audit trail.
Invariant: a decision is on disk before it acts, and says from which batch on; so a resumed run acts as the unbroken
one did. From that batch on no attempt at the task trains, and no new one is drawn. Where attempts had trained whose
task is found broken since the last good look, the run goes back to the version that is in no doubt.
Must not know: the rules, how weights are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from practicum.curation.drift import Suspicion, Tally, faulty, hacked, ruled_wrong, tally
from practicum.curation.ledger import ledger_path, record
from practicum.curation.release import release_of
from practicum.errors import PracticumError, TaskError
from practicum.pipeline.run import Run
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.spotchecks import rulings
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.tasks.sampler import withdraw
from practicum.trajectories.chain import entries
from practicum.verification.calibration.sampling import reliability

EVENT = "task_quarantined"
SET_APART = "suspect_set_apart"
Event = Mapping[str, Any]


class WentBack(Exception):
    """Raised to leave the loop: the run is to continue from version `trusted`, as a resume would."""

    def __init__(self, task: str, trusted: int) -> None:
        super().__init__(task, trusted)
        self.task, self.trusted = task, trusted


def recorded(folder: RunFolder) -> dict[str, Event]:
    """The quarantines that count, by task id. What the judge said while it was in doubt itself does not."""
    found: dict[str, Event] = {}
    for entry in entries(folder.audit_path):
        data = entry["data"]
        if entry["event"] == EVENT:
            found.setdefault(data["task"], data)
        elif entry["event"] == SET_APART and data.get("task") is None:
            found = {task: each for task, each in found.items() if each["from_batch"] <= data["trusted"]}
    return found


class Quarantine:
    """The quarantine of one run: `begin` once tasks are admitted, `weigh` each batch before its update."""

    def __init__(self, run: Run, tasks: Sequence[Task]) -> None:
        self._run = run
        self._tasks = {task.id: task for task in tasks}
        self._events: dict[str, Event] = recorded(run.folder)
        self._trust: dict[str, float] = {}

    @property
    def names(self) -> set[str]:
        """Every task that was set aside, also where that acts from a later batch on."""
        return set(self._events)

    def begin(self, golds: Mapping[str, Sequence[Trajectory]]) -> None:
        """`golds` are the attempts of admission by task. What people ruled meanwhile counts from the next batch on."""
        for task, attempts in golds.items():
            trusts = [reliability(a.verdict) for a in attempts if a.verdict is not None and a.verdict.passed]
            self._trust[task] = max(trusts, default=1.0)
        for suspicion in ruled_wrong(rulings(self._run.folder).values()):
            self._record(suspicion, self._run.state.version)
        self._check_left()

    def weigh(self, batch: int, trajectories: Sequence[Trajectory]) -> None:
        """Count what `batch` came to, and let act what is decided from it on. Raises `TaskError` if no task is left."""
        state = self._run.state
        fresh = tally(trajectories, self._trust)
        for task, each in sorted(fresh.items()):
            state.tallies[task] = state.tallies.get(task, Tally()) + each
        standing = {task: each for task, each in state.tallies.items() if task not in state.sampler.withdrawn}
        for task, now in sorted(fresh.items()):
            if task not in self._events and task in standing:
                suspicion = faulty(task, standing) or hacked(task, now, standing)
                if suspicion is not None:
                    self._record(suspicion, batch)
        for task, event in sorted(self._events.items()):
            if event["from_batch"] <= batch and task not in state.sampler.withdrawn:
                masked = sum(t.task_id == task and t.reward is not None for t in trajectories)
                row = {"kind": "quarantine", "update": batch + 1, "masked": masked}
                self._run.show(row | {name: event[name] for name in ("task", "rule", "reason")})
                state.sampler = withdraw(state.sampler, [task])
        self._check_left()

    def kept(self, trajectories: Iterable[Trajectory]) -> list[Trajectory]:
        """Those that may train."""
        return [t for t in trajectories if t.task_id not in self._run.state.sampler.withdrawn]

    def lost(self, suspicions: Sequence[Suspicion], mark: Callable[[str], None]) -> None:
        """Tasks whose gold does not hold any more. Raises `WentBack` where one had trained since the last good look.

        `mark(task)` makes the way back durable, before the decision is recorded.
        """
        state = self._run.state
        tainted = [each for each in suspicions if self._trained(each.task)]
        if tainted:
            mark(tainted[0].task)
        for each in suspicions:
            self._record(each, state.trusted if tainted else state.version)
        self._check_left()
        if tainted:
            raise WentBack(tainted[0].task, state.trusted)

    def _trained(self, task: str) -> int:
        """Judged attempts at `task` that trained after the last version that is in no doubt."""
        state, store = self._run.state, self._run.folder.store
        if task in state.sampler.withdrawn:
            return 0
        since = [batch for batch in store.batches("rl") if state.trusted < batch.update <= state.version]
        return sum(t.task_id == task and t.reward is not None for batch in since for t in store.load(batch))

    def _record(self, suspicion: Suspicion, from_batch: int) -> None:
        task = self._tasks.get(suspicion.task)
        if task is None or suspicion.task in self._events:
            return
        run = self._run
        event: dict[str, Any] = {"task": task.id, "digest": task.digest, "split": task.split, "rule": suspicion.rule}
        event |= {"reason": suspicion.reason, "evidence": dict(suspicion.evidence), "from_batch": from_batch}
        run.folder.audit(EVENT, **event)
        self._events[task.id] = event
        run.console.note(f"task {task.id} is quarantined: {suspicion.reason}")
        self._tell_taskset(task, event)

    def _tell_taskset(self, task: Task, event: Event) -> None:
        """Write the decision into the ledger of the task set that the run's tasks came from, where there is one."""
        run = self._run
        if run.config.tasks.path is None:
            return
        path = Path(run.config.tasks.path)
        try:
            release = release_of(path)
            ledger = ledger_path(release.path if release else path)
            if ledger.is_file():
                record(
                    ledger,
                    actor=f"run:{run.folder.id}",
                    task_id=task.id,
                    digest=task.content,
                    stage="quarantined",
                    reason=event["reason"],
                    evidence={"run": run.folder.id, "rule": event["rule"], **event["evidence"]},
                )
        except PracticumError as error:  # the run's own record has it; a set that cannot be written does not end it
            run.folder.audit("ledger_not_told", task=task.id, path=str(path), reason=error.message)
            run.console.note(f"the ledger of the task set was not told about {task.id}: {error.message}")

    def _check_left(self) -> None:
        for split, members in self._run.tasks.items():
            if members and all(task.id in self._events for task in members):
                last = self._events[members[-1].id]
                raise TaskError(
                    f"every task of split {split!r} is quarantined ({len(members)}), so the run cannot go on; the last "
                    f"was {last['task']}: {last['reason']}",
                    fix=f"{self._run.folder.audit_path} has all reasons; mend the tasks, or train on others",
                )
