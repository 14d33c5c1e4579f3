"""Tasks whose files show what another task asks for: a later state of one project, its code beside a task without it.

Owns: `revelations`, `Revelation`.
Invariant: directed. A task is given away by runs of tokens that its gold brings into the workspace, which stand in the
files of another task and not in its own; so layout and comments do not matter, and code that is given anyway does not
count. Each distinct file is cut into tokens once. What a file shows is counted for all golds at once through one sorted
table, so the cost is that of reading plus that of the hits; tasks of one project, which all show one another's golds,
have many.
Must not know: what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.gold import gold_edits
from practicum.curation.similarity.matches import Rules
from practicum.curation.similarity.tokens import code_tokens, shingles
from practicum.records.task import Task

Hashes = npt.NDArray[np.uint64]
_LARGEST = 512 * 1024  # bytes of a file that are looked at, as for golds
_MOST = 200_000  # tokens of it
_REMEMBERED = 1 << 23  # hashes of distinct files that are kept at once


@dataclass(frozen=True, slots=True)
class Revelation:
    """The task at `shows` holds `share` of what the gold of the task at `gold` brings in."""

    shows: int
    gold: int
    share: float


def revelations(
    read: Callable[[int], Task], showing: Sequence[int], golds: Sequence[int], rules: Rules
) -> Iterator[Revelation]:
    """Which tasks of `showing` give which of `golds` away, both as numbers that `read` understands.

    Reports those that show `rules.revealed` and more of a gold. A task does not give itself away. Tasks in both are
    read twice.
    """
    cutter = _Cutter(rules.reveal_run)
    secrets = [_brought(read(number), cutter) for number in golds]
    table, owners, sizes = _table(secrets)
    if not len(table):
        return
    own = {number: place for place, number in enumerate(golds)}
    cutter = _Cutter(rules.reveal_run, only=table)
    for number in showing:
        shown = cutter.shown(read(number))
        counts = np.bincount(_owners_of(shown, table, owners), minlength=len(golds))
        for place in np.flatnonzero((counts >= rules.reveal_least) & (counts >= rules.revealed * sizes)):
            if int(place) != own.get(number):
                yield Revelation(number, golds[int(place)], float(counts[place] / sizes[place]))


class _Cutter:
    """Cuts files into runs of tokens, each distinct file once as long as memory lasts; `only` those of a table."""

    def __init__(self, length: int, only: Hashes | None = None) -> None:
        self._length, self._only = length, only
        self._known: dict[bytes, Hashes] = {}
        self._held = 0

    def shown(self, task: Task) -> Hashes:
        """The runs in the files that the one who attempts `task` can read."""
        return _union([self.cut(file.data) for file in task.files.values()])

    def cut(self, data: bytes) -> Hashes:
        key = blake2b(data, digest_size=16).digest()
        if key not in self._known:
            found = self._cut(data)
            if self._held + len(found) > _REMEMBERED:
                self._known, self._held = {}, 0
            self._known[key] = found
            self._held += len(found)
        return self._known[key]

    def _cut(self, data: bytes) -> Hashes:
        if b"\0" in data[:8192]:
            return np.empty(0, np.uint64)
        found = shingles(code_tokens(data[:_LARGEST].decode("utf-8", "replace"), _MOST), self._length)
        if self._only is None:
            return found
        at = np.minimum(np.searchsorted(self._only, found), len(self._only) - 1)
        return np.asarray(found[self._only[at] == found])


def _brought(task: Task, cutter: _Cutter) -> Hashes:
    """The runs that the gold's files hold and the task's own files do not; those touch a place that it changes."""
    brought = _union([cutter.cut(edit.after.encode()) for edit in gold_edits(task) if edit.after is not None])
    for file in task.files.values():
        given = cutter.cut(file.data)
        if len(given) and len(brought):
            at = np.minimum(np.searchsorted(given, brought), len(given) - 1)
            brought = brought[given[at] != brought]
    return brought


def _union(sets: Sequence[Hashes]) -> Hashes:
    return np.unique(np.concatenate([np.empty(0, np.uint64), *sets]))


def _table(secrets: Sequence[Hashes]) -> tuple[Hashes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All runs of all golds, sorted, the place of the gold of each, and how many each gold has."""
    sizes = np.array([len(one) for one in secrets], np.int64)
    flat = np.concatenate([np.empty(0, np.uint64), *secrets])
    places = np.repeat(np.arange(len(secrets)), sizes)
    order = np.argsort(flat, kind="stable")
    return flat[order], places[order], sizes


def _owners_of(shown: Hashes, table: Hashes, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The places of the golds that hold the runs `shown`, each as often as it holds one."""
    first, last = np.searchsorted(table, shown, "left"), np.searchsorted(table, shown, "right")
    sizes = last - first
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(owners[np.repeat(first, sizes) + within])
