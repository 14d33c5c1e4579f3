"""`practicum tasks review`: tasks shown to a person, a fixed form, and what the reviews come to.

Owns: this command.
Invariant: a review is recorded whole before the next task is shown, or not at all; a reviewer never sees another's
answers. A defect is in quarantine when the command ends.
Must not know: how a sample is drawn or rates are estimated.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, emit
from practicum.cli.tasks_ledger import TasksetArgument
from practicum.errors import ConfigError, TaskError

if TYPE_CHECKING:
    from practicum.curation.assessments import Assessments
    from practicum.curation.ledger import Ledger
    from practicum.curation.review import Form, Review, Reviews
    from practicum.curation.review_report import ReviewReport
    from practicum.curation.reviewqueue import Queue
    from practicum.records.task import Task

_HELP = """  y/n or a number answers · b one question back · s skip this task
  i instruction again · p page again · t all tests · g all of the gold · w PATH a file of the workspace
  q save and leave (finished reviews are kept, this one is not)"""


@dataclass(frozen=True, slots=True)
class Desk:
    """What a reviewer works with. `tasks` are by content; `unreadable` maps folders of other tasks to why."""

    tasks: dict[str, Task]
    unreadable: dict[str, str]
    reviews: Reviews
    ledger: Ledger
    found: Assessments


def review(
    taskset: TasksetArgument,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who reviews.")] = None,
    sample: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many tasks are drawn; flagged ones come on top.")
    ] = 60,
    seed: Annotated[
        int, typer.Option(min=0, help="Draws the sample; reviewers who are to be compared give the same.")
    ] = 0,
    strata: Annotated[str, typer.Option(metavar="A,B", help="By which to draw: domain, source, difficulty, split.")] = (
        "domain,source,difficulty"
    ),
    only: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="This task alone, drawn or not; settles a dispute.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Forms as JSON lines, with the key `task`, instead of asking.")
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="What all reviews come to.")] = False,
    target: Annotated[
        float | None, typer.Option(min=0, max=1, metavar="SHARE", help="With --report: the most defects allowed.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at a sample of TASKSET and answer a fixed form for each; with --json alone, print the queue.

    The queue of one reviewer, with --by, is what that one has not looked at yet; without a name it is all of it.
    """
    from practicum.curation.review import quarantine_defects, reviewer_name

    desk = _open(taskset)
    quarantine_defects(desk.reviews, desk.ledger)  # what an earlier process may have left undone
    if report:
        _report(desk, target, as_json=as_json)
        return
    listed = as_json and answers is None
    if by is None and not listed:
        raise ConfigError(
            "a review needs the reviewer's name",
            fix="add --by NAME, or --report to see what they come to, or --json to print the queue",
        )
    name = reviewer_name(by) if by is not None else None
    queue = _queue(desk, sample, seed, [part.strip() for part in strata.split(",") if part.strip()])
    if answers is not None and name is not None:
        _from_file(desk, queue, name, answers, as_json=as_json)
        return
    waiting = _waiting(desk, queue, name, only)
    if name is None or as_json:
        drawn = [asdict(item) for item in queue.items if item.content in waiting]
        document = {"queue": queue.id, "reviewer": name, "drawn": len(queue.items), "waiting": drawn}
        emit(document | {"unreadable": desk.unreadable}, "", as_json=True)
        return
    # A task that was asked for is not a random one, even where it was drawn too.
    _ask_all(desk, queue, name, waiting, drawn=only is None)


def _open(taskset: Path) -> Desk:
    from practicum.curation.assessments import FILE, Assessments
    from practicum.curation.ledger import Ledger, ledger_path
    from practicum.curation.review import Reviews, reviews_path
    from practicum.pipeline.wording import visible
    from practicum.tasks.taskset import read_taskset

    path = ledger_path(taskset)
    read, refused = read_taskset(taskset)
    for folder, why in refused.items():
        print(visible(f"  ✗ {folder}: {why}; it is left out"), file=sys.stderr)
    tasks = {task.content: task for task in read}
    unreadable = {str(folder): str(why) for folder, why in refused.items()}
    return Desk(tasks, unreadable, Reviews(reviews_path(taskset)), Ledger(path), Assessments(path.with_name(FILE)))


