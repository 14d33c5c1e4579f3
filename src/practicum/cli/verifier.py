"""`practicum verifier`: is the judge itself to be trusted?

Owns: the group `verifier` (other modules add commands to `app`) and its command `audit`.
Invariant: an audit exits 0 only where no attack was rewarded and no right solution was rejected.
Must not know: how an attack is made or judged.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import INFRASTRUCTURE, NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.curation.soundness.redteam import Scope
    from practicum.curation.soundness.redteam_report import Audit, Trial
    from practicum.records.task import Task

app = typer.Typer(help="Attack, watch and re-run the judge.", no_args_is_help=True)

_VARIANTS = ("mutants", "equivalents")
_SHOWN = 10  # of each list of trials, for people; --json has them all


@app.command()
def audit(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    tasks: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only N tasks, drawn by the seed.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND|ID", help="Only attacks of a kind, or one; or mutants; or equivalents. Repeatable."),
    ] = None,
    attacks: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="A folder of further attacks, a TOML file each.")
    ] = None,
    variants: Annotated[
        int, typer.Option(min=1, metavar="N", help="At most N wrong mutants and N equivalents of each gold.")
    ] = 16,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write the scripts and diffs of what went wrong.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    concurrency: Annotated[int, typer.Option(min=1, help="Attempts at once.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Attack the judge on TASKSET, and give it right and wrong solutions: how often is it fooled?"""
    from practicum.curation.soundness.redteam import Scope
    from practicum.tasks.taskset import load_taskset
    from practicum.verification.redteam.catalogue import load_catalogue

    catalogue = load_catalogue(*(attacks or ()))
    names = tuple(only or ())
    chosen = tuple(name for name in names if name not in _VARIANTS)
    if names:
        catalogue = catalogue.only(chosen) if chosen else type(catalogue)((), catalogue.without)
    mutants, equivalents = (variants if not names or kind in names else 0 for kind in _VARIANTS)
    loaded = load_taskset(taskset)
    if tasks is not None and tasks < len(loaded):
        loaded = sorted(random.Random(f"audit-{seed}").sample(loaded, tasks), key=lambda task: task.id)
    found = asyncio.run(_audit(loaded, Scope(catalogue, mutants, equivalents, seed), concurrency))
    wrong = [*found.rewarded, *found.unnoticed, *found.rejected, *found.accepted, *found.undecided]
    kept = _keep(wrong, save) if wrong and (save or not as_json) else None
    emit(found.document(), _text(found, taskset, kept), as_json=as_json)
    if not found.sound:
        raise typer.Exit(NEGATIVE)
    if found.undecided:
        raise typer.Exit(INFRASTRUCTURE)


async def _audit(tasks: list[Task], scope: Scope, concurrency: int) -> Audit:
    from practicum.curation.soundness.redteam import audit as run
    from practicum.pipeline.execute import open_workshop

    progress: list[Progress] = []

    def on_done(_done: int, total: int) -> None:
        if not progress:
            progress.append(Progress("trials", total))
        progress[0].advance()

    async with open_workshop(concurrency) as workshop:
        return await run(workshop, tasks, scope, on_done=on_done)


def _keep(trials: list[Trial], folder: Path | None) -> Path:
    """Write what each of `trials` handed in below `folder`, or below a new one; the folder."""
    root = folder or Path(tempfile.mkdtemp(prefix="practicum-audit-"))
    root.mkdir(parents=True, exist_ok=True)
    for trial in trials:
        (root / _file(trial)).write_text(trial.work, encoding="utf-8")
    return root


def _file(trial: Trial) -> str:
    words = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{trial.task_id}.{trial.role}.{trial.name}")
    return f"{words[:150]}.{'sh' if trial.role in ('attack', 'control') else 'diff'}"


