"""`practicum tasks synth`: tasks out of a project with tests.

Owns: the command `synth`.
Invariant: tasks are written as they come; a run that is stopped goes on where it was. Exit code 1 where there are fewer
tasks than were asked for and no budget says why.
Must not know: how tasks are made.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.curation.projects.project import Project
    from practicum.curation.synthesis.engine import Made, Order
    from practicum.curation.synthesis.journal import Entry
    from practicum.curation.synthesis.strategy import Settings, Strategy
    from practicum.curation.synthesis.yields import Yield


def synth(
    repo: Annotated[Path, typer.Argument(metavar="REPO", help="A folder, git repository or source distribution.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the task directories.")],
    strategy: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Only these ways of making tasks. Repeatable.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Tasks of this project that OUT shall hold.")] = 50,
    budget: Annotated[
        float | None, typer.Option(min=1.0, metavar="SECONDS", help="Stop after this time, whatever there is.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    visible: Annotated[int, typer.Option(min=0, metavar="K", help="Failing tests that the agent may see.")] = 0,
    allow_unlicensed: Annotated[
        bool, typer.Option("--allow-unlicensed", help="Take a project whose licence is not known.")
    ] = False,
    lock: Annotated[Path | None, typer.Option(help="A lock with hashes: what the tests need.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Test runs at once; by default cores + 1.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make tasks from REPO: change it, keep what its own tests notice, and tell only what they say.

    A second run with the same OUT goes on where the first one stopped. Its own tests are first run three times as they
    are, which may take minutes and is done once. The same project, strategies and seed give the same tasks.
    """
    import os
    from dataclasses import replace

    from practicum.curation.projects.environment import layer_for
    from practicum.curation.projects.reading import read_project
    from practicum.curation.synthesis.engine import Order
    from practicum.curation.synthesis.strategies import strategies_named
    from practicum.curation.synthesis.strategy import Settings
    from practicum.curation.writers import sole_writer

    names = [name.strip() for each in strategy or () for name in each.split(",") if name.strip()]
    strategies = strategies_named(names)
    project = read_project(repo, allow_unlicensed=allow_unlicensed)
    order = Order(count, budget, concurrency or (os.cpu_count() or 1) + 1)  # one is prepared while others run
    with sole_writer(out / ".practicum", "synth"):
        project = replace(project, layer=layer_for(project, out / ".practicum", lock))
        made = asyncio.run(_synthesise(project, strategies, Settings(seed=seed, visible=visible), order, out))
    document = {
        "project": {"name": project.name, "version": project.version, "digest": project.digest},
        "out": str(out),
        "wanted": count,
        "tasks": len(made.tasks),
        "before": made.before,
        "budget_ended_while": made.ended_while or None,
        "steady_tests": len(made.baseline.steady) if made.baseline else None,
        "left_out": dict(made.baseline.left_out) if made.baseline else {},
        "not_read": dict(project.notes),
        **made.result.to_json(),
    }
    emit(document, _text(document), as_json=as_json)
    if len(made.tasks) < count and (budget is None or not made.tasks):
        raise typer.Exit(NEGATIVE)


async def _synthesise(
    project: Project, strategies: tuple[Strategy, ...], settings: Settings, order: Order, out: Path
) -> Made:
    from practicum.curation.synthesis.engine import synthesise
    from practicum.pipeline.execute import open_boxes

    watch = _Watch(order.count)
    out.mkdir(parents=True, exist_ok=True)
    async with open_boxes() as provider:
        ticking = asyncio.create_task(watch.tick())
        try:
            return await synthesise(
                provider, project, strategies, settings, order, out, on_tried=watch.tried, on_phase=watch.begin
            )
        finally:
            ticking.cancel()


_SHOWN = 5


class _Watch:
    """What is going on, on stderr: the phase, or the count of tasks once candidates are tried."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._progress = Progress("tasks", count)
        self._text = ""

    def begin(self, phase: str) -> None:
        self._text = phase
        self._progress.say(phase, now=True)

    def tried(self, result: Yield, entry: Entry) -> None:
        tried = sum(tally.tried for tally in result.strategies.values())
        self._text = f"tasks {result.before + result.kept}/{self._count}, {tried} candidates tried"
        self._progress.say(self._text)

    async def tick(self) -> None:
        """Show that time goes on."""
        while True:
            await asyncio.sleep(1.0)
            if self._text:
                self._progress.say(self._text)


def _text(document: dict[str, Any]) -> str:
    project = document["project"]
    lines = [
        f"{project['name']} {project['version']}: {document['tasks']} tasks in {document['out']}, "
        f"{document['before']} of them from before",
    ]
    if document["steady_tests"] is not None:
        lines += [f"{document['steady_tests']} tests relied on, {len(document['left_out'])} left out"]
        lines += [f"  {count:>5}  {why}" for why, count in Counter(document["left_out"].values()).most_common(_SHOWN)]
    notes = sorted(document["not_read"].items())
    lines += [f"  – {path}: {why}" for path, why in notes[:_SHOWN]]
    if len(notes) > _SHOWN:
        lines += [f"  – and {len(notes) - _SHOWN} more files that were left out or changed; --json names them"]
    if document["strategies"]:
        lines += ["", f"  {'strategy':<16} {'kind':<16} {'tried':>6} {'killed':>7} {'kept':>5}  refused"]
    for name, tally in document["strategies"].items():
        lines.append(_row(name, "", tally))
        kinds = tally.get("kinds", {})
        lines += [_row("", kind, each) for kind, each in kinds.items() if list(kinds) != [name]]
    phases = ", ".join(f"{name} {seconds} s" for name, seconds in document["phases"].items())
    busy = document["cores_busy"]
    lines += [
        "",
        f"{document['kept']} made in {document['seconds']} s, {document['tasks_per_hour']} an hour; processors used by "
        f"this run {document['cores_used']:.0%}" + (f", busy in all {busy:.0%}" if busy is not None else ""),
        f"time, of all boxes together: {phases}",
        *_endings(document),
    ]
    return "\n".join(lines)


def _endings(document: dict[str, Any]) -> list[str]:
    """Why there are no more tasks, and what to do next."""
    lines = []
    if not document["kept"] and document["tasks"] < document["wanted"]:
        lines.append(f"no task was made: {_why_none(document)}")
    if phase := document["budget_ended_while"]:
        lines.append(f"the budget ended while {phase}; run again to go on: what was found is kept")
        if document["steady_tests"] is None:
            lines.append("  fix: where it ends there again, give a larger --budget, since that run begins anew")
    if document["tasks"]:
        lines.append(f"check them with: practicum tasks check {shlex.quote(document['out'])}")
    return lines


def _why_none(document: dict[str, Any]) -> str:
    if document["steady_tests"] is None:
        return "its tests had not been run often enough to rely on them"
    refused = Counter[str]()
    for tally in document["strategies"].values():
        refused.update(tally["refused"])
    if not refused:
        return (
            "no candidate was tried to its end"
            if document["budget_ended_while"]
            else "nothing is left to try that was not tried before"
        )
    reason, count = refused.most_common(1)[0]
    return f"{refused.total()} candidates were refused, {count} of them because: {reason}"


def _row(name: str, kind: str, tally: dict[str, Any]) -> str:
    refused = ", ".join(f"{reason} {count}" for reason, count in tally["refused"].items())
    return f"  {name:<16} {kind:<16} {tally['tried']:>6} {tally['killed']:>7} {tally['kept']:>5}  {refused}".rstrip()