def _queue(desk: Desk, sample: int, seed: int, strata: list[str]) -> Queue:
    from practicum.curation.reviewqueue import draw_queue, flagged_tasks

    stages = desk.ledger.stages()
    nothing_decided = not any(content in stages for content in desk.tasks)
    assessed = {content: found for content in desk.tasks if (found := desk.found.get(content))}
    drawn = draw_queue(
        list(desk.tasks.values()),
        list(desk.tasks),
        releasable=lambda content: nothing_decided or (content in stages and stages[content].stage == "admitted"),
        flagged=flagged_tasks(assessed, {content: stages[content] for content in desk.tasks if content in stages}),
        sample=sample,
        seed=seed,
        strata=strata,
    )
    return desk.reviews.open_queue(drawn)


def _waiting(desk: Desk, queue: Queue, name: str | None, only: str | None) -> list[str]:
    """What is to be looked at by a reviewer; all that was drawn where no reviewer is named."""
    if only is None:
        if name is None:
            return [item.content for item in queue.items if item.content in desk.tasks]
        return desk.reviews.left(queue, name)
    found = [content for content, task in desk.tasks.items() if task.id == only]
    if not found:
        raise TaskError(f"there is no task {only!r}", fix="check the id")
    return found


def _ask_all(desk: Desk, queue: Queue, name: str, waiting: list[str], *, drawn: bool) -> None:
    from practicum.cli.review_form import Left, fill_in
    from practicum.curation.reviewqueue import Item

    if sys.stdin is None:
        raise ConfigError("there is no standard input to answer on", fix="give the forms with --answers FILE")
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]  # what is no UTF-8 is no answer either
    items = {item.content: item for item in queue.items}
    done: list[Review] = []
    print(f"{name}: {len(waiting)} tasks to look at{_beside(desk)}; ? for help\n{_HELP}")
    try:
        for number, content in enumerate(waiting, 1):
            task = desk.tasks[content]
            item = items.get(content, Item(task.id, content, "asked for"))
            form = fill_in(task, item, desk.found.get(content), f"[{number}/{len(waiting)}]", _HELP)
            done.append(_record(desk, queue if drawn else None, name, content, form))
            print(f"recorded: {form.decision}")
    except Left:
        print("\nleft; what was finished is saved")
    left = len(desk.reviews.left(queue, name))
    counts = ", ".join(f"{sum(r.form.decision == what for r in done)} {what}" for what in ("accept", "defect", "skip"))
    print(
        f"{len(done)} reviewed ({counts}); {left} of the queue left{_beside(desk)}"
        + ("; the same command goes on" if left else "")
    )


def _beside(desk: Desk) -> str:
    """What a count of tasks must be told with."""
    return f" ({len(desk.unreadable)} more cannot be read, and are in no queue)" if desk.unreadable else ""


def _record(desk: Desk, queue: Queue | None, name: str, content: str, form: Form) -> Review:
    from practicum.curation.review import quarantine_defects

    drawn = queue.id if queue and any(item.content == content for item in queue.items) else None
    made = desk.reviews.add(task=desk.tasks[content].id, content=content, by=name, form=form, queue=drawn)
    quarantine_defects(desk.reviews, desk.ledger)
    return made


