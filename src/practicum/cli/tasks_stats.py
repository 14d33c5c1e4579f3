"""`practicum tasks stats`: what a task set covers, and what it lacks.

Owns: the command `stats`.
Invariant: tasks are read one at a time; one that cannot be read is told by name and does not keep the others.
Must not know: how coverage is worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.curation.coverage import Card, Coverage
    from practicum.curation.similarity import Survey, TaskFolders

_ROWS = 12  # of each table, for people; --json has them all
_HOLES = 20
_BAR = 24  # characters


def stats(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    minimum: Annotated[int, typer.Option(min=1, metavar="N", help="Tasks that a cell should have.")] = 5,
    likeness: Annotated[bool, typer.Option(help="Look for copies, too.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Count the tasks of TASKSET by domain, kind of bug, size, difficulty, source and licence, and name the holes.

    A hole is a domain, kind of bug, size and difficulty with fewer than N tasks. Exits 1 where a task cannot be read.
    """
    from practicum.curation.coverage import coverage_of
    from practicum.curation.similarity import TaskFolders, survey

    source = TaskFolders(taskset)
    refused: dict[str, str] = {}
    covered = coverage_of(_cards(source, refused), minimum)
    found = survey(source, spans=False) if likeness and covered.tasks else None
    document = covered.document() | {"duplicates": _duplicates(found), "refused": refused}
    emit(document, _text(covered, found, refused), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)


def _cards(source: TaskFolders, refused: dict[str, str]) -> Iterator[Card]:
    from practicum.curation.coverage import card_of
    from practicum.curation.difficulty import difficulty_path, opinion, read_difficulty
    from practicum.errors import TaskError

    measured = read_difficulty(difficulty_path(source.root))
    progress, seen = Progress("tasks read", len(source)), set[str]()
    for place in range(len(source)):
        progress.advance()
        try:
            task = source[place]
            if task.id in seen:
                raise TaskError(f"the id {task.id!r} occurs twice in the task set")
        except TaskError as error:
            refused[str(source.folder(place))] = error.message
            continue
        seen.add(task.id)
        stratum = opinion(measured.get(task.digest, ())).stratum if measured else "undetermined"
        yield card_of(task, None if stratum == "undetermined" else stratum)


def _duplicates(found: Survey | None) -> dict[str, Any] | None:
    """How much of the set is more of the same."""
    if found is None:
        return None
    surplus = sum(len(members) - 1 for members in found.duplicate_clusters)
    return {
        "surplus": surplus,
        "share": round(surplus / len(found.ids), 4) if found.ids else 0.0,
        "clusters": len(found.duplicate_clusters),
        "largest": max(map(len, found.duplicate_clusters), default=0),
        "related_clusters": len(found.clusters),
        "largest_related": max(map(len, found.clusters), default=0),
    }


def _text(covered: Coverage, found: Survey | None, refused: dict[str, str]) -> str:
    from practicum.pipeline.wording import visible

    lines = [f"{covered.tasks} tasks"]
    for name, counts in sorted(covered.counts.items(), key=lambda item: len(item[1]) > 1):  # lines, then tables
        lines += _counted(name.replace("_", " "), counts, covered.tasks)
    lines += ["", f"{'sizes':<26}{'least':>8}{'median':>8}{'p90':>8}{'most':>8}"]
    labels = {
        "files": "files the gold changes",
        "hunks": "places it changes",
        "lines": "lines added and removed",
        "tests": "frozen tests",
        "words": "words of the statement",
    }
    for name, spread in covered.spreads.items():
        cells = "".join(f"{spread.get(column, float('nan')):>8g}" for column in ("least", "median", "p90", "most"))
        lines.append(f"  {labels[name]:<24}{cells if spread else '  no gold'}")
    if (copies := _duplicates(found)) is not None:
        lines += ["", f"copies: {copies['surplus']} tasks ({copies['share']:.1%}) are the same work as another"]
        if copies["related_clusters"]:
            lines.append(
                f"  groups of which one task gives another away: {copies['related_clusters']}, the largest of "
                f"{copies['largest_related']}; `practicum tasks split` keeps each in one split"
            )
    lines += ["", *_holes(covered)]
    lines += [f"  ✗ {name}: {why}" for name, why in refused.items()]
    return visible("\n".join(lines))


def _counted(title: str, counts: Mapping[str, int], total: int) -> list[str]:
    """A table of `counts`, or a line where there is one value only."""
    if len(counts) < 2:
        return [f"  {title + ':':<12} {next(iter(counts), 'none')}{' (all)' if counts else ''}"]
    shown = list(counts.items())[:_ROWS]
    width = min(max(len(name) for name, _ in shown), 40)
    lines = ["", title]
    for name, count in shown:
        label = name if len(name) <= width else f"{name[: width - 1]}…"
        bar = "█" * max(1, round(_BAR * count / total))
        lines.append(f"  {label:<{width}} {count:>7} {count / total:>6.1%}  {bar}")
    if len(counts) > _ROWS:
        lines.append(f"  … and {len(counts) - _ROWS} more (--json lists them all)")
    return lines


def _holes(covered: Coverage) -> list[str]:
    head = (
        f"cells (domain × kind of bug × size × difficulty) with {covered.minimum} tasks or more: "
        f"{covered.covered} of {covered.cells}"
    )
    if not covered.holes:
        return [f"{head}; no holes"]
    lines = [head, f"holes: {len(covered.holes)}"]
    for hole in covered.holes[:_HOLES]:
        lines.append(f"  {'empty' if not hole.count else f'only {hole.count}':<8} {hole}")
    if len(covered.holes) > _HOLES:
        lines.append(f"  … and {len(covered.holes) - _HOLES} more (--json lists them all)")
    return lines
