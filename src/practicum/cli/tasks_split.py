"""`practicum tasks split`: a task set anew, each task under the split in which it gives nothing away.

Owns: the command `split`.
Invariant: the set itself is not changed; the same set, way and seed give the same splits.
Must not know: how a split is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    import datetime as dt

    from practicum.curation.similarity import TaskFolders
    from practicum.curation.splitting import Piece, Plan

_SHOWN = 20  # names for people; --json has them all


class By(StrEnum):
    """Ways to split."""

    repository = "repository"
    time = "time"
    cluster = "cluster"
    random = "random"


def split(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A folder of task directories.")],
    by: Annotated[By, typer.Option(help="What must not lie on two sides; for time, which is older.")],
    fractions: Annotated[
        str, typer.Option(metavar="NAME=PART,…", help="The splits, for time from the oldest.")
    ] = "train=0.8,validation=0.1,test=0.1",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    cut: Annotated[
        list[str] | None, typer.Option(metavar="DATE", help="With time: the first date of each later split.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write the set with its new splits.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Give each task of TASKSET a split, and write the set anew below DIR.

    Near-duplicates stay in one split whatever the way; but for the way random, so do tasks that give one another away:
    by their code, their statement, or files that show what the gold of another brings in. The split is part of what
    is checked: the new set has to be checked again. Exits 1 where a task was refused, or a split stays empty.
    """
    from practicum.curation.similarity import TaskFolders, survey
    from practicum.curation.similarity.copying import check_out, write_set
    from practicum.curation.splitting import read_fractions, split_pieces

    if (out is None) != dry_run:
        raise typer.BadParameter("say --out DIR or --dry-run, one of them")
    if cut and by is not By.time:
        raise typer.BadParameter("--cut goes with --by time")
    parts, cuts, source = read_fractions(fractions), [_date(text) for text in cut or ()], TaskFolders(taskset)
    if out is not None:
        check_out(out, taskset)
    progress = Progress("tasks read", len(source))

    def on_progress(_stage: str, done: int, total: int) -> None:
        progress.done = done - 1
        progress.advance()

    found = survey(source, spans=False, revealing=by is not By.random, on_progress=on_progress)
    clusters = found.duplicate_clusters if by is By.random else found.clusters
    pieces = list(_pieces(source, found.places))
    plan = split_pieces(pieces, by.value, parts, clusters=clusters, seed=seed, cuts=cuts)
    refused = {str(source.folder(at)): why for at, why in found.refused.items()} | dict(plan.refused)
    empty = [name for name in parts if name not in plan.counts]
    if out is not None:
        places = {
            place: plan.splits[task] for task, place in zip(found.ids, found.places, strict=True) if task in plan.splits
        }
        written = Progress("tasks written", len(places))
        write_set(source, places, out, on_done=written.advance)
    emit(_document(plan, by, parts, refused, out), _text(plan, by, parts, refused, out), as_json=as_json)
    if refused or empty:
        raise typer.Exit(NEGATIVE)


def _pieces(source: TaskFolders, places: list[int]) -> Iterator[Piece]:
    from practicum.curation.similarity.origin import date_of, parent_of, repository_of
    from practicum.curation.splitting import Piece

    for place in places:
        task = source[place]
        yield Piece(task.id, repository_of(task), parent_of(task), date_of(task))


def _date(text: str) -> dt.datetime:
    import datetime as dt

    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"--cut: {text!r} is not a date such as 2024-05-31") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _document(plan: Plan, by: By, parts: dict[str, float], refused: dict[str, str], out: Path | None) -> dict[str, Any]:
    total = len(plan.splits)
    return {
        "by": by.value,
        "tasks": total,
        "units": plan.units,
        "largest_unit": plan.largest,
        "splits": {
            name: {
                "wanted": part,
                "tasks": plan.counts.get(name, 0),
                "share": plan.counts.get(name, 0) / total if total else 0,
            }
            for name, part in parts.items()
        },
        "cuts": [date.isoformat() for date in plan.cuts],
        "repositories_on_several_sides": list(plan.shared),
        "assignment": dict(plan.splits),
        "refused": refused,
        "out": None if out is None else str(out),
        "next": None if out is None else _next(out),
    }


def _text(plan: Plan, by: By, parts: dict[str, float], refused: dict[str, str], out: Path | None) -> str:
    from practicum.pipeline.wording import visible

    total = len(plan.splits)
    lines = [f"{total} tasks in {_units(plan)}" + (f"; {len(refused)} refused" if refused else "")]
    for name, part in parts.items():
        count = plan.counts.get(name, 0)
        note = "" if count else f"  ← empty: {_why_empty(plan, by, parts)}"
        lines.append(f"  {name:<12} {count:>7}  {count / total if total else 0:6.1%} (wanted {part:.1%}){note}")
    biggest = max(parts.values())
    if total and len(parts) <= plan.units and plan.largest > biggest * total + 1:
        lines.append(
            f"  ! one unit holds {plan.largest} of {total} tasks, more than the largest split should; "
            "no seed changes that"
        )
    if plan.cuts:
        lines.append(f"  first dates: {', '.join(date.date().isoformat() for date in plan.cuts)}")
    if plan.shared:
        names = ", ".join(plan.shared[:5]) + (", …" if len(plan.shared) > 5 else "")
        lines.append(
            f"  repositories in several splits: {len(plan.shared)} ({names}); --by repository keeps them apart"
        )
    lines += [f"  ✗ {name}: {why}" for name, why in [*refused.items()][:_SHOWN]]
    lines += [f"  … and {len(refused) - _SHOWN} more (--json lists them all)"] if len(refused) > _SHOWN else []
    if out is None:
        return visible("\n".join([*lines, "nothing was written (--dry-run)"]))
    lines += [
        f"wrote {total} tasks below {out}",
        f"checks and decisions do not come along, for the split is part of what they are about; next: {_next(out)}",
    ]
    return visible("\n".join(lines))


def _units(plan: Plan) -> str:
    if plan.units == 1:
        return "one unit that stays together"
    return f"{plan.units} units that stay together, the largest of {plan.largest}"


def _why_empty(plan: Plan, by: By, parts: dict[str, float]) -> str:
    """What is true of this set, and what would help."""
    if plan.units < len(parts):
        units = (
            "a single unit"
            if plan.units == 1
            else f"{plan.units} units"
            if plan.units
            else "no task that can be placed"
        )
        return f"{units} for {len(parts)} splits; more tasks that are unlike these are needed, or fewer splits"
    if by is By.time and len(plan.cuts) < len(parts) - 1:
        return "the tasks have fewer dates than there are splits"
    return "no task has a date in this part; choose other dates for --cut"


def _next(out: Path) -> str:
    import shlex

    return f"practicum tasks check {shlex.quote(str(out))}"
