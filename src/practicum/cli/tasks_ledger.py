"""`practicum tasks ledger` and `practicum tasks decide`: what was decided on tasks, and a person's own decision.

Owns: these two commands.
Invariant: the chain is checked before anything of it is shown; a person's decision names the person and the reason.
Must not know: how gates or reviews come to theirs.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, emit
from practicum.errors import TaskError

if TYPE_CHECKING:
    from practicum.curation.ledger import Entry, Ledger
    from practicum.records.task import Task

TasksetArgument = Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")]


_SHOWN = 40  # tasks told one by one, for people


class ManualStage(StrEnum):
    """What a person can make of a task."""

    admitted = "admitted"
    quarantined = "quarantined"
    rejected = "rejected"
    retired = "retired"


def ledger(
    taskset: TasksetArgument,
    only: Annotated[str | None, typer.Option("--task", metavar="ID", help="The history of this task alone.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Name all tasks, however many there are.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Where each task stands by the ledger, and by which decisions; checks that nothing in it was altered."""
    from practicum.curation.ledger import Ledger, ledger_path
    from practicum.tasks.taskset import read_taskset

    tasks, refused = read_taskset(taskset)
    book = Ledger(ledger_path(taskset))
    if only is not None:
        tasks = [task for task in tasks if task.id == only]
        if not tasks and not any(entry.task == only for entry in book.entries):
            raise TaskError(f"{taskset}: there is no task {only!r}, and the ledger names none", fix="check the id")
    contents = {task.content for task in tasks}
    history = [entry for entry in book.entries if only is None or entry.task == only]
    document = {
        "ledger": str(book.path),
        "entries": len(book.entries),
        "head": book.head,
        "stages": dict(sorted(Counter(_stage(book, task) for task in tasks).items())),
        "tasks": [_standing(book, task) for task in tasks],
        "history": [_document(entry, current=entry.digest in contents) for entry in history],
        "refused": refused,
    }
    emit(document, _text(document, detailed=only is not None, every=every), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)


def decide(
    taskset: TasksetArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Its id.")],
    stage: Annotated[ManualStage, typer.Argument(metavar="STAGE", help="admitted, quarantined, rejected or retired.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who decides.")],
    as_json: JsonOption = False,
) -> None:
    """Decide on TASK as it stands now, by hand; recorded in the ledger with who and why."""
    from practicum.curation.ledger import PERSON, Ledger, ledger_path, record
    from practicum.curation.review import reviewer_name
    from practicum.tasks.taskset import read_taskset

    found = next((each for each in read_taskset(taskset)[0] if each.id == task), None)
    if found is None:
        raise TaskError(
            f"{taskset}: there is no task {task!r}", fix=f"`practicum tasks ledger {taskset} --all` names them"
        )
    path = ledger_path(taskset)
    record(
        path,
        actor=f"{PERSON}:{reviewer_name(by)}",
        task_id=found.id,
        digest=found.content,
        stage=stage.value,
        reason=reason,
        evidence={"decided": "by hand"},
    )
    checked = Ledger(path).gated(found.content) is not None
    text = f"{found.id} is now {stage.value}; recorded in {path}"
    if stage is ManualStage.admitted and not checked:
        text += (
            "\nno gate has looked at it as it stands now, and a release takes only checked tasks: "
            f"practicum tasks check {taskset}"
        )
    document = {"task": found.id, "content": found.content, "stage": stage.value, "by": by, "reason": reason}
    emit(document | {"checked": checked}, text, as_json=as_json)


def _stage(book: Ledger, task: Task) -> str:
    standing = book.standing(task.content)
    return standing.stage if standing else "candidate"


def _standing(book: Ledger, task: Task) -> dict[str, Any]:
    standing = book.standing(task.content)
    entry = standing.entry if standing else None
    return {
        "task": task.id,
        "content": task.content,
        "stage": _stage(book, task),
        "actor": entry.actor if entry else None,
        "reason": entry.reason if entry else "nothing was decided on it as it stands now",
        "needs_a_person": bool(standing and standing.held),
    }


def _document(entry: Entry, *, current: bool) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "time": entry.time,
        "task": entry.task,
        "content": entry.digest,
        "current": current,
        "stage": entry.stage,
        "actor": entry.actor,
        "reason": entry.reason,
        "evidence_digest": entry.evidence_digest,
        "evidence": entry.evidence,
    }


def _text(document: dict[str, Any], *, detailed: bool, every: bool) -> str:
    from practicum.pipeline.wording import visible

    counts = ", ".join(f"{number} {stage}" for stage, number in document["stages"].items()) or "no task"
    lines = [f"{document['entries']} decisions, chain intact, head {document['head'][:12]}", counts]
    shown = [each for each in document["tasks"] if detailed or each["stage"] != "admitted"]
    most = len(document["tasks"]) if every else _SHOWN
    for each in shown[:most]:
        held = "  (only a person may bring it back)" if each["needs_a_person"] else ""
        said = f" by {each['actor']}" if each["actor"] else ""
        lines.append(f"  {each['stage']:<12}{each['task']}{said}: {each['reason']}{held}")
    if len(shown) > most:
        lines.append(f"  … and {len(shown) - most} more that are not admitted (--all names them)")
    admitted = [each["task"] for each in document["tasks"] if each not in shown]
    if admitted:
        more = f" … and {len(admitted) - most} more (--all names them)" if len(admitted) > most else ""
        lines.append(f"  {'admitted':<12}{', '.join(admitted[:most])}{more}")
    lines += [f"  ✗ {folder}: {why}" for folder, why in document["refused"].items()]
    if detailed:
        lines.append("history, oldest first:")
        for each in document["history"]:
            other = "" if each["current"] else f"  (another content, {each['content'][:12]})"
            lines.append(
                f"  {each['seq']:>5}  {each['time'][:19]}  {each['stage']:<12}{each['actor']}: {each['reason']}"
                f"  [evidence {each['evidence_digest'][:12]}]{other}"
            )
    return "\n".join(visible(line).replace("\n", " ") for line in lines)
