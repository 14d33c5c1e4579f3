"""Tasks whose files show what another task asks for: a later state of one project, its code beside a task without it.

Owns: `revelations`, `Revelation`.
Invariant: directed. A task is given away by runs of tokens that its gold brings into the workspace, which stand in the
files of another task and not in its own; so layout and comments do not matter, and code that is given anyway does not
count. A process cuts each distinct file into tokens once. What a file shows is counted for all golds at once through
one sorted table, which lies in a file; so the cost is that of reading plus that of the hits. Tasks of one project,
which all show one another's golds, have many.
Must not know: what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.gold import gold_edits
from practicum.curation.similarity.matches import Rules
from practicum.curation.similarity.parts import in_parts
from practicum.curation.similarity.runtable import RunTable, run_table
from practicum.curation.similarity.store import Ragged
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
    read: Callable[[int], Task], showing: int, golds: int, rules: Rules, *, processes: int = 1
) -> Iterator[Revelation]:
    """Which of the first `showing` tasks give which of the first `golds` away, by the numbers that `read` understands.

    Reports those that show `rules.revealed` and more of a gold. A task does not give itself away. Tasks in both are
    read twice. With several processes `read` is sent to each.
    """
    secrets = Ragged()
    try:
        for flat, counts in in_parts(_Secrets(read, rules.reveal_run), golds, processes=processes):
            secrets.append(flat, counts)
        secrets.finish()
        with run_table(secrets) as table:
            if table.length:
                work = _Showing(read, rules, table, secrets.sizes)
                for found in in_parts(work, showing, processes=processes):
                    yield from found
    finally:
        secrets.close()


@dataclass
class _Secrets:
    """What golds bring in: the runs of tasks [start, stop) end to end, and how many each has."""

    read: Callable[[int], Task]
    length: int
    cutter: _Cutter = field(init=False)

    def __post_init__(self) -> None:
        self.cutter = _Cutter(self.length)

    def __call__(self, start: int, stop: int) -> tuple[Hashes, npt.NDArray[np.int64]]:
        found = [_brought(self.read(number), self.cutter) for number in range(start, stop)]
        return np.concatenate(found), np.array([len(one) for one in found], np.int64)


@dataclass
class _Showing:
    """Which golds tasks [start, stop) give away. `sizes` is how many runs each gold has."""

    read: Callable[[int], Task]
    rules: Rules
    table: RunTable
    sizes: npt.NDArray[np.int64]
    cutter: _Cutter = field(init=False)

    def __post_init__(self) -> None:
        self.cutter = _Cutter(self.rules.reveal_run, only=self.table)

    def __call__(self, start: int, stop: int) -> list[Revelation]:
        found = []
        for number in range(start, stop):
            # Only golds that have a hit are counted: a row for all of them would make the whole quadratic.
            golds, counts = np.unique(self.table.owners_of(self.cutter.shown(self.read(number))), return_counts=True)
            enough = (counts >= self.rules.reveal_least) & (counts >= self.rules.revealed * self.sizes[golds])
            for gold, count in zip(golds[enough].tolist(), counts[enough].tolist(), strict=True):
                if gold != number:
                    found.append(Revelation(number, gold, count / int(self.sizes[gold])))
        return found


class _Cutter:
    """Cuts files into runs of tokens, each distinct file once as long as memory lasts; `only` those of a table."""

    def __init__(self, length: int, only: RunTable | None = None) -> None:
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
        return found if self._only is None else self._only.known(found)


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
