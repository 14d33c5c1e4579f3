"""`practicum tasks mine`: tasks from a project's own history.

Owns: the command `mine`.
Invariant: exit 0 where tasks were written, 1 where none was; a commit that is refused is normal yield and told by
reason, since most commits are no tasks.
Must not know: how a commit becomes a task.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.curation.mining.mine import Yield


def mine(
    repo: Annotated[Path, typer.Argument(metavar="REPO", help="A git repository: a work tree or a bare one.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where tasks are written; a second run goes on.")],
    limit: Annotated[int, typer.Option(help="How many tasks at most.", min=1)] = 20,
    since: Annotated[str | None, typer.Option(help="A commit or an ISO date: nothing from before it.")] = None,
    budget: Annotated[float | None, typer.Option(help="Wall seconds after which no further commit is tried.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the hash seed that tests are confirmed under.", min=0)] = 0,
    lock: Annotated[Path | None, typer.Option(help="A lock with hashes: what the tests need.")] = None,
    allow_unlicensed: Annotated[bool, typer.Option("--allow-unlicensed", help="Take it without a licence.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn commits that change both sources and tests into tasks: the state before, judged by the commit's tests."""
    from practicum.curation.writers import sole_writer

    start = time.monotonic()
    with sole_writer(out / ".practicum", "mine"):
        found, phases = asyncio.run(_mine(repo, out, limit, since, budget, seed, lock, allow_unlicensed))
    refused = dict(sorted(found.refused.items(), key=lambda item: (-item[1], item[0])))
    seconds = {name: round(value, 1) for name, value in sorted(phases.items())}
    seconds["all"] = round(time.monotonic() - start, 1)
    document = {
        "repository": str(repo),
        "commits": found.commits,
        "candidates": found.candidates,
        "from_journal": found.from_journal,
        "written": len(found.tasks),
        "refused": refused,
        "tasks": found.tasks,
        "stopped": found.stopped,
        "seconds": seconds,
    }
    many = "task" if len(found.tasks) == 1 else "tasks"
    lines = [f"{len(found.tasks)} {many} below {out}, of {found.candidates} candidates among {found.commits} commits"]
    lines += [f"  {count:5d}  {reason}" for reason, count in refused.items()]
    lines.append("  " + ", ".join(f"{name} {value:g} s" for name, value in seconds.items()))
    if found.tasks:
        lines.append(f"next: practicum tasks check {out}")
    emit(document, "\n".join(lines), as_json=as_json)
    if not found.tasks:
        raise typer.Exit(NEGATIVE)


async def _mine(
    repo: Path,
    out: Path,
    limit: int,
    since: str | None,
    budget: float | None,
    seed: int,
    lock: Path | None,
    allow_unlicensed: bool,
) -> tuple[Yield, dict[str, Any]]:
    from practicum.curation.mining.digging import Dig
    from practicum.curation.mining.mine import STATE
    from practicum.curation.mining.mine import mine as walk
    from practicum.curation.projects.environment import layer_for
    from practicum.curation.projects.programs import Programs
    from practicum.curation.projects.reading import read_project
    from practicum.pipeline.execute import open_boxes
    from practicum.tasks.repositories import open_repository

    repository = open_repository(repo)
    newest = read_project(repo, rev="HEAD", allow_unlicensed=allow_unlicensed)
    layer = layer_for(newest, out / STATE, lock)
    progress = Progress("candidates", 0)
    async with open_boxes() as provider:
        dig = Dig(repository, provider, Programs(provider), newest.name, layer, allow_unlicensed, seed)
        found = await walk(
            dig,
            out,
            limit=limit,
            since=since,
            budget_s=budget,
            concurrent=os.cpu_count() or 1,
            on_done=lambda commit, what: progress.advance(f"{commit.sha[:10]} {what}"),
        )
    return found, dict(dig.seconds)
