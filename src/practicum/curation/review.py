"""Reviews by people: the form, the queue that they share, and the records.

Owns: `Form`, `Review`, `Reviews`, `form_problem`, `QUESTIONS`; `reviews.jsonl` beside a task set (`reviews_path`).
Invariant: a review is kept in a chain of digests and speaks of one content of a task only; it is never changed, the
same reviewer's later one counts. A defect puts the task into quarantine.
Must not know: how tasks are shown, what gates found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from practicum.curation.ledger import PERSON, Decided, Ledger, taskset_folder
from practicum.curation.reviewqueue import Queue, read_queue
from practicum.errors import StoreError, TaskError
from practicum.records.tree import digest_of
from practicum.trajectories.chain import Chain
from practicum.trajectories.durable import failed

FILE = "reviews.jsonl"
Answer = Literal["accept", "defect", "skip"]
QUESTIONS: Mapping[str, str] = {
    "clear": "Is it clear what is asked?",
    "sufficient": "Does the instruction say all that the tests want?",
    "fair": "Would every right solution pass these tests?",
    "no_leak": "Is the answer nowhere to be found in what the agent sees?",
}
"""The questions of the form, each with the name under which its answer is kept."""
DIFFICULTIES = (1, 2, 3)
_NAME = re.compile(r"[\w.@+-](?:[\w.@+ -]{0,62}[\w.@+-])?")


@dataclass(frozen=True, slots=True)
class Form:
    """One person's answers on one task. All but `decision` are None where the task was skipped."""

    decision: Answer
    reason: str = ""
    clear: bool | None = None
    sufficient: bool | None = None
    fair: bool | None = None
    no_leak: bool | None = None
    difficulty: int | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A `form` as it was recorded. `queue` names the queue that the task was drawn in; None where it was not.

    `digest` names this record.
    """

    task: str
    content: str
    by: str
    form: Form
    queue: str | None
    time: str
    seq: int

    @property
    def digest(self) -> str:
        return digest_of([self.seq, self.time, _record(self)])


def reviews_path(taskset: Path) -> Path:
    """Where the reviews of `taskset` stand."""
    return taskset_folder(taskset) / ".practicum" / FILE


def reviewer_name(text: str) -> str:
    """How a reviewer is known: without regard to case. Raises `TaskError` for what is no name."""
    name = " ".join(text.split()).casefold()
    if not _NAME.fullmatch(name):
        raise TaskError(f"{text!r} cannot be the name of a reviewer", fix="letters, digits and . @ + - _")
    return name


def form_problem(form: Form) -> str | None:
    """What is missing from `form`, or does not fit together. Pure."""
    if form.decision not in get_args(Answer):
        return f"the decision is {form.decision!r}, not one of {', '.join(get_args(Answer))}"
    if form.decision == "skip":
        return None
    answers = {name: getattr(form, name) for name in QUESTIONS}
    for name, answer in answers.items():
        if not isinstance(answer, bool):
            return f"`{name}` must be answered with true or false"
    if isinstance(form.difficulty, bool) or form.difficulty not in DIFFICULTIES:
        return f"`difficulty` is {form.difficulty!r}, not 1, 2 or 3"
    if form.decision == "accept" and not all(answers.values()):
        wrong = ", ".join(name for name, answer in answers.items() if not answer)
        return f"a task cannot be accepted with {wrong} answered by no: call it a defect, or skip it"
    if form.decision == "defect" and not form.reason.strip():
        return "a defect needs a reason"
    return None


def read_form(data: Mapping[str, Any]) -> Form:
    """The form in one row of answers. Raises `TaskError` that says what is wrong with it."""
    known = {field.name for field in fields(Form)}
    unknown = sorted(data.keys() - known)
    if unknown:
        raise TaskError(f"there is no {unknown[0]!r} in the form", fix=f"it has {', '.join(sorted(known))}")
    if not isinstance(data.get("reason", ""), str):
        raise TaskError("`reason` must be text")
    form = Form(**({"decision": None} | dict(data)))  # checked on the next line
    problem = form_problem(form)
    if problem:
        raise TaskError(problem)
    return form


class Reviews:
    """The reviews of a task set and the queues they were drawn in; stays open, and reads what others add."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queues: dict[str, Queue] = {}
        self.all: list[Review] = []
        self._chain = Chain(path)
        self.refresh()

    @property
    def head(self) -> str:
        """Digest of the last record."""
        return self._chain.head

    def refresh(self) -> None:
        """Read what was added. Raises `StoreError` where the chain is broken."""
        for entry in self._chain.news():
            try:
                data = entry["data"]
                if entry["event"] == "queue":
                    queue = read_queue(data)
                    self.queues.pop(queue.id, None)  # the latest stands last
                    self.queues[queue.id] = queue
                else:
                    self.all.append(_review(data, entry["time"], entry["seq"]))
            except (KeyError, TypeError) as error:
                raise StoreError(f"{self.path}: entry {entry['seq']} is no review: {error!r}") from error

    def open_queue(self, drawn: Queue) -> Queue:
        """The queue that was opened before for the same state of the set and with the same options, else `drawn`.

        Every reviewer gets the same, though decisions made meanwhile would change what is drawn.
        """
        key = (drawn.batch, drawn.sample, drawn.seed, drawn.strata)
        with self._writing():
            for queue in reversed(self.queues.values()):
                if (queue.batch, queue.sample, queue.seed, queue.strata) == key:
                    return queue
            self._chain.append([("queue", drawn.to_json())])
            self.refresh()
        return drawn

    def add(self, *, task: str, content: str, by: str, form: Form, queue: str | None) -> Review:
        """Record one review, on the disk when this returns. Raises `TaskError` where the form is not whole."""
        problem = form_problem(form)
        if problem:
            raise TaskError(f"task {task!r}: {problem}")
        review = Review(task, content, reviewer_name(by), form, queue, "", -1)
        with self._writing():
            self._chain.append([("review", _record(review))])
            self.refresh()
        return self.all[-1]

    def latest(self) -> dict[tuple[str, str], Review]:
        """The review that counts for each (content, reviewer)."""
        return {(review.content, review.by): review for review in self.all}

    def left(self, queue: Queue, by: str) -> list[str]:
        """Contents of `queue`, in its order, on which `by` has not said anything yet."""
        done = {review.content for review in self.all if review.by == reviewer_name(by)}
        return [item.content for item in queue.items if item.content not in done]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed(self.path, error) from error
        with self._chain.writing():
            self.refresh()
            yield


def quarantine_defects(reviews: Reviews, ledger: Ledger) -> list[Decided]:
    """Put each task that a review calls bad into quarantine, once for each such review; what was done now.

    Called whenever reviews have been added, and again before a release: a process that ended in between leaves nothing
    undone. A rejected task stays rejected.
    """
    ledger.refresh()
    known = {(entry.evidence or {}).get("review") for entry in ledger.entries}
    decided: list[Decided] = []
    for review in reviews.all:
        standing = ledger.standing(review.content)
        if review.form.decision != "defect" or review.digest in known or (standing and standing.stage == "rejected"):
            continue
        evidence = {"review": review.digest}
        actor = f"{PERSON}:{review.by}"
        decided.append(Decided(actor, review.task, review.content, "quarantined", review.form.reason, evidence))
    if decided:
        ledger.record(decided)
    return decided


def _record(review: Review) -> dict[str, Any]:
    return {
        "task": review.task,
        "content": review.content,
        "by": review.by,
        "form": asdict(review.form),
        "queue": review.queue,
    }


def _review(data: Mapping[str, Any], time: str, seq: int) -> Review:
    return Review(data["task"], data["content"], data["by"], Form(**data["form"]), data["queue"], time, seq)
