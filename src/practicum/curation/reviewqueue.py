"""Which tasks people look at: a sample by stratum, and all that gates or runs have flagged.

Owns: `Queue`, `Item`, `draw_queue`, `flagged_tasks`, `STRATA`.
Invariant: the same tasks, options and seed give the same queue to everyone, in the same order; any first part of it is
a random sample of each stratum. Pure.
Must not know: who reviews, what they say, files.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from practicum.curation.ledger import Standing
from practicum.curation.similarity.origin import source_of
from practicum.errors import ConfigError
from practicum.records.assessment import Assessment
from practicum.records.task import Task
from practicum.records.tree import digest_of

FLAGGED = "flagged"
OTHER = "other strata"
STRATA: Mapping[str, Callable[[Task], str]] = {
    "domain": lambda task: task.domain,
    "source": lambda task: source_of(task) or "no source",
    "difficulty": lambda task: task.difficulty or "no difficulty",
    "split": lambda task: task.split,
}
_OTHERWISE = frozenset({"difficulty"})  # gates that set a task aside without saying that something is wrong with it
_SHORT = 16  # of a content's digits, enough to tell the tasks of one set apart


@dataclass(frozen=True, slots=True)
class Item:
    """One task in a queue, by id and `Task.content`; `why` it is there: `sampled`, or what flagged it."""

    task: str
    content: str
    stratum: str
    why: str = "sampled"


@dataclass(frozen=True, slots=True)
class Queue:
    """What was drawn from one state of a task set (`batch`), and from what.

    `population` maps each stratum to the contents, shortened, that could be drawn; `flagged` ones are all taken, and
    belong to the population only where they may be released.
    """

    batch: str
    sample: int
    seed: int
    strata: tuple[str, ...]
    items: tuple[Item, ...]
    population: Mapping[str, tuple[str, ...]]

    @property
    def id(self) -> str:
        """Names the queue by what was drawn, how, and from which state of the set."""
        drawn = [[item.content, item.stratum] for item in self.items]
        return digest_of([self.batch, self.sample, self.seed, list(self.strata), drawn])

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "sample": self.sample,
            "seed": self.seed,
            "strata": list(self.strata),
            "items": [asdict(item) for item in self.items],
            "population": {name: list(members) for name, members in self.population.items()},
        }

    def not_covered(self, contents: Iterable[str]) -> list[str]:
        """Those of `contents` that could not be drawn, so that the sample does not speak for them."""
        covered = {member for members in self.population.values() for member in members}
        return [content for content in contents if content[:_SHORT] not in covered]


def read_queue(data: Mapping[str, Any]) -> Queue:
    """The queue of a `to_json`."""
    return Queue(
        batch=data["batch"],
        sample=data["sample"],
        seed=data["seed"],
        strata=tuple(data["strata"]),
        items=tuple(Item(**item) for item in data["items"]),
        population={name: tuple(members) for name, members in data["population"].items()},
    )


def batch_of(contents: Iterable[str]) -> str:
    """A digest of one state of a task set."""
    return digest_of(sorted(contents))


def flagged_tasks(assessments: Mapping[str, Assessment], stages: Mapping[str, Standing]) -> dict[str, str]:
    """Content → why a person must see it: a gate left the decision to one, or a run put the task aside."""
    found: dict[str, str] = {}
    for content, each in assessments.items():
        doubts = [r for r in each.gates.values() if r.assessed and not r.passed and r.gate not in _OTHERWISE]
        if each.decision == "quarantined" and doubts:
            found[content] = "; ".join(f"{result.gate}: {result.reason}" for result in doubts)
    for content, standing in stages.items():
        if standing.stage == "quarantined" and standing.entry.actor.startswith("run:"):
            found[content] = f"{standing.entry.actor}: {standing.entry.reason}"
    return found


def draw_queue(
    tasks: Sequence[Task],
    contents: Sequence[str],
    *,
    releasable: Callable[[str], bool],
    flagged: Mapping[str, str],
    sample: int,
    seed: int,
    strata: Sequence[str],
) -> Queue:
    """`sample` of the tasks that may be released, each stratum in proportion to its size and at least one of each,
    and all that are flagged. `contents` are those of `tasks`.

    Raises `ConfigError` for a stratum that is none of `STRATA`.
    """
    for name in strata:
        if name not in STRATA:
            raise ConfigError(f"there are no strata by {name!r}", fix=f"choose among {', '.join(STRATA)}")
    members: defaultdict[str, list[Item]] = defaultdict(list)
    items: list[Item] = []
    for content, task in sorted(zip(contents, tasks, strict=True), key=lambda pair: pair[0]):
        if content in flagged:
            items.append(Item(task.id, content, FLAGGED, flagged[content]))
            if releasable(content):
                members[FLAGGED].append(items[-1])
        elif releasable(content):
            name = " / ".join(STRATA[key](task) for key in strata) or "all"
            members[name].append(Item(task.id, content, name))
    taken_whole = members.pop(FLAGGED, [])
    drawn_from = _merged(members, sample)
    for name, count in _shares({name: len(found) for name, found in drawn_from.items()}, sample).items():
        items += random.Random(f"review-{seed}-{name}").sample(drawn_from[name], count)
    random.Random(f"review-order-{seed}").shuffle(items)
    if taken_whole:
        drawn_from[FLAGGED] = taken_whole
    population = {name: tuple(item.content[:_SHORT] for item in found) for name, found in sorted(drawn_from.items())}
    return Queue(batch_of(contents), sample, seed, tuple(strata), tuple(items), population)


def _merged(members: Mapping[str, list[Item]], sample: int) -> dict[str, list[Item]]:
    """No more strata than the sample can serve: the smallest become one."""
    names = sorted(members, key=lambda name: (-len(members[name]), name))
    if len(names) <= max(1, sample):
        return {name: members[name] for name in names}
    kept = names[: max(0, sample - 1)]
    rest = sorted((item for name in names[len(kept) :] for item in members[name]), key=lambda item: item.content)
    return {name: members[name] for name in kept} | {OTHER: [Item(i.task, i.content, OTHER) for i in rest]}


def _shares(sizes: Mapping[str, int], sample: int) -> dict[str, int]:
    """How many of each stratum: one each, then wherever the share drawn is smallest for its size."""
    total = sum(sizes.values())
    taken = dict.fromkeys(sizes, 1) if sample else {}
    exact = {name: min(sample, total) * size / total for name, size in sizes.items()}
    for _ in range(min(sample, total) - len(taken)):
        open_ones = [name for name in taken if taken[name] < sizes[name]]
        neediest = max(open_ones, key=lambda name: (exact[name] - taken[name], name))
        taken[neediest] += 1
    return taken
