"""Reviews: the shared queue, the form, the records, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.cli.template import template_task
from practicum.curation.ledger import Decided, Ledger, Standing
from practicum.curation.review import Form, Reviews, form_problem, quarantine_defects, read_form, reviewer_name
from practicum.curation.review_report import ReviewReport, report_on
from practicum.curation.reviewqueue import FLAGGED, Queue, batch_of, draw_queue, flagged_tasks, read_queue
from practicum.errors import ConfigError, StoreError, TaskError
from practicum.records.assessment import Assessment, GateResult
from practicum.records.task import Task
from practicum.records.tree import digest_of

GOOD = Form("accept", "", True, True, True, True, 2)
BAD = Form("defect", "the tests want one spelling", True, False, True, True, 2)
BASE = template_task("t")


def tasks_of(count: int) -> list[Task]:
    """Tasks of two domains, one twice as large as the other, and three difficulties."""
    return [
        replace(BASE, id=f"t{n}", domain="data" if n % 3 == 0 else "bug-fix", difficulty=("easy", "hard", None)[n % 3])
        for n in range(count)
    ]


def drawn(
    tasks: list[Task],
    sample: int,
    *,
    seed: int = 0,
    flagged: dict[str, str] | None = None,
    strata: tuple[str, ...] = ("domain",),
    releasable: Callable[[str], bool] = lambda _: True,
) -> Queue:
    contents = [task.content for task in tasks]
    return draw_queue(
        tasks, contents, releasable=releasable, flagged=flagged or {}, sample=sample, seed=seed, strata=strata
    )


def test_the_queue_is_the_same_for_everyone() -> None:
    """Order of the tasks does not matter, the seed does, and a queue reads back as it was."""
    tasks = tasks_of(60)
    queue = drawn(tasks, 12)
    assert queue == drawn(tasks[::-1], 12)
    assert queue.items != drawn(tasks, 12, seed=1).items
    assert read_queue(queue.to_json()) == queue
    assert len({item.content for item in queue.items}) == 12
    assert Counter(item.stratum for item in queue.items) == {"bug-fix": 8, "data": 4}


@given(st.integers(1, 40), st.integers(1, 50), st.sampled_from([(), ("domain",), ("domain", "difficulty", "source")]))
def test_a_sample_is_in_proportion(count: int, sample: int, strata: tuple[str, ...]) -> None:
    """As many are drawn as asked for or there are, from every stratum, none more than one off its share but by that."""
    queue = drawn(tasks_of(count), sample, strata=strata)
    assert len(queue.items) == min(count, sample)
    taken = Counter(item.stratum for item in queue.items)
    assert taken.keys() == queue.population.keys()
    assert sum(map(len, queue.population.values())) == count
    for name, members in queue.population.items():
        assert taken[name] <= max(1, len(members) * min(sample, count) / count + 1)


def test_flagged_tasks_are_all_taken() -> None:
    """What gates or runs flag is looked at wholly; it counts for the estimate only where it may be released."""
    tasks = tasks_of(30)
    doubt, out = tasks[3].content, tasks[4].content
    queue = drawn(tasks, 5, flagged={doubt: "requirements: vague", out: "leaks"}, releasable=lambda c: c != out)
    assert {item.content for item in queue.items if item.stratum == FLAGGED} == {doubt, out}
    assert len(queue.items) == 7
    assert queue.not_covered(task.content for task in tasks) == [out]
    assert queue.population[FLAGGED] == (doubt[:16],)
    with pytest.raises(ConfigError, match="colour"):
        drawn(tasks, 5, strata=("colour",))


def test_what_flags_a_task(tmp_path: Path) -> None:
    """A gate that leaves the decision to a person flags, and so does a run; neither difficulty nor the host does."""
    d = [digest_of(n) for n in range(5)]
    vague = GateResult("requirements", False, "vague", {"seen": 1})
    idle = GateResult("difficulty", False, "every attempt passes", {"seen": 1})
    lost = GateResult("noop", False, "no box", assessed=False)
    found = {
        d[n]: Assessment(str(n), d[n], d[n], "rejected" if n == 3 else "quarantined", "", {gate.gate: gate})
        for n, gate in enumerate((vague, idle, lost, vague))
    }
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.record(
        [
            Decided("run:7", "4", d[4], "quarantined", "hacked"),
            Decided("reviewer:kim", "1", d[1], "quarantined", "unclear"),
        ]
    )
    assert flagged_tasks(found, ledger.stages()) == {d[0]: "requirements: vague", d[4]: "run:7: hacked"}


@pytest.mark.parametrize(
    ("form", "says"),
    [
        (GOOD, None),
        (BAD, None),
        (Form("skip"), None),
        (replace(GOOD, fair=None), "`fair`"),
        (replace(GOOD, difficulty=4), "`difficulty`"),
        (replace(GOOD, difficulty=True), "`difficulty`"),
        (replace(GOOD, no_leak=False), "no_leak answered by no"),
        (replace(BAD, reason=" "), "needs a reason"),
        (replace(GOOD, decision="fine"), "the decision"),  # type: ignore[arg-type]
    ],
)
def test_the_form(form: Form, says: str | None) -> None:
    """A form is whole and does not contradict itself."""
    problem = form_problem(form)
    assert problem is None if says is None else problem is not None and says in problem


def test_a_row_of_answers() -> None:
    """A row names the form's fields and no others."""
    row = {"decision": "accept", "clear": True, "sufficient": True, "fair": True, "no_leak": True, "difficulty": 2}
    assert read_form(row) == GOOD
    for bad in (row | {"colour": 1}, row | {"reason": 3}, {}, row | {"clear": "yes"}):
        with pytest.raises(TaskError):
            read_form(bad)


