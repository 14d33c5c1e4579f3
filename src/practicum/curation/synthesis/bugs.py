"""Bugs injected into a project: one at a time, several in one file, or in several files.

Owns: `SingleBug`, `SeveralBugs`, `bug_strategies`, `rebuild`.
Invariant: each bug of a combined one is told by a test of its own accord before they are put together.
Must not know: how mutators work, how candidates are scheduled.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from practicum.curation.projects.project import Project
from practicum.curation.synthesis.instruction import bug_report
from practicum.curation.synthesis.mutation.quarry import Place, Quarry, mutate, sites_of
from practicum.curation.synthesis.mutation.scene import Edit
from practicum.curation.synthesis.strategy import Bench, Candidate, Ground, Refusal, Strategy
from practicum.errors import TaskError
from practicum.records.task import Task

_LOOKED_AT = 12  # places for a second bug before the first is given up


@dataclass(frozen=True, slots=True)
class SingleBug:
    """One mutation."""

    name: str = "single-bug"
    version: str = "3"

    def candidates(self, ground: Ground, rng: random.Random) -> Iterator[Candidate]:
        for place in Quarry(ground, rng).draw():
            candidate = _candidate(self, ground.project, [place])
            if candidate is not None:
                yield candidate

    async def realise(self, bench: Bench, candidate: Candidate) -> Task | Refusal:
        return await _repair(bench, candidate, ())


@dataclass(frozen=True, slots=True)
class SeveralBugs:
    """Two or three mutations, in different functions of one file or in different files."""

    name: str
    apart: bool  # each in a file of its own
    version: str = "3"

    def candidates(self, ground: Ground, rng: random.Random) -> Iterator[Candidate]:
        quarry = Quarry(ground, rng)
        while True:
            first = next(quarry.draw(), None)
            if first is None:
                return
            places = [first]
            wanted = rng.choice((2, 2, 3))
            for _, place in zip(range(_LOOKED_AT), quarry.draw(path=None if self.apart else first.path), strict=False):
                if all(self._fits(place, other) for other in places):
                    places.append(place)
                if len(places) == wanted:
                    break
            candidate = _candidate(self, ground.project, places) if len(places) > 1 else None
            if candidate is not None:
                yield candidate

    def _fits(self, one: Place, other: Place) -> bool:
        if self.apart:
            return one.path != other.path
        return one.site.function != other.site.function and not set(one.site.reach) & set(other.site.reach)

    async def realise(self, bench: Bench, candidate: Candidate) -> Task | Refusal:
        signs: list[str] = []
        for part in candidate.extra:
            trial = await bench.trial(part.changes, part.reach)
            if isinstance(trial, Refusal):
                return Refusal(f"a part {trial.reason}", trial.detail)
            signs.append(bench.ground.baseline.fastest_first(trial.failing)[0])
        return await _repair(bench, candidate, signs)


def bug_strategies() -> tuple[Strategy, ...]:
    """All ways of injecting bugs."""
    return SingleBug(), SeveralBugs("same-file", apart=False), SeveralBugs("several-files", apart=True)


def _candidate(strategy: Strategy, project: Project, places: Sequence[Place]) -> Candidate | None:
    """The candidate with all of `places` changed, or None where that is no program, or the same."""
    changes: dict[str, bytes | None] = {}
    reach: dict[str, frozenset[int]] = {}
    around: dict[str, frozenset[int]] = {}
    for path in sorted({place.path for place in places}):
        here = [place for place in places if place.path == path]
        changed = mutate(project.files[path].data, tuple(edit for place in here for edit in place.edits))
        if changed is None:
            return None
        changes[path] = changed
        reach[path] = frozenset(line for place in here for line in place.site.reach)
        around[path] = frozenset(line for place in here for line in place.site.around)
    kind = places[0].site.kind if len(places) == 1 else strategy.name
    parts = [_candidate(strategy, project, [place]) for place in places] if len(places) > 1 else []
    if None in parts:
        return None
    provenance = {"strategy_version": strategy.version, "bugs": [place.provenance for place in places]}
    return Candidate(strategy.name, kind, changes, reach, provenance, around=around, extra=parts)


async def _repair(bench: Bench, candidate: Candidate, signs: Sequence[str]) -> Task | Refusal:
    return await bench.repair(
        candidate,
        lambda trial, visible: bug_report(bench.ground, candidate, trial, visible, bench.settings),
        domain="bug-fix",
        must=signs,
    )


def rebuild(project: Project, provenance: Mapping[str, Any]) -> dict[str, bytes]:
    """The changed files of a task with this provenance, made anew from the project by the mutators that it names.

    Raises `TaskError` where the project or a mutator is not the one of then.
    """
    if provenance.get("parent") != project.digest:
        raise TaskError(
            f"the project is not the parent of the task: {project.digest} is not {provenance.get('parent')}"
        )
    bugs: Iterable[Mapping[str, Any]] = provenance["bugs"]
    edits: dict[str, list[Edit]] = {}
    for bug in bugs:
        named = (bug["mutator"], bug["mutator_version"], bug["start"], bug["function"])
        for site in sites_of(project.files[bug["path"]].data):
            if (site.mutator, site.version, site.start, site.function) == named and bug["way"] < len(site.ways):
                edits.setdefault(bug["path"], []).extend(site.ways[bug["way"]])
                break
        else:
            raise TaskError(f"the mutator {bug['mutator']!r} has no such site in {bug['path']} any more")
    made = {path: mutate(project.files[path].data, tuple(found)) for path, found in edits.items()}
    return {path: data for path, data in made.items() if data is not None}
