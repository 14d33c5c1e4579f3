"""Pairs of tasks that are alike: candidates from hashes and signatures, each verified on the sets themselves.

Owns: `Comparison`.
Invariant: a score that is reported was counted, never estimated; what a source has in common does not count.
Must not know: what follows from a match, where tasks come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.boilerplate import limits_of, without_boilerplate
from practicum.curation.similarity.features import HASHED, Column
from practicum.curation.similarity.matches import Alike, FacetRule, Kind, Match, Rules
from practicum.curation.similarity.minhash import (
    Flags,
    Pairs,
    Signatures,
    agreement,
    banding_for,
    bucket_pairs,
    candidates,
    signatures,
)
from practicum.curation.similarity.overlap import overlaps
from practicum.curation.similarity.store import Ragged, Store
from practicum.curation.similarity.tokens import mixed

Hashes = npt.NDArray[np.uint64]
_REWRITTEN = 0.6  # part of the code that the patch is as large as
_DOUBT = 4.0  # standard errors by which an estimate may be off before a pair is passed over unverified


@dataclass(frozen=True, slots=True)
class _Facet:
    """One facet of all tasks, without boilerplate. `doubt` is how far below the threshold an estimate may lie."""

    rule: FacetRule
    near: float
    sets: Ragged
    sizes: npt.NDArray[np.int64]
    usable: Flags
    signatures: Signatures
    doubt: float


class Comparison:
    """What of a store can be compared. `protected` says which of its tasks are on the other side.

    Pairs within the protected side are never looked at.
    """

    def __init__(self, store: Store, rules: Rules, protected: Flags) -> None:
        self.store, self.rules, self.protected = store, rules, protected
        self.common: dict[str, int] = {}
        self._groups = {by_source: _groups(store, by_source=by_source) for by_source in (True, False)}
        self._distinct = {by: _first_of_its_kind(store, groups) for by, groups in self._groups.items()}
        self.cleaned = {column.name: self._clean(column) for column in store.columns}
        self._facets = [self._facet(rule) for rule in rules.facets]
        code, patch = (store.sets[f"{name}-near"].sizes for name in ("code", "patch"))
        self._rewritten = patch >= _REWRITTEN * code  # the patch says nothing beside the code: it is most of it
        self._prints = {name: self._rare(store.hashed(name)) for name in ("gold", "work")}

    def close(self) -> None:
        """Let go of the files."""
        for ragged in self.cleaned.values():
            ragged.close()

    def pairs(self) -> Pairs:
        """Candidates, each once: equal texts or fingerprints, or signatures that agree in a band."""
        count = len(self.store.rows)
        packed = [self._packed(pairs, count) for pairs in self._candidates()]
        found = np.unique(np.concatenate([np.empty(0, np.int64), *packed]))
        return np.stack([found // count, found % count], axis=1) if count else np.empty((0, 2), np.int64)

    def alike(self, pairs: Pairs) -> Iterator[tuple[int, int, Alike]]:
        """What each pair shares, for those that share something, in order."""
        likely = [agreement(facet.signatures, pairs) >= facet.near - facet.doubt for facet in self._facets]
        for number, (i, j) in enumerate(pairs.tolist()):
            found = self._compare(i, j, [bool(one[number]) for one in likely])
            if found.found or found.same_work:
                yield i, j, found

    def overlaps(self) -> Iterator[tuple[int, int, str, float]]:
        """(task, protected task, facet, share) where more of a task's long runs stand in the other than may be."""
        families = _families(self.store)
        sides = families * 2 + self.protected
        for rule in self.rules.facets:
            if (column := self.cleaned.get(f"{rule.name}-run")) is None:
                continue
            own = self._without_shared(column, sides, rule.run)
            try:
                for i, j, count, share in overlaps(column, self.protected):
                    least = rule.share
                    if self.store.rows[i].source and families[i] == families[j]:
                        least += self.rules.kin_share
                        count = len(np.intersect1d(own[i], own[j]))
                        share = count / len(column[i])
                    if share > least or 0 < rule.passage <= count:
                        yield i, j, rule.name, share
            finally:
                own.close()

    def _without_shared(self, column: Ragged, sides: npt.NDArray[np.int64], reach: int) -> Ragged:
        """`column` without what two distinct tasks of one family hold on the same side: their template."""
        rules = replace(self.rules, common_share=0.0, common_least=1)
        return without_boilerplate(column, sides, self._distinct[True], rules, reach=reach)[0]

    def shared(self, match: Match, i: int, j: int) -> tuple[Hashes, int]:
        """What of the matching facet both tasks have, boilerplate aside, and the length of each such run."""
        rule = next(
            rule for rule in self.rules.facets if rule.name == ("code" if match.facet == "change" else match.facet)
        )
        if match.kind == "overlap":
            runs = self.cleaned[f"{rule.name}-run"]
            return np.intersect1d(runs[i], runs[j]), rule.run
        sets = self.cleaned[f"{rule.name}-near"]
        return np.intersect1d(sets[i], sets[j], assume_unique=True), rule.shingle

    def _candidates(self) -> Iterator[Pairs]:
        first = self.protected if self.protected.any() else None
        for values in self._prints.values():
            yield bucket_pairs(values, self.store.hashed("patch"), first)
        for facet in self._facets:
            if facet.rule.name in HASHED:
                whole = np.where(facet.usable, self.store.hashed(facet.rule.name), np.uint64(0))
                yield bucket_pairs(whole, self._prints["work"], first)
            banding = banding_for(facet.near, self.rules.permutations, self.rules.recall)
            for pairs in candidates(facet.signatures, facet.usable, banding, first):
                yield pairs[agreement(facet.signatures, pairs) >= facet.near - facet.doubt]

    def _packed(self, pairs: Pairs, count: int) -> npt.NDArray[np.int64]:
        """Each pair as one number, without those inside the protected side."""
        wanted = ~(self.protected[pairs[:, 0]] & self.protected[pairs[:, 1]])
        return np.unique(pairs[wanted, 0] * count + pairs[wanted, 1])

    def _compare(self, i: int, j: int, likely: list[bool]) -> Alike:
        found: dict[str, tuple[Kind, float]] = {}
        told: list[str] = []
        alone: list[str] = []
        rewritten = self._rewritten[i] or self._rewritten[j]
        for facet, maybe in zip(self._facets, likely, strict=True):
            name = facet.rule.name
            if not (facet.usable[i] and facet.usable[j]) or (rewritten and name == "patch"):
                continue
            told.append(name)
            if min(facet.sizes[i], facet.sizes[j]) >= facet.rule.alone:
                alone.append(name)
            if name in HASHED and (values := self.store.hashed(name))[i] == values[j]:
                found[name] = ("exact", 1.0)
            elif maybe and (score := jaccard(facet.sets[i], facet.sets[j])) >= facet.near:
                found[name] = ("near", score)
        gold, work = self._prints["gold"], self._prints["work"]
        if gold[i] and gold[i] == gold[j] and found.get("code", ("", 0))[0] != "exact":
            found["code"] = ("renamed", 1.0)
            alone.append("code")
        return Alike(found, bool(work[i] and work[i] == work[j]), frozenset(told), frozenset(alone))

    def _clean(self, column: Column) -> Ragged:
        raw, by = self.store.sets[column.name], column.by_source
        reach = column.length if column.use == "run" else 1
        tasks = (self._groups[by], self._distinct[by])
        kept, self.common[column.name] = without_boilerplate(raw, *tasks, self.rules, reach=reach)
        return kept

    def _facet(self, rule: FacetRule) -> _Facet:
        near = self.rules.near(rule)
        sets = self.cleaned[f"{rule.name}-near"]
        permutations = banding_for(near, self.rules.permutations, self.rules.recall).permutations
        found = signatures(sets, permutations)
        doubt = _DOUBT * math.sqrt(near * (1 - near) / permutations)
        return _Facet(rule, near, sets, sets.sizes, sets.sizes >= rule.least, found, doubt)

    def _rare(self, values: Hashes) -> Hashes:
        """Fingerprints without those that are common among the distinct tasks of a group: its template."""
        groups, distinct = self._groups[False], self._distinct[False]
        limit = limits_of(groups, distinct, self.rules)
        keys = mixed(values ^ mixed(groups.astype(np.uint64)))
        names, counts = np.unique(keys[distinct], return_counts=True)
        if not len(names):
            return values
        at = np.minimum(np.searchsorted(names, keys), len(names) - 1)
        often = (names[at] == keys) & (counts[at] > limit[groups])
        return np.where(often, np.uint64(0), values)


def jaccard(one: Hashes, other: Hashes) -> float:
    """The share of all members of two sorted sets that are in both; 0 where both are empty."""
    both = len(np.intersect1d(one, other, assume_unique=True))
    every = len(one) + len(other) - both
    return both / every if every else 0.0


def _groups(store: Store, *, by_source: bool) -> npt.NDArray[np.int64]:
    """Number of each task's group: its source, or its repository where it states one."""
    names = [row.source if by_source else row.repository or row.source for row in store.rows]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([numbers[name] for name in names], np.int64)


def _families(store: Store) -> npt.NDArray[np.int64]:
    """Number of each task's family of sources: what stands before the first `/`."""
    names = [row.source.partition("/")[0] for row in store.rows]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([numbers[name] for name in names], np.int64)


def _first_of_its_kind(store: Store, groups: npt.NDArray[np.int64]) -> Flags:
    """False for tasks whose statement, code and patch are those of an earlier task of the group."""
    keys = mixed(groups.astype(np.uint64))
    for name in ("instruction", "code", "patch"):
        keys = mixed(keys ^ store.hashed(name))
    flags = np.zeros(len(keys), np.bool_)
    flags[np.unique(keys, return_index=True)[1]] = True
    return flags
