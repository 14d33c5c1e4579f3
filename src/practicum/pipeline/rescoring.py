"""Stored submissions judged again by the present verifier, and runs continued on what it says.

Owns: `rescore`, `begin_rescored`, `Replay`; `rescored/<n>/` and `rescoring.json` in a run folder.
Invariant: old verdicts stay as they are: new ones stand in a store of their own, and what a run takes over moves the
old batches aside. A run continued on them ends as one that the present verifier had judged from its start.
Must not know: how a verdict comes about.

Which stored batches may be used again: let c be the first batch in which a reward differs, and s the staleness.
Batch b was sampled by version b − s and chosen by outcomes of batches before b − s, so that all up to c + s are what
they would have been; later ones came from weights that would not exist, and are sampled anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from practicum.errors import ConfigError, NothingLearned, StoreError
from practicum.evaluation.evaluate import summarise
from practicum.pipeline.metrics import rewrite_rows
from practicum.pipeline.orders import Done
from practicum.pipeline.rescoring_report import Pair, report_of
from practicum.pipeline.run import STATE_FILE, last_state
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.signals import recorded
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.trajectories.durable import failed, write_atomic
from practicum.trajectories.store import Batch, TrajectoryStore
from practicum.verification.contract import Verifier
from practicum.verification.reuse import ReusingVerifier
from practicum.verification.shaping import completed
from practicum.weights.store import VersionStore

FOLDER = "rescored"
REPORT = "report.json"
PENDING_FILE = "rescoring.json"
Judged = Callable[[Sequence[tuple[Task, Submission]]], Sequence[Verdict]]


def unfit(trajectory: Trajectory, task: Task | None) -> str | None:
    """Why there is nothing to judge again, or None."""
    if trajectory.verdict is None and trajectory.fault is None:
        return "was never judged"
    if trajectory.fault is not None and trajectory.fault.kind != "VerifierError":
        return "ended by a fault"
    if trajectory.submission is None:
        return "submitted nothing"
    if task is None:
        return "its task is not in the run folder"
    if task.digest != trajectory.task_digest:
        return "its task changed on disk"
    return None


async def rescore(
    folder: RunFolder,
    tasks: Mapping[str, Task],
    verifier: Verifier,
    judge: Callable[..., Any],
    *,
    on_done: Callable[[Verdict], None] | None = None,
) -> dict[str, Any]:
    """Judge every stored submission of `folder` again and write `rescored/<n>/`; returns its report.

    `judge` is `judging.judge_all`. Equal submissions of one batch are judged once, as in the run. Raises
    `StoreError`; nothing is then half-written.
    """
    place = folder.path / FOLDER / f"{len(list((folder.path / FOLDER).glob('[0-9]*'))):03d}"
    draft = TrajectoryStore(place.with_name(f".tmp-{place.name}"))
    reusing = ReusingVerifier(verifier)
    pairs: list[Pair] = []
    left: dict[str, int] = {}
    for batch in folder.store.batches():
        old = folder.store.load(batch)
        reasons = [unfit(trajectory, tasks.get(trajectory.task_id)) for trajectory in old]
        fit = [trajectory for trajectory, reason in zip(old, reasons, strict=True) if reason is None]
        reusing.forget()
        items = [(tasks[trajectory.task_id], trajectory.submission) for trajectory in fit]
        verdicts = await judge(reusing, items, on_done=on_done)
        new = iter([_judged(tasks[t.task_id], t, verdict) for t, verdict in zip(fit, verdicts, strict=True)])
        after = [
            trajectory if reason is not None else next(new) for trajectory, reason in zip(old, reasons, strict=True)
        ]
        for reason in reasons:
            if reason is not None:
                left[reason] = left.get(reason, 0) + 1
        pairs += [
            Pair(batch.phase, batch.update, *both)
            for *both, reason in zip(old, after, reasons, strict=True)
            if reason is None
        ]
        draft.append(batch.phase, batch.update, after)
    report = report_of(pairs, left, verifier.version) | {"batches": _covered(folder)}
    try:
        draft.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(draft.folder / REPORT, json.dumps(report, indent=1).encode())
        draft.folder.rename(place)
    except OSError as error:
        raise failed(place, error) from error
    folder.audit("rescored", folder=place.name, verifier=verifier.version, judged=len(pairs), changed=report["changed"])
    return {**report, "folder": str(place)}


def _judged(task: Task, trajectory: Trajectory, verdict: Verdict) -> Trajectory:
    """`trajectory` with the new verdict, completed from its record; it keeps what the old one was."""
    verdict = completed(task, verdict, recorded(task, trajectory))
    old = trajectory.verdict
    was = {"outcome": old.outcome, "reward": old.reward, "verifier": old.verifier_version} if old else None
    verdict = replace(verdict, evidence={**verdict.evidence, "rescored_from": was})
    if trajectory.fault is None or verdict.status == "unscorable":
        return replace(trajectory, verdict=verdict)
    ended = trajectory.turns[-1].action.tool == "submit" if trajectory.turns else True
    return replace(trajectory, verdict=verdict, fault=None, stop_reason="submitted" if ended else "turn_limit")


def _covered(folder: RunFolder) -> list[list[Any]]:
    return [[batch.phase, batch.index, batch.update, batch.count] for batch in folder.store.batches()]


def begin_rescored(folder: RunFolder) -> None:
    """Set the run back to its first version, on the newest re-scoring; a resume then goes on from there.

    Raises `ConfigError` where there is none that fits, `NothingLearned` where it changes no reward that trained.
    """
    versions = VersionStore(folder.checkpoints)
    again = f"practicum verifier rescore {folder.path}"
    whole = sorted(path.parent for path in (folder.path / FOLDER).glob(f"[0-9]*/{REPORT}"))
    if not whole:
        raise ConfigError(f"{folder.path} was not re-scored", fix=again)
    report = _read(whole[-1] / REPORT)
    if report["batches"] != _covered(folder):
        raise ConfigError(f"{folder.path} went on after it was re-scored", fix=again)
    if report["unscorable"]:
        raise ConfigError(f"{report['unscorable']} submissions could not be judged again", fix=again)
    refused = sorted({each["task"] for each in report["changes"] if each["phase"] == "admission"})
    if refused:
        raise ConfigError(
            f"the present verifier judges the gold or the untouched state of some tasks otherwise "
            f"({', '.join(refused[:3])}), so the run might have begun with others",
            fix="start a new run",
        )
    first = min((each["update"] - 1 for each in report["changes"] if each["phase"] == "rl"), default=None)
    if first is None:
        raise NothingLearned(f"re-scoring {folder.path} changed no reward that trained", fix="resume it without")
    if not (versions.path(0) / STATE_FILE).is_file():
        raise ConfigError(f"{folder.path} has no first version to start again from", fix="start a new run")
    last = first + folder.config.rollout.max_staleness
    _write_pending(folder, {"from": whole[-1].name, "last": last, "laid": False})
    _lay(folder)


def finish_laying(folder: RunFolder) -> None:
    """Complete what an interruption of `begin_rescored` left; nothing where there is nothing."""
    if (folder.path / PENDING_FILE).is_file() and not _read(folder.path / PENDING_FILE)["laid"]:
        _lay(folder)


def _lay(folder: RunFolder) -> None:
    """Replace the record of the first version by what the present verifier says of it. Safe to repeat."""
    pending, versions = _read(folder.path / PENDING_FILE), VersionStore(folder.checkpoints)
    rescored = TrajectoryStore(folder.path / FOLDER / pending["from"])
    versions.prune({0})
    folder.forget_flights()
    folder.truncate_after(0)
    folder.store.move_after(-1, folder.path / "aside" / f"{len(list((folder.path / 'aside').glob('*'))):03d}")
    rates: dict[str, dict[str, float]] = {}
    for batch in rescored.batches():
        if batch.update <= 0:
            trajectories = rescored.load(batch)
            folder.store.append(batch.phase, batch.update, trajectories)
            result = summarise(trajectories)
            rates[batch.phase] = {"rate": result.rate, "low": result.low, "high": result.high, "n": result.samples}
    rows = [row | rates[row["split"]] if row["kind"] == "evaluation" else row for row in folder.metrics()]
    rewrite_rows(folder.metrics_path, rows)
    state = last_state(versions)
    if state is None:
        raise StoreError(f"{versions.path(0)} holds no state to start again from")
    state.best_rate = rates["validation"]["rate"]
    write_atomic(versions.path(0) / STATE_FILE, json.dumps(state.to_json(), indent=1).encode())
    _write_pending(folder, {**pending, "laid": True})
    folder.audit("continued_on_rescored", folder=pending["from"], batches_used_again=pending["last"] + 1)


@dataclass(frozen=True, slots=True)
class Replay:
    """Stored batches that take the place of sampling, by number."""

    store: TrajectoryStore
    batches: Mapping[int, Batch]

    def __contains__(self, number: int) -> bool:
        return number in self.batches

    def take(self, number: int) -> Done:
        """The batch as a worker would have answered; `seconds` are those of reading it."""
        start = time.perf_counter()
        trajectories = tuple(self.store.load(self.batches[number]))
        return Done(f"rl-{number}", trajectories, time.perf_counter() - start, 0)


def open_replay(folder: RunFolder) -> Replay:
    """What a run that was continued on a re-scoring uses again; nothing for any other run."""
    path = folder.path / PENDING_FILE
    if not path.is_file():
        return Replay(folder.store, {})
    pending = _read(path)
    store = TrajectoryStore(folder.path / FOLDER / pending["from"])
    batches = {batch.update - 1: batch for batch in store.batches("rl") if batch.update - 1 <= pending["last"]}
    return Replay(store, batches)


def _write_pending(folder: RunFolder, document: Mapping[str, Any]) -> None:
    write_atomic(folder.path / PENDING_FILE, json.dumps(document).encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    return document


def judgeable(folder: RunFolder, tasks: Mapping[str, Task]) -> int:
    """How many stored submissions `rescore` will judge."""

    def each() -> Iterator[bool]:
        for trajectory in folder.store.read():
            yield unfit(trajectory, tasks.get(trajectory.task_id)) is None

    return sum(each())