def test_names_of_reviewers() -> None:
    """A reviewer is one person however the name is spelt."""
    assert reviewer_name("  Kim  Lee ") == reviewer_name("kim lee")
    for bad in ("", "\x1b[2J", "a" * 80):
        with pytest.raises(TaskError):
            reviewer_name(bad)


def test_reviews_are_kept_and_resumed(tmp_path: Path) -> None:
    """A second process sees queue and reviews; each reviewer has what is left of the same queue, in its order."""
    tasks = tasks_of(20)
    mine = Reviews(tmp_path / "r.jsonl")
    queue = mine.open_queue(drawn(tasks, 6))
    first = queue.items[0]
    review = mine.add(task=first.task, content=first.content, by="Kim", form=BAD, queue=queue.id)
    theirs = Reviews(tmp_path / "r.jsonl")
    other = drawn(tasks, 6, releasable=lambda c: c != first.content)  # the defect was put aside meanwhile
    assert other != queue
    assert theirs.open_queue(other) == queue
    assert theirs.open_queue(drawn(tasks, 6, seed=1)) != queue
    assert theirs.left(queue, "kim") == [item.content for item in queue.items[1:]]
    assert theirs.left(queue, "lee") == [item.content for item in queue.items]
    assert theirs.all == [review]
    with pytest.raises(TaskError, match="reason"):
        theirs.add(task="t", content=first.content, by="lee", form=replace(BAD, reason=""), queue=None)
    text = (tmp_path / "r.jsonl").read_text()
    (tmp_path / "r.jsonl").write_text(text.replace("one spelling", "no spelling"))
    with pytest.raises(StoreError, match="broken"):
        Reviews(tmp_path / "r.jsonl")


