"""`practicum tasks decontaminate`: what of a task set is too like protected tasks, or like itself.

Owns: the command `decontaminate`.
Invariant: nothing is changed in place; every removal names the task and the match that it rests on.
Must not know: how likeness is found.
"""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.curation.similarity import Survey
    from practicum.curation.similarity.cleaning import Cleaning, Removal

_SHOWN = 20  # removals for people; --json has them all
_WIDE = 100  # characters of a span


def decontaminate(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A folder of task directories.")],
    against: Annotated[
        list[Path] | None, typer.Option(metavar="PROTECTED", help="A protected task set. Repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write what is left.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.2,
            max=1.0,
            help="Jaccard index from which texts count as near, for all facets. The other kinds of match count "
            "whatever it is: equal, renamed, long passages, golds shown in files, repositories.",
        ),
    ] = None,
    keep_duplicates: Annotated[bool, typer.Option(help="Copies inside the set stay.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find tasks that give protected ones away, and copies inside the set; write what is left to DIR.

    Compared are statements, the code that the gold changes (also under other names), its patch and the frozen tests;
    and what a gold brings in is looked for in the files of other tasks, which within TASKSET is a fault only across
    splits. Copies of one task, and tasks of which one gives another away, are put into one split. Exits 1 where
    something was found.
    """
    from practicum.curation.similarity import JoinedFolders, Rules, TaskFolders, survey
    from practicum.curation.similarity.cleaning import clean
    from practicum.curation.similarity.copying import check_out, write_set

    source, protected = TaskFolders(taskset), JoinedFolders([TaskFolders(path) for path in against or ()])
    if out is not None:
        check_out(out, taskset)
    progress = Progress("tasks read", len(source))

    def on_progress(_stage: str, done: int, total: int) -> None:
        progress.done = done - 1
        progress.advance()

    found = survey(source, protected, Rules(threshold=threshold), on_progress=on_progress)
    done = clean(found, duplicates=not keep_duplicates)
    if out is not None:
        place, split = dict(zip(found.ids, found.places, strict=True)), dict(zip(found.ids, found.splits, strict=True))
        split |= {task: target for task, (_, target) in done.moved.items()}
        written = Progress("tasks written", len(done.kept))
        write_set(source, {place[task]: split[task] for task in done.kept}, out, on_done=written.advance)
    refused = {str(source.folder(at)): why for at, why in found.refused.items()}
    refused |= {str(protected.folder(at)): why for at, why in found.refused_protected.items()}
    emit(_document(found, done, refused, out), _text(found, done, refused, out), as_json=as_json)
    if done.removed or done.moved or refused:
        raise typer.Exit(NEGATIVE)


def _document(found: Survey, done: Cleaning, refused: dict[str, str], out: Path | None) -> dict[str, Any]:
    return {
        "tasks": len(found.ids),
        "kept": len(done.kept),
        "removed": [removal.document() for removal in done.removed],
        "moved": [{"task": task, "from": old, "to": new} for task, (old, new) in done.moved.items()],
        "clusters": found.clusters,
        "reveals": {task: [match.document() for match in matches] for task, matches in found.reveals.items()},
        "refused": refused,
        "out": None if out is None else str(out),
        "boilerplate": found.common,
        "seconds": found.seconds,
    }


def _text(found: Survey, done: Cleaning, refused: dict[str, str], out: Path | None) -> str:
    because = Counter(removal.because for removal in done.removed)
    lines = [
        f"{len(found.ids)} tasks: {because['contaminated']} contaminated, {because['duplicate']} copies inside the "
        f"set, {len(done.kept)} left"
    ]
    for reason in ("contaminated", "duplicate"):
        chosen = [removal for removal in done.removed if removal.because == reason]
        if chosen:
            kinds = Counter(
                f"{removal.matches[0].kind} {removal.matches[0].facet}" for removal in chosen if removal.matches
            )
            lines += ["", f"{reason}: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}"]
            lines += [line for removal in chosen[:_SHOWN] for line in _removal(removal)]
            lines += [f"  … and {len(chosen) - _SHOWN} more (--json lists them all)"] if len(chosen) > _SHOWN else []
    if done.moved:
        lines += ["", f"in another split than a task that gives them away: {len(done.moved)}"]
        lines += [
            f"  {task}: {old} → {new}{_because(found, task)}" for task, (old, new) in [*done.moved.items()][:_SHOWN]
        ]
        lines += [f"  … and {len(done.moved) - _SHOWN} more"] if len(done.moved) > _SHOWN else []
    lines += [f"  ✗ {name}: {reason}" for name, reason in refused.items()]
    if out is not None:
        lines += ["", f"wrote {len(done.kept)} tasks below {out}; next: practicum tasks check {shlex.quote(str(out))}"]
    elif done.removed or done.moved:
        lines += ["", "nothing was changed; --out DIR writes the set without them"]
    return "\n".join(lines)


def _because(found: Survey, task: str) -> str:
    """Whose gold the files of `task` show in another split, or who shows its own."""
    split = dict(zip(found.ids, found.splits, strict=True))
    for match in found.reveals.get(task, ()):
        if split[match.other] != split[task]:
            return f" (its files show the gold of {match.other})"
    for other, matches in found.reveals.items():
        if split[other] != split[task] and any(match.other == task for match in matches):
            return f" ({other} shows its gold)"
    return ""


def _removal(removal: Removal) -> list[str]:
    """Which match, and the text that both hold."""
    from practicum.pipeline.wording import visible

    if not removal.matches:
        return [f"  ✗ {removal.task}: a copy by way of other copies"]
    best = removal.matches[0]
    score = "" if best.kind in ("exact", "renamed", "repository") else f" {best.score:.2f}"
    others = len({(match.facet, match.other) for match in removal.matches}) - 1
    more = f" (and {others} more)" if others else ""
    lines = [f"  ✗ {removal.task}: {best.kind} {best.facet}{score}, {best.other}{more}"]
    if best.span:
        span = best.span if len(best.span) <= _WIDE else f"{best.span[: _WIDE - 1]}…"
        lines.append(f"      “{visible(span)}”")
    return lines
