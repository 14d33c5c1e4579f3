"""`practicum verifier spot-check`: verdicts shown to a person, and the person's rulings on them.

Owns: this command.
Invariant: a ruling is recorded with its reason and reviewer before the next verdict is shown, or not at all; looking
at the queue writes nothing.
Must not know: how a sample is drawn or rates are estimated.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.output import JsonOption, emit
from practicum.cli.verifier_runs import RunArgument
from practicum.errors import ConfigError

if TYPE_CHECKING:
    from practicum.pipeline.spotchecks import Checkable, Ruling
    from practicum.records.task import Task
    from practicum.verification.calibration.noise import NoiseEstimate
    from practicum.verification.calibration.sampling import Drawn


def spot_check(
    run: RunArgument,
    size: Annotated[int, typer.Option(min=1, metavar="N", help="Most verdicts in the queue.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Draws the sample.")] = 0,
    ruling: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="ID=right|wrong", help="Is verdict ID right? May be repeated."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, with --rule.")] = "",
    reviewer: Annotated[str, typer.Option(metavar="NAME", help="Who rules.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Verdicts of RUN for a person to look at, and the person's rulings on them."""
    from practicum.pipeline.runfolder import RunFolder
    from practicum.pipeline.spotchecks import checkable, rule, ruled_estimates, rulings, save_estimates
    from practicum.verification.calibration.sampling import draw

    asked = [_ruling(text) for text in ruling or []]
    interactive = not asked and not as_json and sys.stdin.isatty()
    with RunFolder.open(run, write=interactive or bool(asked)) as folder:
        found, done = checkable(folder), rulings(folder)
        tasks = _tasks_of(folder.path)
        waiting = [each for key, each in found.items() if key not in done]
        queue = draw(waiting, lambda each: (each.verdict.passed, each.reliability), size=size, seed=seed)
        given = [(name, what, reason, reviewer) for name, what in asked]
        asking = _ask(queue, tasks, reviewer) if interactive else iter(())
        answers = itertools.chain(given, asking)
        entries = [rule(folder, found, name, what, reason=why, who=who) for name, what, why, who in answers]
        estimates = ruled_estimates(folder, found)
        if entries:
            save_estimates(folder, estimates)
        left = len(found) - len(rulings(folder))
    if asked or interactive:
        queue = []
    document = {
        "queue": [_check_document(each, tasks) for each in queue],
        "rulings": entries,
        "not_ruled": left,
        "estimates": [each.to_json() for each in estimates],
    }
    lines = [f"{_check_text(each, tasks)}\n" for each in queue]
    lines += [
        f"ruled {entry['ruling']}: {entry['id']} ({entry['outcome']}), by {entry['reviewer']}" for entry in entries
    ]
    lines += [_estimate_text(each) for each in estimates]
    lines.append(f"{left} distinct submissions have a verdict that nobody ruled on")
    emit(document, "\n".join(lines), as_json=as_json)


def _ask(
    queue: list[Drawn[Checkable]], tasks: dict[str, Task], reviewer: str
) -> Iterator[tuple[str, Ruling, str, str]]:
    """Show one after another and ask; each answer is recorded before the next is shown."""
    for number, each in enumerate(queue, 1):
        print(f"\n[{number}/{len(queue)}] {_check_text(each, tasks)}")
        what = typer.prompt("right, wrong, skip or quit", default="skip")
        if what == "quit":
            return
        if what in ("right", "wrong"):
            reviewer = reviewer or typer.prompt("who are you")
            yield each.item.trajectory.id, what, typer.prompt("why"), reviewer


def _ruling(text: str) -> tuple[str, Ruling]:
    name, separator, what = text.rpartition("=")
    if not separator or what not in ("right", "wrong"):
        raise ConfigError(
            f"--rule {text!r} is not of the form ID=right or ID=wrong", fix="--rule rl-0-0-train-0/0=wrong"
        )
    return name, "right" if what == "right" else "wrong"


def _tasks_of(run: Path) -> dict[str, Task]:
    from practicum.tasks.taskset import load_taskset

    folder = run / "tasks"
    return {task.digest: task for task in load_taskset(folder)} if folder.is_dir() else {}


def _check_document(drawn: Drawn[Checkable], tasks: dict[str, Task]) -> dict[str, Any]:
    from practicum.records.tree import unified_diff

    one = drawn.item
    task = tasks.get(one.trajectory.task_digest)
    return {
        "id": one.trajectory.id,
        "task": one.trajectory.task_id,
        "instruction": task.instruction if task else None,
        "phase": one.phase,
        "update": one.update,
        "attempts": list(one.attempts),
        "stratum": drawn.stratum,
        "rate": drawn.rate,
        "reliability": one.reliability,
        "outcome": one.verdict.outcome,
        "reward": one.verdict.reward,
        "tests": dict(one.verdict.tests),
        "findings": [dataclasses.asdict(finding) for finding in one.verdict.findings],
        "diff": unified_diff(task.files if task else {}, one.submission.changes),
    }


def _check_text(drawn: Drawn[Checkable], tasks: dict[str, Task]) -> str:
    from practicum.cli.verdicts import verdict_text
    from practicum.pipeline.wording import visible

    one = drawn.item
    task = tasks.get(one.trajectory.task_digest)
    times = f", submitted {len(one.attempts)} times" if len(one.attempts) > 1 else ""
    head = f"{one.trajectory.id}  ({drawn.stratum}; reliability {one.reliability:.2f}; {drawn.rate:.0%} drawn{times})"
    if task is None:
        return visible(
            f"{head}\n{one.trajectory.task_id}: {one.verdict.outcome}; its task is no longer in the run folder"
        )
    return (
        f"{visible(head)}\n{visible(task.instruction.strip())}\n{verdict_text(task, one.verdict, None, one.submission)}"
    )


def _estimate_text(each: NoiseEstimate) -> str:
    positive, negative = each.false_positive, each.false_negative
    return (
        f"{each.task}: false positives {positive.value:.1%} ({positive.low:.1%} – {positive.high:.1%}), "
        f"false negatives {negative.value:.1%} ({negative.low:.1%} – {negative.high:.1%}), J ≥ {each.youden_low:.2f}, "
        f"rulings: {each.evidence.rulings.total}"
    )
