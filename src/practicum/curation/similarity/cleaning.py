"""What a task set is left with when everything that is too alike has gone.

Owns: `Removal`, `Cleaning`, `clean`.
Invariant: pure; of each set of copies exactly one stays, and it is one of the most protected split; nothing that
stands on both sides of a split remains there.
Must not know: disks, how likeness is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from practicum.curation.similarity.matches import Match
from practicum.curation.similarity.search import Survey

HELD_OUT = ("test", "validation")  # from the most protected; every other split comes after, by name


@dataclass(frozen=True, slots=True)
class Removal:
    """A task that goes: because of a protected task, or because another task of the set is the same work."""

    task: str
    because: Literal["contaminated", "duplicate"]
    matches: tuple[Match, ...]

    def document(self) -> dict[str, Any]:
        return {"task": self.task, "because": self.because, "matches": [match.document() for match in self.matches]}


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Who goes, and who changes split: `moved` maps ids to (from, to), for clusters that stood in several splits."""

    removed: list[Removal]
    moved: dict[str, tuple[str, str]]
    kept: list[str] = field(default_factory=list)


def clean(found: Survey, *, duplicates: bool = True) -> Cleaning:
    """The decisions that follow from a survey. With `duplicates` False, copies inside the set stay."""
    gone = {task: Removal(task, "contaminated", tuple(matches)) for task, matches in found.contaminated.items()}
    split_of = dict(zip(found.ids, found.splits, strict=True))
    for members in found.duplicate_clusters if duplicates else ():
        left = sorted((task for task in members if task not in gone), key=lambda task: (_rank(split_of[task]), task))
        for task in left[1:]:
            gone[task] = Removal(task, "duplicate", _with(found.duplicates, task, left[0], members))
    kept = [task for task in found.ids if task not in gone]
    return Cleaning([gone[task] for task in sorted(gone)], _moves(found, split_of, gone), kept)


def _with(duplicates: Mapping[str, list[Match]], task: str, stays: str, members: list[str]) -> tuple[Match, ...]:
    """The matches of `task`, those with the one that stays first; a chain of copies may not match its end itself."""
    own = [match for match in duplicates.get(task, []) if match.other in members]
    return tuple(sorted(own, key=lambda match: match.other != stays))


def _moves(found: Survey, split_of: Mapping[str, str], gone: Mapping[str, Removal]) -> dict[str, tuple[str, str]]:
    moves: dict[str, tuple[str, str]] = {}
    for members in found.clusters:
        left = [task for task in members if task not in gone]
        target = min((split_of[task] for task in left), key=_rank, default="")
        moves |= {task: (split_of[task], target) for task in left if split_of[task] != target}
    return dict(sorted(moves.items()))


def _rank(split: str) -> tuple[int, str]:
    return (HELD_OUT.index(split) if split in HELD_OUT else len(HELD_OUT)), split
