"""`practicum tasks import`: work in other formats as task directories.

Owns: the command `import`.
Invariant: an item that cannot be a task is told by name with the reason, and keeps no other from being one; what a
format claims about its tests is seen in boxes before a task is written.
Must not know: how formats are read.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit
from practicum.errors import TaskError

if TYPE_CHECKING:
    from practicum.records.task import Task
    from practicum.records.tree import Tree
    from practicum.tasks.importing import Imported


class Format(StrEnum):
    """What `tasks import` can read."""

    exercism = "exercism"
    humanevalpack = "humanevalpack"
    quixbugs = "quixbugs"
    swebench = "swebench"
    swesmith = "swesmith"
    tickets = "tickets"


def import_tasks(
    kind: Annotated[Format, typer.Argument(metavar="FORMAT", help=", ".join(Format))],
    source: Annotated[Path, typer.Argument(metavar="PATH", help="A file of rows, a checkout, or a folder of tasks.")],
    out: Annotated[Path, typer.Argument(metavar="OUT")],
    repos: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the repositories that rows name are cloned, as owner__name."),
    ] = None,
    layer: Annotated[
        str, typer.Option(metavar="NAME", help="The layer for tasks of repositories that bring no Dockerfile.")
    ] = "python",
    allow_unlicensed: Annotated[
        bool, typer.Option("--allow-unlicensed", help="Take work whose licence is not known; it is recorded so.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn what PATH holds into task directories below OUT.

    An item that cannot be a task is told by name and the others are written; the exit code is then 1.
    """
    found, refused = _read(kind, source, repos, layer, allow_unlicensed=allow_unlicensed)
    settled, unfit = asyncio.run(_settle(kind, found))
    tasks, unwritten = _save(kind, source, settled, out)
    refused |= unfit | unwritten
    notes = {task.id: task.provenance["no_solution"] for task in tasks if "no_solution" in task.provenance}
    document = {
        "format": kind.value,
        "path": str(out),
        "tasks": [task.id for task in tasks],
        "refused": refused,
        "notes": notes,
    }
    lines = [f"  ✗ {item}: {reason}" for item, reason in refused.items()]
    lines += [f"  · {item}: {note}, so it cannot be admitted as it is" for item, note in notes.items()]
    emit(document, "\n".join([f"wrote {len(tasks)} tasks below {out}", *lines]), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)


def _read(kind: Format, source: Path, repos: Path | None, layer: str, *, allow_unlicensed: bool) -> Imported:
    """What `source` holds, read and not yet run."""
    from practicum.tasks.checkouts import Checkouts

    if not source.exists():
        raise TaskError(f"{source}: there is no such file or folder", fix="check the path")
    if kind is Format.humanevalpack:
        from practicum.tasks.humanevalpack import read_rows

        return read_rows(source)
    if kind is Format.quixbugs:
        from practicum.tasks.quixbugs import read_programs

        return read_programs(source)
    if kind is Format.exercism:
        from practicum.tasks.exercism import read_exercises

        return read_exercises(source, _licence, allow_unlicensed=allow_unlicensed)
    if kind is Format.tickets:
        from practicum.tasks.tickets import read_tickets

        clones = Checkouts(repos or source.parent, _licence, allow_unlicensed)
        return read_tickets(source, clones, layer=layer)
    from practicum.tasks.swebench import read_instances

    if repos is None:
        raise typer.BadParameter("rows name repositories: say where they are cloned", param_hint="--repos")
    clones = Checkouts(repos, _licence, allow_unlicensed)
    return read_instances(source, clones, kind="swesmith" if kind is Format.swesmith else None, layer=layer)


def _licence(tree: Tree) -> str | None:
    from practicum.curation.projects.licences import licence_of
    from practicum.curation.projects.metadata import read_metadata

    return licence_of(read_metadata(tree), tree)


async def _settle(kind: Format, found: list[Task]) -> Imported:
    """The tasks as they were seen to be, and by id why some are left out."""
    from practicum.pipeline.execute import open_boxes, open_workshop
    from practicum.pipeline.settling import settle_tests
    from practicum.pipeline.sorting import sort_tests

    if kind is Format.humanevalpack or not found:  # its rows state what its tests do, and admission sees to it
        return found, {}
    progress = Progress("tasks settled", len(found))
    if kind is Format.quixbugs:
        async with open_workshop() as workshop:
            return await sort_tests(workshop.verifier, found, on_done=lambda _: progress.advance())
    declared = kind in (Format.swebench, Format.swesmith)
    async with open_boxes() as provider:
        return await settle_tests(provider, found, declared=declared, on_done=lambda _: progress.advance())


def _save(kind: Format, source: Path, tasks: list[Task], out: Path) -> Imported:
    from practicum.tasks.exercism import licence_texts
    from practicum.tasks.importing import save_tasks
    from practicum.tasks.quixbugs import save_programs

    if kind is Format.quixbugs:
        return save_programs(source, tasks, out)
    texts = licence_texts(source) if kind is Format.exercism else {}
    return save_tasks(tasks, out, {f"{name}-exercism": text for name, text in texts.items()})
