"""What the reviews of a task set come to: agreement, disputes, and how many defects the set may hold.

Owns: `ReviewReport`, `report_on`.
Invariant: only reviews of the very contents count; the estimate rests on tasks that were drawn at random, and a task on
which reviewers differ counts as bad until most of three or more say otherwise. Pure.
Must not know: files, terminals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from practicum.curation.agreement import (
    Agreement,
    DefectEstimate,
    Sampled,
    cohen_kappa,
    defect_estimate,
    light_kappa,
    plainly,
)
from practicum.curation.review import QUESTIONS, Review
from practicum.curation.reviewqueue import Queue


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of one task: `bad` or not, from all `reviews` of it; `disputed` until a third settles it."""

    task: str
    content: str
    bad: bool
    disputed: bool
    reviews: tuple[Review, ...]


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """`agreement` maps a pair of reviewers to their agreement by question; `estimate` is None without a queue.

    `left` counts, for each reviewer, what of the queue still waits; `batch_current` says whether the set is still as it
    was when the queue was drawn.
    """

    reviews: int
    skipped: int
    rulings: tuple[Ruling, ...]
    agreement: Mapping[tuple[str, str], Mapping[str, Agreement]]
    estimate: DefectEstimate | None
    queue: Queue | None
    batch_current: bool
    left: Mapping[str, int]

    @property
    def light_kappa(self) -> float | None:
        """Mean κ on the decision over all pairs."""
        return light_kappa([found["decision"] for found in self.agreement.values()])

    def summary(self) -> dict[str, Any]:
        """What a release keeps: numbers without names of reviewers."""
        return {
            "queue": self.queue.id if self.queue else None,
            "reviews": self.reviews,
            "reviewers": len({review.by for ruling in self.rulings for review in ruling.reviews}),
            "bad": sum(ruling.bad for ruling in self.rulings),
            "disputed": sum(ruling.disputed for ruling in self.rulings),
            "kappa": self.light_kappa,
            "estimate": self.estimate.to_json() if self.estimate else None,
        }

    def to_json(self, target: float | None = None) -> dict[str, Any]:
        return self.summary() | {
            "skipped": self.skipped,
            "batch_current": self.batch_current,
            "left": dict(self.left),
            "said": plainly(self.estimate, target) if self.estimate else None,
            "agreement": [
                {"reviewers": list(pair), "by": {name: each.to_json() for name, each in found.items()}}
                for pair, found in self.agreement.items()
            ],
            "disputes": [_ruling(each) for each in self.rulings if each.disputed],
            "defects": [_ruling(each) for each in self.rulings if each.bad and not each.disputed],
        }


def report_on(
    reviews: Sequence[Review], queues: Sequence[Queue], batch: str, contents: Mapping[str, str]
) -> ReviewReport:
    """The report on the set whose `contents` (content → id) make up `batch`; of `queues`, the last one counts."""
    latest = {(r.content, r.by): r for r in reviews if r.content in contents}
    given = [review for review in latest.values() if review.form.decision != "skip"]
    by_task: defaultdict[str, list[Review]] = defaultdict(list)
    for review in given:
        by_task[review.content].append(review)
    rulings = {content: _rule(found) for content, found in by_task.items()}
    queue = queues[-1] if queues else None
    names = sorted({review.by for review in latest.values() if queue and review.queue == queue.id})
    done = {(review.content, review.by) for review in latest.values()}
    waiting = {
        name: sum((item.content, name) not in done for item in queue.items if item.content in contents) if queue else 0
        for name in names
    }
    return ReviewReport(
        reviews=len(given),
        skipped=len(latest) - len(given),
        rulings=tuple(sorted(rulings.values(), key=lambda ruling: ruling.task)),
        agreement=_agreement(given),
        estimate=_estimate(queue, rulings) if queue else None,
        queue=queue,
        batch_current=queue is not None and queue.batch == batch,
        left=waiting,
    )


def _rule(reviews: Sequence[Review]) -> Ruling:
    bad = sum(review.form.decision == "defect" for review in reviews)
    good = len(reviews) - bad
    disputed = bool(bad and good) and (len(reviews) < 3 or bad == good)
    return Ruling(reviews[0].task, reviews[0].content, bad > good or disputed, disputed, tuple(reviews))


def _agreement(reviews: Sequence[Review]) -> dict[tuple[str, str], dict[str, Agreement]]:
    """Of each pair of reviewers, on what both drew: a task that one was asked to settle is no random one."""
    mine: defaultdict[str, dict[str, Review]] = defaultdict(dict)
    for review in reviews:
        if review.queue is not None:
            mine[review.by][review.content] = review
    found: dict[tuple[str, str], dict[str, Agreement]] = {}
    for first, second in combinations(sorted(mine), 2):
        common = sorted(mine[first].keys() & mine[second].keys())
        if not common:
            continue
        forms = [(mine[first][content].form, mine[second][content].form) for content in common]
        found[first, second] = {
            name: cohen_kappa([(getattr(a, name), getattr(b, name)) for a, b in forms])
            for name in ("decision", *QUESTIONS, "difficulty")
        }
    return found


def _estimate(queue: Queue, rulings: Mapping[str, Ruling]) -> DefectEstimate:
    reviewed: defaultdict[str, list[bool]] = defaultdict(list)
    outside = set(queue.not_covered(item.content for item in queue.items))
    for item in queue.items:
        if item.content in rulings and item.content not in outside:
            reviewed[item.stratum].append(rulings[item.content].bad)
    return defect_estimate(
        [
            Sampled(name, len(members), len(reviewed[name]), sum(reviewed[name]))
            for name, members in queue.population.items()
        ]
    )


def _ruling(ruling: Ruling) -> dict[str, Any]:
    return {
        "task": ruling.task,
        "content": ruling.content,
        "reviews": [
            {"by": review.by, "decision": review.form.decision, "reason": review.form.reason}
            for review in ruling.reviews
        ],
    }
