"""What a task set covers, and where it is empty or thin.

Owns: `Card`, `card_of`, `Coverage`, `coverage_of`, `Hole`.
Invariant: pure; what a task does not state is counted as not stated, never guessed. A hole is named once, by the least
that describes it.
Must not know: disks, how likeness is found.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from practicum.curation.similarity.gold import gold_edits
from practicum.curation.similarity.origin import bug_kind_of, licence_of, repository_of, source_of
from practicum.records.task import Task

NOT_STATED = "not stated"
SIZES = ("small", "medium", "large")
STRATA = ("easy", "medium", "hard")
_SMALL, _MEDIUM = 10, 50  # lines added and removed by the gold, up to which it is small, medium
_COUNTED = ("split", "domain", "bug_kind", "size", "difficulty", "source", "repository", "licence")
_MEASURED = ("files", "hunks", "lines", "tests", "words")


@dataclass(frozen=True, slots=True)
class Card:
    """One task, as far as coverage goes. `files`, `hunks` and `lines` are what the gold changes (lines: added and
    removed), None without a gold; `tests` are the frozen ones by id, `words` those of the statement."""

    task: str
    split: str
    domain: str
    bug_kind: str
    source: str
    repository: str
    licence: str
    difficulty: str
    tests: int
    words: int
    files: int | None = None
    hunks: int | None = None
    lines: int | None = None

    @property
    def size(self) -> str:
        """How much the gold changes."""
        if self.lines is None:
            return NOT_STATED
        return "small" if self.lines <= _SMALL else "medium" if self.lines <= _MEDIUM else "large"


@dataclass(frozen=True, slots=True)
class Hole:
    """A place with fewer tasks than wanted. `where` names the place by the dimensions that describe it."""

    where: Mapping[str, str]
    count: int

    def __str__(self) -> str:
        return " × ".join(f"{value} ({name.replace('_', ' ')})" for name, value in self.where.items())


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts by dimension, the spread of sizes, and the holes against `minimum` tasks a cell.

    `cells` is how many cells there are, `covered` how many hold at least the minimum.
    """

    tasks: int
    counts: Mapping[str, Mapping[str, int]]
    spreads: Mapping[str, Mapping[str, float]]
    minimum: int
    cells: int
    covered: int
    holes: Sequence[Hole] = field(default_factory=tuple)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "tasks": self.tasks,
            "counts": {name: dict(counts) for name, counts in self.counts.items()},
            "spreads": {name: dict(spread) for name, spread in self.spreads.items()},
            "minimum": self.minimum,
            "cells": self.cells,
            "covered": self.covered,
            "holes": [{**hole.where, "count": hole.count} for hole in self.holes],
        }


def card_of(task: Task, difficulty: str | None = None) -> Card:
    """The card of `task`; `difficulty` is its measured stratum, which goes before the stated one."""
    edits = gold_edits(task)
    check = task.verification
    return Card(
        task=task.id,
        split=task.split,
        domain=task.domain,
        bug_kind=bug_kind_of(task) or NOT_STATED,
        source=source_of(task) or NOT_STATED,
        repository=repository_of(task) or NOT_STATED,
        licence=licence_of(task) or NOT_STATED,
        difficulty=difficulty or task.difficulty or NOT_STATED,
        tests=len(check.fail_to_pass) + len(check.pass_to_pass),
        words=len(task.instruction.split()),
        files=len(edits) if edits else None,
        hunks=sum(len(edit.blocks()) for edit in edits) if edits else None,
        lines=sum(len(edit.added()) + len(edit.removed()) for edit in edits) if edits else None,
    )


def coverage_of(cards: Iterable[Card], minimum: int = 5) -> Coverage:
    """What `cards` cover. A cell is a domain, kind of bug, size and difficulty; domains and kinds are those that occur,
    sizes and difficulties are all there are."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _COUNTED}
    numbers: dict[str, list[int]] = {name: [] for name in _MEASURED}
    cells: Counter[tuple[str, str, str, str]] = Counter()
    total = 0
    for card in cards:
        total += 1
        for name in _COUNTED:
            counts[name][getattr(card, name)] += 1
        for name in _MEASURED:
            if (value := getattr(card, name)) is not None:
                numbers[name].append(value)
        cells[card.domain, card.bug_kind, card.size, card.difficulty] += 1
    every = [
        (domain, kind, size, stratum)
        for domain in sorted(counts["domain"])
        for kind in sorted(counts["bug_kind"])
        for size in SIZES
        for stratum in STRATA
    ]
    return Coverage(
        tasks=total,
        counts={name: dict(found.most_common()) for name, found in counts.items()},
        spreads={name: _spread(values) for name, values in numbers.items()},
        minimum=minimum,
        cells=len(every),
        covered=sum(cells[cell] >= minimum for cell in every),
        holes=tuple(_holes(cells, every, minimum)),
    )


def _spread(values: Sequence[int]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    return {
        "least": ordered[0],
        "median": statistics.median(ordered),
        "p90": ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))],
        "most": ordered[-1],
    }


_CELL = ("domain", "bug_kind", "size", "difficulty")
_DESCRIBED_BY = (("size",), ("difficulty",), ("domain",), ("bug_kind",), ("domain", "bug_kind"), _CELL)


def _holes(
    cells: Mapping[tuple[str, str, str, str], int], every: Sequence[tuple[str, str, str, str]], minimum: int
) -> list[Hole]:
    """The holes, from the widest to single cells; one within a wider one is not named again."""
    found: list[Hole] = []
    for names in _DESCRIBED_BY:
        places = [_CELL.index(name) for name in names]
        counts: Counter[tuple[str, ...]] = Counter()
        for cell, count in cells.items():
            counts[tuple(cell[at] for at in places)] += count
        for key in dict.fromkeys(tuple(cell[at] for at in places) for cell in every):
            where = dict(zip(names, key, strict=True))
            if counts[key] < minimum and not any(hole.where.items() <= where.items() for hole in found):
                found.append(Hole(where, counts[key]))
    return found
