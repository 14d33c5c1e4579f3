"""`practicum tasks export`: tasks in other formats.

Owns: the command `export`.
Invariant: a task is written in full or refused by name; the file is written whole or not at all.
Must not know: how rows are made.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, emit


class Target(StrEnum):
    """What `tasks export` can write."""

    swebench = "swebench"


def export_tasks(
    kind: Annotated[Target, typer.Argument(metavar="FORMAT", help="swebench: rows, as JSON Lines")],
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    repos: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the repositories of mined tasks are cloned.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the tasks of TASKSET as rows. What a row cannot say is refused by name, and the exit code is then 1."""
    from practicum.tasks.checkouts import Checkouts
    from practicum.tasks.swebench_export import export_rows
    from practicum.tasks.taskset import load_taskset

    # A row says nothing of licences, and the task was admitted with what it has.
    clones = None if repos is None else Checkouts(repos, lambda _: None, allow_unlicensed=True)
    rows, refused = export_rows(load_taskset(taskset), clones)
    if rows:
        fresh = out.with_name(f".{out.name}.new")
        fresh.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        fresh.replace(out)
    names = [row["instance_id"] for row in rows]
    document = {"format": kind.value, "path": str(out), "tasks": names, "refused": refused}
    lines = [f"  ✗ {item}: {reason}" for item, reason in refused.items()]
    emit(document, "\n".join([f"wrote {len(rows)} rows to {out}", *lines]), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)