def _from_file(desk: Desk, queue: Queue, name: str, path: Path, *, as_json: bool) -> None:
    """Each line is a review of its own; those that cannot be are told by line, and the others recorded."""
    from practicum.curation.review import read_form

    contents = {task.id: content for content, task in desk.tasks.items()}
    recorded: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or row.get("task") not in contents:
                raise TaskError(f"`task` must name a task of the set, not {row!r:.80}")
            form = read_form({key: value for key, value in row.items() if key != "task"})
        except (TaskError, ValueError) as error:
            refused.append({"line": number, "reason": getattr(error, "message", str(error))})
            continue
        made = _record(desk, queue, name, contents[row["task"]], form)
        recorded.append({"task": made.task, "decision": form.decision, "drawn": made.queue is not None})
    left = len(desk.reviews.left(queue, name))
    document = {"queue": queue.id, "reviewer": name, "recorded": recorded, "refused": refused, "left": left}
    document["unreadable"] = desk.unreadable
    lines = [f"{len(recorded)} reviews recorded, {left} of the queue left{_beside(desk)}"]
    lines += [f"  ✗ {path}, line {each['line']}: {each['reason']}" for each in refused]
    emit(document, "\n".join(lines), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)


def _report(desk: Desk, target: float | None, *, as_json: bool) -> None:
    from practicum.curation.review_report import report_on
    from practicum.curation.reviewqueue import batch_of

    contents = {content: task.id for content, task in desk.tasks.items()}
    found = report_on(desk.reviews.all, list(desk.reviews.queues.values()), batch_of(contents), contents)
    cleared = _cleared(desk, found)
    text = _report_text(found, target)
    if desk.unreadable:
        text += f"\n{len(desk.unreadable)} tasks cannot be read; what is told here is not about them"
    if cleared:
        text += f"\nsettled as good, but still in quarantine (practicum tasks decide): {', '.join(cleared)}"
    emit(found.to_json(target) | {"cleared": cleared, "unreadable": desk.unreadable}, text, as_json=as_json)
    if target is not None and (found.estimate is None or found.estimate.high > target):
        raise typer.Exit(NEGATIVE)


def _cleared(desk: Desk, found: ReviewReport) -> list[str]:
    """Tasks that one reviewer put into quarantine and most of them call good."""
    ids = []
    for ruling in found.rulings:
        standing = desk.ledger.standing(ruling.content)
        by_review = standing is not None and "review" in (standing.entry.evidence or {})
        if by_review and standing is not None and standing.stage == "quarantined" and not ruling.bad:
            ids.append(ruling.task)
    return ids


def _report_text(found: ReviewReport, target: float | None) -> str:
    from practicum.curation.agreement import plainly
    from practicum.pipeline.wording import visible

    lines = [f"{found.reviews} reviews of {len(found.rulings)} tasks, {found.skipped} skipped"]
    lines += [f"  {name}: {left} of the queue left" for name, left in found.left.items() if left]
    if found.queue is not None and not found.batch_current:
        lines.append("  the task set has changed since the queue was drawn; a new one is drawn by the next review")
    for (first, second), answers in found.agreement.items():
        lines.append(
            f"agreement of {first} and {second} on {answers['decision'].n} tasks that both drew (Cohen's κ, 95 %):"
        )
        for name, each in answers.items():
            kappa = "κ not defined: one answer throughout"
            if each.kappa is not None:
                kappa = f"κ {each.kappa:.2f} ({each.low:.2f} – {each.high:.2f})"
            lines.append(f"  {name:<11}{each.agreed:>4} of {each.n}  {kappa}")
    if len(found.agreement) > 1 and found.light_kappa is not None:
        lines.append(f"mean κ of the {len(found.agreement)} pairs, on the decision (Light): {found.light_kappa:.2f}")
    disputes = [each for each in found.rulings if each.disputed]
    if disputes:
        lines.append(f"{len(disputes)} disputed, for a third to settle with --task ID; they count as bad until then:")
    for ruling in (*disputes, *(each for each in found.rulings if each.bad and not each.disputed)):
        lines.append(f"  {ruling.task}{'' if ruling.disputed else ' is bad'}")
        lines += [
            f"    {r.by}: {r.form.decision}{': ' + r.form.reason if r.form.reason else ''}" for r in ruling.reviews
        ]
    if found.estimate is not None:
        lines.append(plainly(found.estimate, target))
    return visible("\n".join(lines))
