"""A task as numbers: hashes of its texts, and sets of hashes of their parts.

Owns: `Column`, `COLUMNS`, `Batch`, `extract`, `batches`.
Invariant: equal texts give equal numbers; tasks are read one at a time, and no text outlives its batch.
Must not know: what is compared with what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.facets import Facets, facets_of
from practicum.curation.similarity.fingerprint import fingerprint, numbered
from practicum.curation.similarity.matches import FacetName, Rules
from practicum.curation.similarity.parts import in_parts
from practicum.curation.similarity.tokens import code_tokens, mixed, runs, shape_tokens, shingles, text_hash, words
from practicum.errors import TaskError
from practicum.records.task import Task

HASHED: tuple[FacetName, ...] = ("instruction", "code", "patch", "tests")  # facets with a hash of the whole text
PRINTS = ("gold", "work")  # fingerprints: of the code as the gold leaves it, and of that with the change


@dataclass(frozen=True, slots=True)
class Column:
    """Hashes of each task: the set of `near` shingles, which are compared, or `run`s in order, each looked for."""

    facet: FacetName
    use: Literal["near", "run"]
    length: int

    @property
    def name(self) -> str:
        return f"{self.facet}-{self.use}"

    @property
    def by_source(self) -> bool:
        """Whether what is common in it is common to a source (wording), not to a repository (code)."""
        return self.facet == "instruction"


def columns(rules: Rules, *, long: bool) -> tuple[Column, ...]:
    """What has to be worked out under `rules`; `long` runs only where there is something to look for them in."""
    near = [Column(rule.name, "near", rule.shingle) for rule in rules.facets]
    run = [Column(rule.name, "run", rule.run) for rule in rules.facets if rule.run and long]
    return (*near, *run)


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a task beside hashes. `place` is its number in the sequence that it was read from."""

    place: int
    task: str
    split: str
    source: str
    repository: str


@dataclass(slots=True)
class Batch:
    """Some tasks: rows, hashes of whole texts (tasks × HASHED + PRINTS), and for each column all its hashes, end to
    end, with how many each task has. `refused` are tasks that cannot be read, by place."""

    rows: list[Row]
    hashes: npt.NDArray[np.uint64]
    flat: list[npt.NDArray[np.uint64]]
    counts: list[npt.NDArray[np.int64]]
    refused: dict[int, str]

    def unique(self, seen: set[str]) -> Batch:
        """Without the tasks whose ids are among `seen`, which are refused; adds the ids of the others to those."""
        kept: list[bool] = []
        refused = dict(self.refused)
        for row in self.rows:
            kept.append(row.task not in seen)
            if row.task in seen:
                refused[row.place] = f"the id {row.task!r} occurs twice in the task set"
            seen.add(row.task)
        if all(kept):
            return self
        mask = np.array(kept)
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        flat = [values[np.repeat(mask, counts)] for values, counts in zip(self.flat, self.counts, strict=True)]
        return Batch(rows, self.hashes[mask], flat, [counts[mask] for counts in self.counts], refused)


def extract(tasks: Sequence[Task], start: int, stop: int, rules: Rules, wanted: Sequence[Column]) -> Batch:
    """The numbers of tasks [start, stop)."""
    rows: list[Row] = []
    hashes: list[list[int]] = []
    sets: list[list[npt.NDArray[np.uint64]]] = [[] for _ in wanted]
    refused: dict[int, str] = {}
    for place in range(start, stop):
        try:
            facets = facets_of(tasks[place])
        except TaskError as error:
            refused[place] = error.message
            continue
        rows.append(Row(place, facets.task, facets.split, facets.source, facets.repository))
        tokens = _tokens(facets)
        hashes.append([*(text_hash(tokens[name]) for name in HASHED), *_prints(facets.code, tokens["patch"], rules)])
        for kept, column in zip(sets, wanted, strict=True):
            cut = shingles if column.use == "near" else runs
            kept.append(cut(tokens[column.facet], column.length))
    empty = np.empty(0, np.uint64)
    return Batch(
        rows,
        np.array(hashes, np.uint64).reshape(len(rows), len(HASHED) + len(PRINTS)),
        [np.concatenate([empty, *kept]) for kept in sets],
        [np.array([len(one) for one in kept], np.int64) for kept in sets],
        refused,
    )


def batches(tasks: Sequence[Task], rules: Rules, wanted: Sequence[Column], *, processes: int = 2) -> Iterator[Batch]:
    """All tasks, in order, batch by batch; worked out by several processes where there are many tasks."""
    return in_parts(partial(extract, tasks, rules=rules, wanted=wanted), len(tasks), processes=processes)


def _tokens(facets: Facets) -> dict[FacetName, list[str]]:
    code = code_tokens(facets.code)
    return {
        "instruction": words(facets.instruction),
        "code": code,
        "shape": shape_tokens(code),
        "patch": code_tokens(facets.patch),
        "tests": code_tokens(facets.tests),
    }


def _prints(code: str, patch: list[str], rules: Rules) -> tuple[int, int]:
    """Fingerprints of the gold's code and of code and change; 0 where it is too small to name anything."""
    gold, size = fingerprint(code)
    if size < rules.least_nodes:
        return 0, 0
    return gold, int(mixed([gold ^ (text_hash(numbered(patch)) >> 1)])[0])
