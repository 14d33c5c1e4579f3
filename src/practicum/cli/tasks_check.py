"""`practicum tasks check`: a task set through the gates.

Owns: the command `check`.
Invariant: a task is admitted on evidence from real boxes only; every decision of a full check is in the ledger before
the command ends. Exit code 3 where this host kept a task from being decided, 1 where a task is not admitted.
Must not know: what gates do.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli import tasks_check_text
from practicum.cli.failure import INFRASTRUCTURE, NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.curation.gates.cache import Cache
    from practicum.curation.gates.contract import Settings, Surroundings
    from practicum.curation.gates.effort import Effort
    from practicum.curation.ledger import Standing
    from practicum.records.assessment import Assessment

_TELLING_S = 0.5


def check(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    gates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Only these gates and those they need. Decides nothing; exits 0 where all of them passed. Repeatable.",
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Judgements of the gold, and of doing nothing.")] = 3,
    attacks: Annotated[str, typer.Option(metavar="N|all", help="Attacks of the red team on each task.")] = "8",
    mutants: Annotated[int, typer.Option(min=1, metavar="N", help="At most N wrong variants of each kind.")] = 8,
    protected: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="A task set that no task may be like. Repeatable.")
    ] = None,
    require_difficulty: Annotated[
        bool, typer.Option("--require-difficulty", help="Admit only what reference policies were measured on.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where records are kept, instead of TASKSET/.practicum (of a release: beside it)."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask every gate again, whatever is known.")] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Pieces of work at once; by default by cores.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Admit, quarantine or reject the tasks of TASKSET, each by all gates, and write the decisions to its ledger.

    A directory that cannot be read as a task is rejected by the gate schema, and keeps no other from being checked.
    Exits 1 where a task was not admitted, or did not pass a gate that was asked for.
    """
    from practicum.curation.gates.cache import Cache, decided_on
    from practicum.curation.gates.contract import Settings, Surroundings
    from practicum.curation.gates.effort import Effort
    from practicum.curation.gates.ladder import chosen
    from practicum.curation.gates.records import records_of
    from practicum.curation.ledger import FILE
    from practicum.curation.writers import sole_writer
    from practicum.tasks.taskset import load_taskset, read_taskset

    names = [name.strip() for each in gates or () for name in each.split(",") if name.strip()]
    wanted = chosen(names)
    settings = Settings(
        repeat=repeat, attacks=_count(attacks), mutants=mutants, require_difficulty=require_difficulty, seed=seed
    )
    tasks, refused = read_taskset(taskset)
    folder = state or records_of(taskset)
    around = Surroundings(tasks, {str(path): load_taskset(path) for path in protected or ()}, folder)
    with sole_writer(folder, "check"):
        kept, effort = Cache(folder, fresh=fresh, reaches=decided_on(folder / FILE)), Effort()
        try:
            found = asyncio.run(_check(around, settings, sorted(wanted), kept, effort, concurrency))
        except KeyboardInterrupt:
            how = " without --fresh" if fresh else ""
            raise KeyboardInterrupt(f"stopped cleanly; what was found is kept: run it again{how} to go on") from None
        _conclude(taskset, folder / FILE, found, refused, wanted, kept, effort, some=bool(names), as_json=as_json)