def test_a_defect_goes_into_quarantine_once(tmp_path: Path) -> None:
    """A defect quarantines its task, also where the process ended in between; a later decision is not undone again."""
    reviews, ledger = Reviews(tmp_path / "r.jsonl"), Ledger(tmp_path / "l.jsonl")
    c = digest_of("t")
    ledger.record([Decided("gate:all", "t", c, "admitted", "all gates passed")])
    review = reviews.add(task="t", content=c, by="kim", form=BAD, queue=None)
    reviews.add(task="u", content=digest_of("u"), by="kim", form=GOOD, queue=None)
    assert [each.task for each in quarantine_defects(Reviews(reviews.path), Ledger(ledger.path))] == ["t"]
    ledger.refresh()
    now = ledger.standing(c)
    assert isinstance(now, Standing)
    assert (now.stage, now.entry.actor, now.entry.reason) == ("quarantined", "reviewer:kim", BAD.reason)
    assert now.entry.evidence == {"review": review.digest}
    assert ledger.record([Decided("gate:all", "t", c, "admitted", "again")]) != {}
    ledger.record([Decided("reviewer:lee", "t", c, "admitted", "the tests were mended")])
    assert quarantine_defects(reviews, ledger) == []
    ledger.record([Decided("gate:x", "v", digest_of("v"), "rejected", "r")])
    reviews.add(task="v", content=digest_of("v"), by="kim", form=BAD, queue=None)
    assert quarantine_defects(reviews, ledger) == []


def reported(tasks: list[Task], reviews: Reviews) -> ReviewReport:
    contents = {task.content: task.id for task in tasks}
    return report_on(reviews.all, list(reviews.queues.values()), batch_of(contents), contents)


def test_the_report(tmp_path: Path) -> None:
    """Agreement counts what both drew; a dispute counts as bad until a third settles it."""
    tasks = tasks_of(40)
    reviews = Reviews(tmp_path / "r.jsonl")
    queue = reviews.open_queue(drawn(tasks, 10))
    for who, bad in (("kim", {0, 1}), ("lee", {1})):
        for number, item in enumerate(queue.items[:9]):
            form = BAD if number in bad else GOOD
            reviews.add(task=item.task, content=item.content, by=who, form=form, queue=queue.id)
    reviews.add(task=queue.items[9].task, content=queue.items[9].content, by="kim", form=Form("skip"), queue=queue.id)
    found = reported(tasks, reviews)
    assert (found.reviews, found.skipped, found.left, found.batch_current) == (18, 1, {"kim": 0, "lee": 1}, True)
    agreement = found.agreement["kim", "lee"]
    assert (agreement["decision"].n, agreement["decision"].agreed) == (9, 8)
    assert agreement["decision"].kappa == pytest.approx((8 / 9 - (2 * 1 + 7 * 8) / 81) / (1 - (2 * 1 + 7 * 8) / 81))
    assert [r.task for r in found.rulings if r.disputed] == [queue.items[0].task]
    assert found.estimate is not None
    assert (found.estimate.tasks, found.estimate.reviewed, found.estimate.defects) == (40, 9, 2)

    dispute = queue.items[0]
    reviews.add(task=dispute.task, content=dispute.content, by="sam", form=GOOD, queue=None)
    settled = reported(tasks, reviews)
    assert not any(r.disputed for r in settled.rulings)
    assert settled.estimate is not None
    assert settled.estimate.defects == 1
    assert settled.agreement.keys() == {("kim", "lee")}
    assert "kim" not in str(settled.summary())


def test_reviews_of_other_content_do_not_count(tmp_path: Path) -> None:
    """A task that was changed has not been looked at, and the report says that the set is another one."""
    tasks = tasks_of(12)
    reviews = Reviews(tmp_path / "r.jsonl")
    queue = reviews.open_queue(drawn(tasks, 4))
    for item in queue.items:
        reviews.add(task=item.task, content=item.content, by="kim", form=GOOD, queue=queue.id)
    changed = [replace(t, difficulty="x") if t.id == queue.items[0].task else t for t in tasks]
    found = reported(changed, reviews)
    assert (found.reviews, found.batch_current) == (3, False)
    assert reported([], Reviews(tmp_path / "none.jsonl")).estimate is None
