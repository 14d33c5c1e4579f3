"""What likeness means for a task set: duplicates, clusters, contamination by protected sets.

Owns: `survey`, `near_duplicates`, `contamination`, `Survey`.
Invariant: every statement names the match that it rests on; nothing is changed or removed here.
Must not know: task sets on disk, what becomes of a task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.features import batches, columns
from practicum.curation.similarity.matches import Alike, Match, Rules
from practicum.curation.similarity.pairs import Comparison
from practicum.curation.similarity.revealing import Revelation, revelations
from practicum.curation.similarity.spans import Spans
from practicum.curation.similarity.store import Store
from practicum.errors import TaskError
from practicum.records.task import Task

DEFAULT = Rules()
_KEPT = 16  # tasks that are named as like another, the most alike ones, each with its best match
OnProgress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(slots=True)
class Survey:
    """What was found. Ids in order of the tasks; `places` is where each stands in the sequence that was given.

    `clusters` are sets of two and more tasks that are alike (see `Alike.related`) or of which one gives another away;
    tasks of one belong into one split. `reveals` names for each task those of the set whose gold its files show, which
    is a fault only where they stand in another split. `common` counts boilerplate by column, `seconds` is wall clock by
    stage. `refused` are tasks that cannot be read, by place.
    """

    ids: list[str]
    splits: list[str]
    places: list[int]
    duplicates: dict[str, list[Match]] = field(default_factory=dict)
    contaminated: dict[str, list[Match]] = field(default_factory=dict)
    reveals: dict[str, list[Match]] = field(default_factory=dict)
    clusters: list[list[str]] = field(default_factory=list)
    duplicate_clusters: list[list[str]] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    refused_protected: dict[int, str] = field(default_factory=dict)
    common: dict[str, int] = field(default_factory=dict)
    pairs: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def near_duplicates(tasks: Sequence[Task], rules: Rules = DEFAULT) -> dict[str, list[Match]]:
    """For each task that is the same work as others of `tasks`: the matches, best first; the others are absent.

    Symmetric: both tasks of a pair are named. Kinds are exact, renamed and near; see `Alike.duplicate` for which
    facets have to agree, and `matches` for the thresholds. Raises `TaskError` for an id that occurs twice, or a task
    that cannot be read.
    """
    return _whole(survey(tasks, rules=rules, revealing=False)).duplicates


def contamination(tasks: Sequence[Task], protected: Sequence[Task], rules: Rules = DEFAULT) -> dict[str, list[Match]]:
    """For each of `tasks` that is too like a task of `protected`: the matches, best first; the others are absent.

    One facet is enough, and so is the repository, where both state one, or that the files of the task show what the
    gold of the protected one brings in. Raises as `near_duplicates` does. An id may
    occur on both sides.
    """
    return _whole(survey(tasks, protected, rules)).contaminated


def survey(
    tasks: Sequence[Task],
    protected: Sequence[Task] = (),
    rules: Rules = DEFAULT,
    *,
    processes: int = 2,
    spans: bool = True,
    revealing: bool = True,
    on_progress: OnProgress | None = None,
) -> Survey:
    """Compare `tasks` among themselves and with `protected`. `spans` reads matched tasks again, to show what they
    share; `revealing` reads all of them again, to find golds in the files of other tasks. Of tasks with the same id
    the first counts, the others are refused."""
    clock = _Clock(on_progress)
    if isinstance(tasks, (list, tuple)):  # held in memory: sending them costs more than it gains
        processes = 1
    wanted = columns(rules, long=len(protected) > 0)
    with Store(wanted) as store:
        done, seen = 0, set[str]()
        for batch in batches(tasks, rules, wanted, processes=processes):
            store.add([batch.unique(seen)])
            done += len(batch.rows) + len(batch.refused)
            clock.progress("read", done, len(tasks))
        count, refused, store.refused = len(store.rows), store.refused, {}
        store.add(batches(protected, rules, wanted, processes=processes))
        store.finish()
        clock.mark("read")
        comparison = Comparison(store, rules, np.arange(len(store.rows)) >= count)
        clock.mark("prepare")
        try:
            shelf = _Shelf(tasks, protected, np.array([row.place for row in store.rows], np.int64), count)
            golds = len(store.rows) if revealing else 0
            shown = revelations(shelf, count, golds, rules, processes=processes)
            found = _survey(store, comparison, count, shown, Spans(tasks) if spans else None, clock)
        finally:
            comparison.close()
    found.refused, found.refused_protected, found.seconds = refused, store.refused, clock.seconds
    return found


class _Clock:
    """Seconds by stage, and progress for whoever listens."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()
        self._on_progress = on_progress

    def mark(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage] = round(now - self._last, 3)
        self._last = now

    def progress(self, stage: str, done: int, total: int) -> None:
        if self._on_progress is not None:
            self._on_progress(stage, done, total)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The tasks of both sides by the number of their row: first `count` of `tasks`, then the protected ones."""

    tasks: Sequence[Task]
    protected: Sequence[Task]
    places: npt.NDArray[np.int64]
    count: int

    def __call__(self, number: int) -> Task:
        return (self.tasks if number < self.count else self.protected)[int(self.places[number])]


def _survey(
    store: Store,
    comparison: Comparison,
    count: int,
    shown: Iterator[Revelation],
    spans: Spans | None,
    clock: _Clock,
) -> Survey:
    rows = store.rows
    pairs = comparison.pairs()
    clock.mark("candidates")
    same, related = _Union(count), _Union(count)
    duplicates: _Notes = {}
    contaminated: _Notes = {}
    reveals: _Notes = {}
    for i, j, alike in comparison.alike(pairs):
        if j >= count:  # protected tasks come last
            if alike.contaminates:
                _note(contaminated, i, j, _matches(alike, rows[j].task))
            continue
        if alike.related:
            related.join(i, j)
        if alike.duplicate:
            same.join(i, j)
            _note(duplicates, i, j, _matches(alike, rows[j].task))
            _note(duplicates, j, i, _matches(alike, rows[i].task))
    clock.mark("verify")
    for one in shown:
        _note(
            reveals if one.gold < count else contaminated,
            one.shows,
            one.gold,
            [Match("reveals", "gold", rows[one.gold].task, one.share)],
        )
        if one.gold < count:
            related.join(one.shows, one.gold)
    clock.mark("reveal")
    for i, j, match in _beside(comparison, count):
        _note(contaminated, i, j, [match])
    clock.mark("overlap")
    found = Survey(
        ids=[row.task for row in rows[:count]],
        splits=[row.split for row in rows[:count]],
        places=[row.place for row in rows[:count]],
        duplicates=_told(duplicates, comparison, spans),
        contaminated=_told(contaminated, comparison, spans),
        reveals=_told(reveals, comparison, None),
        clusters=[[rows[i].task for i in members] for members in related.sets()],
        duplicate_clusters=[[rows[i].task for i in members] for members in same.sets()],
        common=comparison.common,
        pairs=len(pairs),
    )
    clock.mark("spans")
    return found


def _beside(comparison: Comparison, count: int) -> Iterator[tuple[int, int, Match]]:
    """What pairs of similar sets do not show: overlapping runs, and the same repository."""
    rows = comparison.store.rows
    for i, j, facet, share in comparison.overlaps():
        yield i, j, Match("overlap", facet, rows[j].task, share)
    holders = {rows[j].repository: j for j in reversed(range(count, len(rows))) if rows[j].repository}
    for i, row in enumerate(rows[:count]):
        if (j := holders.get(row.repository, 0)) >= count:
            yield i, j, Match("repository", "provenance", rows[j].task, 1.0, row.repository)


def _matches(alike: Alike, other: str) -> list[Match]:
    found = [Match(kind, facet, other, score) for facet, (kind, score) in alike.found.items()]
    return [*found, Match("renamed", "change", other, 1.0)] if alike.same_work else found


_Notes = dict[int, list[tuple[Match, int]]]  # by task: each match, and the number of the other task
_KINDS = ("exact", "renamed", "near", "reveals", "overlap", "repository")
_WEAK = ("patch", "tests")  # facets that show little to a person, though they decide


def _strength(note: tuple[Match, int]) -> tuple[object, ...]:
    """Sorts the best match first."""
    match, other = note
    return match.facet in _WEAK, _KINDS.index(match.kind), -match.score, other, match.facet


def _note(notes: _Notes, task: int, other: int, matches: list[Match]) -> None:
    """Add the best of `matches` to those of `task`, of which the best are kept."""
    found = notes.setdefault(task, [])
    best = min(((match, other) for match in matches), key=_strength)
    same = next((at for at, (_, known) in enumerate(found) if known == other), None)
    if same is None:
        found.append(best)
    else:
        found[same] = min(found[same], best, key=_strength)
    if len(found) > 2 * _KEPT:
        found[:] = sorted(found, key=_strength)[:_KEPT]


def _told(notes: _Notes, comparison: Comparison, spans: Spans | None) -> dict[str, list[Match]]:
    """The matches by task id, the best of each with what both hold."""
    found: dict[str, list[Match]] = {}
    rows = comparison.store.rows
    for task in sorted(notes):
        best_first = sorted(notes[task], key=_strength)[:_KEPT]
        (best, other), matches = best_first[0], [match for match, _ in best_first]
        if spans is not None and best.kind not in ("repository", "reveals"):
            shared, length = comparison.shared(best, task, other)
            matches[0] = spans.shown(best, rows[task].place, shared, length)
        found[rows[task].task] = matches
    return found


def _whole(found: Survey) -> Survey:
    for reason in (*found.refused.values(), *found.refused_protected.values()):
        raise TaskError(reason)
    return found


class _Union:
    """Disjoint sets of numbers (Tarjan 1975, with path halving)."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, one: int) -> int:
        parent = self._parent
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    def join(self, one: int, other: int) -> None:
        one, other = sorted((self.find(one), self.find(other)))
        self._parent[other] = one

    def sets(self) -> list[list[int]]:
        """Those of two and more, by their smallest member."""
        found: dict[int, list[int]] = {}
        for one in range(len(self._parent)):
            if (root := self.find(one)) != one or root in found:
                found.setdefault(root, [root]).append(one)
        return [found[root] for root in sorted(found)]
