"""`practicum runs`: what earlier runs left on disk.

Owns: the commands `list`, `show`, `trajectory`, `export`.
Invariant: nothing here writes to a run folder.
Must not know: how runs are made.
"""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli import runs_branch
from practicum.cli.output import JsonOption, emit
from practicum.errors import ConfigError

if TYPE_CHECKING:
    from practicum.records.trajectory import Trajectory

app = typer.Typer(
    help="Look at runs: list them, show one, read one trajectory, branch it, export rows.", no_args_is_help=True
)
app.command()(runs_branch.branch)
RUNS = Path("runs")


@app.command("list")
def list_command(
    root: Annotated[Path, typer.Argument(help="Folder of run folders.")] = RUNS, as_json: JsonOption = False
) -> None:
    """The runs under ROOT, oldest first."""
    from practicum.pipeline.runfolder import list_runs

    if not root.is_dir() and (root != RUNS or root.exists()):  # before the first run there is no runs/
        raise ConfigError(f"{root} is not a folder", fix="name the folder that holds the run folders")
    runs = list_runs(root)
    document = [
        {"id": r.id, "path": str(r.path), "status": r.status, "updates": r.updates, "summary": r.summary} for r in runs
    ]
    lines = [f"{r.id:<40} {r.status:<12} {r.updates:>4} updates  {_held_out(r.summary)}".rstrip() for r in runs]
    emit(document, "\n".join(lines) or f"no runs under {root}", as_json=as_json)


@app.command()
def show(run: Annotated[Path, typer.Argument(help="Run folder.")], as_json: JsonOption = False) -> None:
    """One run: its status, the metrics of its last update, its stored trajectories, its summary."""
    from practicum.pipeline.runfolder import RunFolder

    with RunFolder.open(run) as folder:
        metrics, batches = folder.metrics(), folder.store.batches()
        document: dict[str, Any] = {
            "id": folder.id,
            "path": str(folder.path),
            "status": folder.status,
            "config": folder.config.model_dump(mode="json"),
            "updates": sum(row.get("kind") == "update" for row in metrics),
            "last_metrics": next((row for row in reversed(metrics) if row.get("kind") == "update"), None),
            "trajectories": {batch.path.name: batch.count for batch in batches},
            "report": str(folder.report_path) if folder.report_path.is_file() else None,
            "summary": folder.summary(),
        }
    lines = [
        f"{document['id']}: {document['status']}, {document['updates']} updates",
        *(f"  {key}: {value}" for key, value in (document["last_metrics"] or {}).items()),
        f"  trajectories: {sum(document['trajectories'].values())} in {len(document['trajectories'])} files",
        f"  report: {document['report'] or 'none yet'}",
    ]
    if held_out := _held_out(document["summary"]):
        lines.append(f"  {held_out}")
    emit(document, "\n".join(lines), as_json=as_json)


@app.command()
def trajectory(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    trajectory_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Leave out to list the ids.")] = None,
    as_json: JsonOption = False,
) -> None:
    """One trajectory, turn by turn; or the ids of all of them."""
    from practicum.pipeline.runfolder import RunFolder

    with RunFolder.open(run) as folder:
        if trajectory_id is None:
            rows = list(folder.store.rows(["id", "phase", "update", "task_id", "stop_reason", "outcome", "reward"]))
            lines = [f"{r['id']:<50} {r['phase']:<10} {r['outcome'] or r['stop_reason']}" for r in rows]
            emit(rows, "\n".join(lines) or "no trajectories", as_json=as_json)
            return
        found = folder.store.find(trajectory_id)
    if found is None:
        raise ConfigError(
            f"there is no trajectory {trajectory_id!r} in {run}",
            fix=f"`practicum runs trajectory {run}` lists the ids",
        )
    emit(_document(found), _story(found), as_json=as_json)


class _As(StrEnum):
    sft = "sft"
    pairs = "pairs"


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    target: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines file to make.")],
    kind: Annotated[_As, typer.Option("--as", help="Successes to imitate, or pairs of success and failure.")] = _As.sft,
    most: Annotated[int, typer.Option(min=1, help="Most pairs of one task.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Judged attempts at training tasks as rows for supervised fine-tuning, or as preference pairs."""
    from practicum.pipeline.rows import export_rows

    facts = export_rows(run, target, kind=kind.value, most=most)
    emit(facts, f"{facts['rows']} rows of {facts['tasks']} tasks are in {target}", as_json=as_json)


def _held_out(summary: dict[str, Any] | None) -> str:
    held_out = (summary or {}).get("held_out")
    if not held_out:
        return ""
    before, after = held_out["before"]["rate"], held_out["after"]["rate"]
    return f"held-out success {before:.0%} → {after:.0%}"


def _document(trajectory: Trajectory) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: plain(value) for key, value in pairs}

    return dataclasses.asdict(trajectory, dict_factory=build)


def _story(trajectory: Trajectory) -> str:
    from practicum.pipeline.wording import visible

    lines = [f"{trajectory.id}: task {trajectory.task_id}, {trajectory.stop_reason}, reward {trajectory.reward}"]
    for turn in trajectory.turns:
        lines += [
            f"--- turn {turn.index}: {len(turn.sampled_ids)} tokens sampled by version {turn.policy_version}",
            turn.text,
            f"--- observation ({turn.action.tool})",
            turn.observation,
        ]
    if trajectory.fault is not None:
        lines.append(f"--- fault {trajectory.fault.kind}: {trajectory.fault.message}")
    if trajectory.verdict is not None:
        verdict = trajectory.verdict
        lines.append(f"--- verdict: {verdict.status}, {verdict.outcome}, reward {verdict.reward}")
        lines += [f"  {status} {name}" for name, status in verdict.tests.items()]
    return visible("\n".join(lines))
