"""`practicum tasks`: make, import and check task directories.

Owns: the commands `new`, `import`, `check`.
Invariant: a task is written whole or not at all; `check` admits on evidence from real boxes only.
Must not know: how tasks are judged.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from practicum.cli.failure import INFRASTRUCTURE, NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.pipeline.execute import Admission
    from practicum.records.task import Task

app = typer.Typer(help="Make, import and check task directories.", no_args_is_help=True)


class Format(StrEnum):
    """What `tasks import` can read."""

    humanevalpack = "humanevalpack"
    quixbugs = "quixbugs"


@app.command()
def new(folder: Annotated[Path, typer.Argument(metavar="DIR")], as_json: JsonOption = False) -> None:
    """Write a small, valid task directory to start from."""
    from practicum.cli.template import template_task
    from practicum.tasks.harbor import save_task

    task = template_task(folder.resolve().name)
    save_task(task, folder)
    emit(
        {"task": task.id, "path": str(folder), "digest": task.digest},
        f"wrote {folder}; check it with: practicum tasks check {folder}",
        as_json=as_json,
    )


@app.command("import")
def import_command(
    kind: Annotated[Format, typer.Argument(metavar="FORMAT", help="humanevalpack or quixbugs")],
    source: Annotated[Path, typer.Argument(metavar="PATH", help="A file of rows; for quixbugs, or its repository.")],
    out: Annotated[Path, typer.Argument(metavar="OUT")],
    as_json: JsonOption = False,
) -> None:
    """Turn what PATH holds into task directories below OUT.

    With quixbugs, an item that cannot be a task is told by name and the others are written; the exit code is then 1.
    """
    from practicum.tasks.humanevalpack import import_file

    refused: dict[str, str] = {}
    if kind is Format.quixbugs:
        tasks, refused = asyncio.run(_import_quixbugs(source, out))
    else:
        tasks = import_file(source, out)
    document = {"format": kind.value, "path": str(out), "tasks": [task.id for task in tasks], "refused": refused}
    lines = [f"  ✗ {item}: {reason}" for item, reason in refused.items()]
    emit(document, "\n".join([f"wrote {len(tasks)} tasks below {out}", *lines]), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)


async def _import_quixbugs(source: Path, out: Path) -> tuple[list[Task], dict[str, str]]:
    from practicum.pipeline.execute import open_workshop
    from practicum.pipeline.sorting import sort_tests
    from practicum.tasks.quixbugs import read_programs, save_programs

    found, refused = read_programs(source)
    progress = Progress("untouched programs", len(found))
    async with open_workshop() as workshop:
        tasks, unfit = await sort_tests(workshop.verifier, found, on_done=lambda _: progress.advance())
    written, unwritten = save_programs(source, tasks, out)
    return written, refused | unfit | unwritten


@app.command()
def check(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    as_json: JsonOption = False,
) -> None:
    """Admit tasks: the gold passes and doing nothing fails, each in its own box and judged in another."""
    from practicum.tasks.taskset import load_taskset

    admissions = asyncio.run(_check(load_taskset(taskset)))
    admitted = sum(admission.admitted for admission in admissions)
    document = {
        "tasks": len(admissions),
        "admitted": admitted,
        "results": [
            {"task": a.task.id, "admitted": a.admitted, "reason": a.reason, "unscorable": a.unscorable}
            for a in admissions
        ],
    }
    lines = [f"  ✗ {a.task.id}: {a.reason}" for a in admissions if not a.admitted]
    emit(document, "\n".join([f"{admitted} of {len(admissions)} tasks admitted", *lines]), as_json=as_json)
    if admitted < len(admissions):
        raise typer.Exit(INFRASTRUCTURE if any(a.unscorable for a in admissions) else NEGATIVE)


async def _check(tasks: list[Task]) -> list[Admission]:
    from practicum.pipeline.execute import check_tasks, open_workshop

    progress = Progress("attempts", 2 * len(tasks))
    async with open_workshop() as workshop:
        return await check_tasks(workshop, tasks, on_done=lambda _: progress.advance())
