"""The end of a run: what it came to, in figures and as a page.

Owns: `finish`.
Invariant: the seconds of the stages sum to the wall clock; what nobody measured is told as `other`. A run that trained
nothing does not end well.
Must not know: how a stage works.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from practicum.errors import NothingLearned
from practicum.evaluation.evaluate import EvalResult, compare, summarise
from practicum.pipeline.orders import Closed
from practicum.pipeline.report import write_report
from practicum.pipeline.run import Run
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory


def finish(run: Run, closed: Closed, wall_s: float, tasks: dict[str, Task], quarantined: Set[str]) -> dict[str, Any]:
    """Write summary and report, and tell. Raises `NothingLearned` where no update had anything to teach."""
    folder, state = run.folder, run.state
    with run.meter.span("report"):
        before, after = (_held_out(folder, quarantined, first=first) for first in (True, False))
        difference = compare(before, after)
        rates = summarise(before), summarise(after)
    for stage, seconds in run.meter.seconds.items():
        state.seconds[stage] = state.seconds.get(stage, 0.0) + seconds
    total = max(wall_s, sum(state.seconds.values()))
    state.seconds["other"] = total - sum(state.seconds.values())
    summary: dict[str, Any] = {
        "run_dir": str(folder.path),
        "seed": run.config.seed,
        "wall_s": round(total, 1),
        "held_out": {
            "n": rates[1].samples,
            "before": _rate(rates[0]),
            "after": _rate(rates[1]),
            "difference": {"mean": difference.difference, "low": difference.low, "high": difference.high},
            "p_value": difference.p_value,
        },
        "updates": state.version,
        "chosen_update": state.best_version,
        "episodes": state.episodes,
        "boxes": {"created": state.boxes_created, "leaked": state.boxes_leaked},
        "attempts_on_equal_groups": {"attempts": state.attempts_equal, "of": state.attempts},
        "quarantined": sorted(quarantined),
        "faults": dict(state.faults),
        "faults_handled": {kind: {"masked": count} for kind, count in state.faults.items()},
        "signals_missing": dict(state.signals_missing),
        "time": {stage: round(seconds, 1) for stage, seconds in state.seconds.items()},
        "provenance": dict(run.process.host),
        "report": str(folder.report_path),
    }
    folder.write_summary(summary)
    write_report(folder, tasks)
    run.console.summary(summary)
    for note in closed.notes:
        run.console.note(note)
    if run.config.rl.updates and not state.learned:
        raise NothingLearned(
            f"none of the {state.version} updates had a group whose attempts differ in reward; see {folder.path}",
            fix="give the warm start more demonstrations or steps, or the run easier tasks",
        )
    return summary


def _rate(result: EvalResult) -> dict[str, float]:
    return {"successes": result.passed, "rate": result.rate, "low": result.low, "high": result.high}


def _held_out(folder: RunFolder, without: Set[str], *, first: bool) -> list[Trajectory]:
    """The attempts at the held-out tasks, those `without`, before (`first`) or after learning."""
    batches = sorted(folder.store.batches("test"), key=lambda batch: batch.update)
    return [t for t in folder.store.load(batches[0 if first else -1]) if t.task_id not in without]