def _text(audit: Audit, taskset: Path, kept: Path | None) -> str:
    from practicum.curation.soundness.redteam_report import reasons_left_out
    from practicum.pipeline.wording import visible

    document = audit.document()
    rows: list[tuple[str, ...]]
    rows = [("kind of attack", "tried", "rewarded", "flagged", "failed plainly", "unnoticed")]
    rows += [(kind, *(str(number) for number in counts.values())) for kind, counts in document["kinds"].items()]
    lines = [_headline(document), "", *_table(rows), ""]
    rows = [("task", "runner", "attacks", "rewarded", "flagged", "wrong accepted", "right rejected")]
    for task in document["tasks"]:
        attacks, wrong, right = task["attacks"], task["wrong_mutants"], task["equivalents"]
        numbers = (str(attacks[name]) for name in ("tried", "rewarded", "flagged"))
        shares = (_of(wrong["accepted"], wrong["tried"]), _of(right["rejected"], right["tried"]))
        rows.append((task["task"], task["runner"], *numbers, *shares))
    lines += _table(rows)
    lines += [f"  {task['task']}: {task['problem']}" for task in document["tasks"] if task["problem"]]
    sections = (
        ("rewarded attacks", audit.rewarded),
        ("attacks that nothing noticed", audit.unnoticed),
        ("right solutions rejected", audit.rejected),
        ("wrong mutants accepted (each may be right after all: read the diff)", audit.accepted),
        ("not decided", audit.undecided),
    )
    folders = _folders(taskset) if kept else {}
    for title, trials in sections:
        if trials:
            most = len(trials) if trials is sections[0][1] else _SHOWN
            lines += ["", f"{title}: {len(trials)}", *_listed(trials, most, folders, kept)]
    left_out = reasons_left_out(audit.tasks)
    if left_out:
        lines += ["", "attacks that do not apply:", *(f"  {n:>4}  {reason}" for reason, n in left_out.most_common())]
    lines += ["", f"rows of the catalogue without an attack: {', '.join(audit.without)} (reasons with --json)"]
    return visible("\n".join(lines))


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns as wide as they must be; the first to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _headline(document: dict[str, Any]) -> str:
    attacks, wrong, right, controls = (document[k] for k in ("attacks", "wrong_mutants", "equivalents", "controls"))
    return (
        f"attacks: {attacks['rewarded']} of {attacks['tried']} rewarded, {attacks['flagged']} flagged, "
        f"{attacks['plain_failures']} failed plainly, {attacks['unnoticed']} unnoticed\n"
        f"wrong mutants: {wrong['accepted']} of {wrong['tried']} accepted "
        f"(false positives: at most {_percent(document['false_positive_bound'])})\n"
        f"equivalents: {right['rejected']} of {right['tried']} rejected "
        f"(false negatives: at most {_percent(document['false_negative_bound'])}); "
        f"gold beside something left behind: {controls['rejected']} of {controls['tried']} rejected\n"
        f"{document['seconds']} s, verifier {document['verifier_version']}; bounds at 95 %"
    )


def _percent(share: object) -> str:
    return f"{100 * share:.1f} %" if isinstance(share, float) else "unknown"


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"


def _listed(trials: list[Trial], most: int, folders: dict[str, Path], kept: Path | None) -> list[str]:
    """A line for each, with how to see it again."""
    lines: list[str] = []
    for trial in trials[:most]:
        verdict = trial.verdict
        what = f"{verdict.outcome}, reward {verdict.reward:+.2f}" if verdict and verdict.reward is not None else ""
        lines.append(f"  {trial.task_id}: {trial.name}  {what or trial.why_undecided}")
        if kept is not None:
            task, file = folders.get(trial.task_id, Path(trial.task_id)), kept / _file(trial)
            how = f"rollout {task} --agent script:{file}" if file.suffix == ".sh" else f"verify {task} --patch {file}"
            lines.append(f"    practicum {how}")
        lines += [f"    | {line}" for line in trial.shown.splitlines()[:8]]
    if len(trials) > most:
        lines.append(f"  … and {len(trials) - most} more (--json lists them all)")
    return lines


def _folders(taskset: Path) -> dict[str, Path]:
    """Where each task of `taskset` lies."""
    from practicum.tasks.harbor import load_task

    return {load_task(path.parent).id: path.parent for path in sorted(taskset.rglob("task.toml"))}