def _conclude(
    taskset: Path,
    ledger: Path,
    found: list[Assessment],
    refused: Mapping[str, str],
    wanted: Collection[str],
    kept: Cache,
    effort: Effort,
    *,
    some: bool,
    as_json: bool,
) -> None:
    """Record what was found, unless `some` gates alone were asked, and tell it."""
    from practicum.curation.gates.check import unreadable
    from practicum.curation.ledger import record_assessments, stages

    # What some gates alone have said decides nothing.
    unlike = {}
    if not some:
        unlike = record_assessments(ledger, found, checks=kept.head, again=not kept.reached)
    held = tasks_check_text.held(found, stages(ledger))
    found += [unreadable(*each) for each in refused.items()]
    summary = _summary(found, held, wanted, kept, effort)
    summary["next"] = _next(taskset, summary, decided=not some)
    emit(
        {
            "tasks": [tasks_check_text.document(each, held) for each in found],
            "summary": summary,
            "ledger_differs": unlike,
        },
        tasks_check_text.text(found, held, wanted if some else (), summary, unlike),
        as_json=as_json,
    )
    if any(_faulty(each) for each in found):
        raise typer.Exit(INFRASTRUCTURE)
    if held or not all(tasks_check_text.passed(each, wanted) for each in found):
        raise typer.Exit(NEGATIVE)


def _next(taskset: Path, summary: Mapping[str, Any], *, decided: bool) -> str:
    """The command to go on with."""
    place = shlex.quote(str(taskset))
    if summary["infrastructure"] or not decided:
        return f"practicum tasks check {place}"
    if summary["admitted"]:
        return f"practicum tasks review {place}   then: practicum tasks release {place} OUT"
    return f"practicum tasks ledger {place}"


def _count(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a number of at least 1 nor `all`", param_hint="--attacks")
    return int(text)


async def _check(
    around: Surroundings,
    settings: Settings,
    gates: Sequence[str],
    cache: Cache,
    effort: Effort,
    concurrency: int | None,
) -> list[Assessment]:
    from practicum.curation.gates.check import check_set
    from practicum.curation.gates.opening import open_bench
    from practicum.pipeline.execute import open_boxes

    async with open_boxes() as provider, open_bench(provider, concurrency) as bench:
        counts = Counter[str]()
        telling = asyncio.create_task(_tell(counts, len(around.tasks)))
        try:
            found = await check_set(
                bench,
                around.tasks,
                settings,
                gates=gates,
                cache=cache,
                around=around,
                on_result=lambda _: counts.update(["results"]),
                on_done=lambda _: counts.update(["tasks"]),
            )
        finally:
            telling.cancel()
        effort.pause()
    return found


async def _tell(counts: Mapping[str, int], tasks: int) -> None:
    """How far it is, again and again: gates take long, so that nothing new is worth saying as well."""
    from practicum.curation.gates.ladder import LADDER

    progress = Progress("gate results", total := tasks * sum(not gate.of_set for gate in LADDER))
    while True:
        await asyncio.sleep(_TELLING_S)
        progress.say(f"gate results {counts['results']} of {total}, {counts['tasks']} of {tasks} tasks done")


def _summary(
    found: Sequence[Assessment], held: Mapping[str, Standing], wanted: Collection[str], cache: Cache, effort: Effort
) -> dict[str, Any]:
    from practicum.curation.gates.ladder import LADDER, first_failing

    decisions = Counter(tasks_check_text.stands(each, held)[0] for each in found)
    failing = Counter(name for each in found if (name := first_failing(each.gates, each.decision)) is not None)
    seconds = {gate.name: round(sum(each.gates[gate.name].seconds for each in found), 2) for gate in LADDER}
    spent = effort.document()
    return {
        "tasks": len(found),
        **{name: decisions[name] for name in ("admitted", "quarantined", "rejected", "retired")},
        "provisional": sum(
            "provisional" in each.reason for each in found if tasks_check_text.stands(each, held)[0] == "admitted"
        ),
        "passed_all_asked": sum(tasks_check_text.passed(each, wanted) for each in found),
        "first_failing_gate": dict(failing.most_common()),
        "infrastructure": sum(map(_faulty, found)),
        "seconds_by_gate": seconds,
        "reused_results": cache.reused,
        "altered_results": cache.altered,
        "effort": spent | {"cpu_s_per_task": round(spent["cpu_s"] / len(found), 2)},
    }


def _faulty(each: Assessment) -> bool:
    return any(result.evidence.get("fault") for result in each.gates.values())
