"""`practicum tasks generate`: tasks from rules, without a repository.

Owns: the command `generate`.
Invariant: what is written depends on kind, count, seed and split alone; nothing is run in boxes here, so whoever uses
the tasks checks them first.
Must not know: families.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from practicum.cli.output import JsonOption, Progress, emit


class Kind(StrEnum):
    """What `tasks generate` can make."""

    scripts = "scripts"
    data_cleaning = "data-cleaning"


def generate(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="scripts or data-cleaning")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the task directories.")],
    count: Annotated[int, typer.Option("--count", min=1, help="How many tasks.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Other seeds give other tasks.")] = 0,
    split: Annotated[str, typer.Option("--split", help="Name of the split that they belong to.")] = "train",
    as_json: JsonOption = False,
) -> None:
    """Make tasks of script automation or data cleaning below OUT, with gold, an example and fresh cases.

    The same arguments give the same tasks, byte for byte. Check them with: practicum tasks check OUT
    """
    from practicum.curation.synthesis.generators.making import generate as made
    from practicum.tasks.harbor import save_task

    progress = Progress("tasks", count)
    ids: list[str] = []
    by_family: dict[str, int] = {}
    for task in made("scripts" if kind is Kind.scripts else "data-cleaning", count, seed, split):
        save_task(task, out / task.id)
        ids.append(task.id)
        family = str(task.provenance["generator"])
        by_family[family] = by_family.get(family, 0) + 1
        progress.advance()
    lines = [f"  {number} of {family}" for family, number in by_family.items()]
    emit(
        {"kind": kind.value, "path": str(out), "seed": seed, "split": split, "tasks": ids, "families": by_family},
        "\n".join([f"wrote {count} tasks below {out}", *lines, f"next: practicum tasks check {out}"]),
        as_json=as_json,
    )
