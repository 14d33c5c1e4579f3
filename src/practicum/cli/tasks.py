"""`practicum tasks`: make, import and check task directories.

Owns: the group `tasks` (commands of other modules are added here) and its command `new`.
Invariant: a task is written whole or not at all.
Must not know: how tasks are judged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from practicum.cli import (
    tasks_check,
    tasks_decontaminate,
    tasks_export,
    tasks_generate,
    tasks_import,
    tasks_ledger,
    tasks_measure,
    tasks_mine,
    tasks_release,
    tasks_review,
    tasks_split,
    tasks_stats,
    tasks_synth,
)
from practicum.cli.output import JsonOption, emit

app = typer.Typer(help="Make, import and check task directories.", no_args_is_help=True)
app.command("import")(tasks_import.import_tasks)
app.command("export")(tasks_export.export_tasks)
app.command()(tasks_check.check)
app.command()(tasks_synth.synth)
app.command()(tasks_mine.mine)
app.command()(tasks_measure.measure)
app.command()(tasks_ledger.ledger)
app.command()(tasks_ledger.decide)
app.command()(tasks_review.review)
app.command()(tasks_release.release)
app.command()(tasks_decontaminate.decontaminate)
app.command()(tasks_split.split)
app.command()(tasks_stats.stats)
app.command()(tasks_generate.generate)


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
