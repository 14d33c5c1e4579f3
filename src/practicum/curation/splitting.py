"""Which task belongs into which split.

Owns: `Piece`, `Way`, `Plan`, `split_pieces`, `read_fractions`.
Invariant: pure and deterministic by seed. What gives something else away stays together: near-duplicate clusters in
every way of splitting, and repositories (else parents: the state of a project that a task was made from) in the way
`repository`. No split is empty where there are as many units as splits.
Must not know: disks, how likeness is found.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from practicum.errors import ConfigError

Way = Literal["repository", "time", "cluster", "random"]
"""repository: by whole repositories. time: the oldest into the first split, and so on. cluster: by whole clusters of
related tasks. random: by task; only copies of one work stay together."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What splitting has to know of one task."""

    task: str
    repository: str = ""
    parent: str = ""
    date: dt.datetime | None = None

    @property
    def home(self) -> str:
        """What a split by repository keeps whole."""
        return self.repository or self.parent


@dataclass(frozen=True, slots=True)
class Plan:
    """`splits` maps ids to splits. `refused` are tasks that have no place, and why. `units` counts what was kept
    together as one, `largest` the tasks of the largest; `shared` are repositories that lie in several splits; `cuts`
    are the first dates of each split but the first, for the way `time`."""

    splits: Mapping[str, str]
    refused: Mapping[str, str] = field(default_factory=dict)
    units: int = 0
    largest: int = 0
    shared: tuple[str, ...] = ()
    cuts: tuple[dt.datetime, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Tasks by split."""
        return dict(Counter(self.splits.values()))


def read_fractions(text: str) -> dict[str, float]:
    """`train=0.8,validation=0.1,test=0.1` as numbers that sum to 1. Raises `ConfigError`."""
    fix = "write for example: train=0.8,validation=0.1,test=0.1"
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        try:
            found[name] = float(number)
        except ValueError:
            raise ConfigError(f"fractions: {part.strip()!r} is not NAME=NUMBER", fix=fix) from None
        if not name.isidentifier() or not 0 < found[name] <= 1:
            raise ConfigError(f"fractions: {part.strip()!r} is not a name and a number above 0, up to 1", fix=fix)
    if len(found) != len(text.split(",")):
        raise ConfigError(f"fractions: {text!r} names a split twice", fix=fix)
    if not math.isclose(sum(found.values()), 1.0, abs_tol=1e-6):
        raise ConfigError(f"fractions: they sum to {sum(found.values()):g}, not to 1", fix=fix)
    return found


def split_pieces(
    pieces: Sequence[Piece],
    way: Way,
    fractions: Mapping[str, float],
    *,
    clusters: Iterable[Sequence[str]] = (),
    seed: int = 0,
    cuts: Sequence[dt.datetime] = (),
) -> Plan:
    """Give each piece a split, in the order and about in the proportions of `fractions`.

    `clusters` are ids that stay together: related tasks, or copies only where the way is `random`. A unit is drawn by
    its name and the seed; then as few as possible are moved to come near the fractions (`_balanced`), so that adding
    tasks moves few others. For the way `time`, `cuts` (one fewer than splits) fix the dates; without, they are chosen
    to fit the fractions, and move when tasks are added. A single unit goes into the first split. A piece without a
    date, or without a repository in the way `repository`, is refused by name. Raises `ConfigError` for cuts that do not
    fit.
    """
    refused = _without_place(pieces, way)
    placed = [piece for piece in pieces if piece.task not in refused]
    units = _units(placed, way, clusters)
    if way == "time":
        dates = {name: min(p.date for p in unit if p.date) for name, unit in units.items()}
        each = [dates[name] for name, unit in units.items() for _ in unit]
        cuts = _given(cuts, fractions) if cuts else _cuts(fractions, each)
        names = list(fractions)
        split_of = {name: names[sum(date >= cut for cut in cuts)] for name, date in dates.items()}
    else:
        split_of = _balanced({name: len(unit) for name, unit in units.items()}, fractions, seed)
    splits = {piece.task: split_of[name] for name, unit in units.items() for piece in unit}
    where: dict[str, set[str]] = {}
    for piece in placed:
        where.setdefault(piece.home, set()).add(splits[piece.task])
    shared = tuple(sorted(name for name, found in where.items() if name and len(found) > 1))
    largest = max(map(len, units.values()), default=0)
    dated = tuple(cuts) if way == "time" else ()
    return Plan(dict(sorted(splits.items())), refused, len(units), largest, shared, dated)


def _without_place(pieces: Iterable[Piece], way: Way) -> dict[str, str]:
    if way == "time":
        return {p.task: "its provenance states no date" for p in pieces if p.date is None}
    if way == "repository":
        return {p.task: "its provenance states no repository and no parent" for p in pieces if not p.home}
    return {}


def _units(pieces: Sequence[Piece], way: Way, clusters: Iterable[Sequence[str]]) -> dict[str, list[Piece]]:
    """What stays together, under a name that does not change when the unit grows by more tasks of what names it."""
    parent: dict[str, str] = {}

    def find(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    def join(one: str, other: str) -> None:
        # The name of the whole is the least in an order that the seed does not know, and names do not suggest.
        first, second = sorted((find(one), find(other)), key=lambda key: sha256(key.encode()).hexdigest())
        parent[second] = first

    def key_of(piece: Piece) -> str:
        return f"repository {piece.home}" if way == "repository" else f"task {piece.task}"

    keys = {piece.task: key_of(piece) for piece in pieces}
    for members in clusters:
        known = [keys[task] for task in members if task in keys]
        for other in known[1:]:
            join(known[0], other)
    units: dict[str, list[Piece]] = {}
    for piece in pieces:
        units.setdefault(find(keys[piece.task]), []).append(piece)
    return units


def _balanced(sizes: Mapping[str, int], fractions: Mapping[str, float], seed: int) -> dict[str, str]:
    """The split of each unit: as drawn, then one unit after another moved to where most is missing, as long as that
    brings the splits nearer to their parts.

    Units move in an order of their own for each split (by hash), so that one task more changes the splits of few
    others. The trade: a plain draw would move none, but leaves small splits empty, and is off by about the square root
    of what they should hold.
    """
    names = list(fractions)
    if len(sizes) <= len(names):  # the largest into the first split, then one each
        ranked = sorted(sizes, key=lambda name: (-sizes[name], _point(name, str(seed))))
        return dict(zip(ranked, names, strict=False))
    wanted = {name: part * sum(sizes.values()) for name, part in fractions.items()}
    split_of: dict[str, str] = {}
    for name in sorted(sizes):  # a unit that is larger than a split should be is not drawn into it
        fits = {to: part for to, part in fractions.items() if sizes[name] <= max(1, wanted[to])}
        split_of[name] = _drawn(name, fits, str(seed)) if fits else max(fractions, key=lambda to: fractions[to])
    orders = {to: sorted(sizes, key=lambda name: (_point(name, f"{seed}-{to}"), name)) for to in names}
    kinds = Counter((split, sizes[name]) for name, split in split_of.items())
    while (step := _step(kinds, wanted)) is not None:
        (source, size), target = step
        moved = next(name for name in orders[target] if split_of[name] == source and sizes[name] == size)
        split_of[moved] = target
        kinds[source, size] -= 1
        kinds[target, size] += 1
    return split_of


def _step(kinds: Mapping[tuple[str, int], int], wanted: Mapping[str, float]) -> tuple[tuple[str, int], str] | None:
    """Of which split and size a unit moves next, and where to; None where no move helps. `kinds` counts the units."""
    units = {name: sum(count for (split, _), count in kinds.items() if split == name) for name in wanted}
    over = {
        name: sum(size * count for (split, size), count in kinds.items() if split == name) - part
        for name, part in wanted.items()
    }
    free = sorted(kind for kind, count in kinds.items() if count and units[kind[0]] > 1)
    empty = next((name for name in wanted if not units[name]), None)
    if empty is not None:  # the smallest unit that another split can spare
        return min(free, key=lambda kind: (kind[1], -over[kind[0]])), empty
    for target in sorted(wanted, key=lambda name: over[name]):
        # What the sum of squared distances to the wanted sizes shrinks by, halved.
        gains = {kind: kind[1] * (over[kind[0]] - over[target] - kind[1]) for kind in free if kind[0] != target}
        best = max(gains, key=lambda kind: gains[kind], default=None)
        if best is not None and gains[best] > 1e-9 * best[1] ** 2:
            return best, target
    return None


def _point(name: str, seed: str) -> float:
    """A unit's name and the seed, hashed to [0, 1)."""
    return int.from_bytes(sha256(f"split-{seed}-{name}".encode()).digest()[:8], "big") / 2**64


def _drawn(name: str, fractions: Mapping[str, float], seed: str) -> str:
    """The split in whose part of the line a unit's point lies."""
    point = _point(name, seed) * sum(fractions.values())
    for split, fraction in fractions.items():
        point -= fraction
        if point < 0:
            return split
    return list(fractions)[-1]


def _given(cuts: Sequence[dt.datetime], fractions: Mapping[str, float]) -> tuple[dt.datetime, ...]:
    if len(cuts) != len(fractions) - 1 or list(cuts) != sorted(cuts):
        raise ConfigError(f"{len(fractions)} splits need {len(fractions) - 1} cuts, in the order of time")
    return tuple(cuts)


def _cuts(fractions: Mapping[str, float], dates: Sequence[dt.datetime]) -> tuple[dt.datetime, ...]:
    """The first date of each split but the first, so that each gets about its part of `dates`, and something.

    Fewer dates than splits give fewer cuts: what has no date of its own stays empty, from the last split.
    """
    ordered, days = sorted(dates), sorted(set(dates))
    found: list[dt.datetime] = []
    part, least = 0.0, 1
    for number, fraction in enumerate(list(fractions.values())[:-1]):
        part += fraction
        if least >= len(days):
            break
        wanted = bisect_left(days, ordered[min(round(part * len(ordered)), len(ordered) - 1)])
        left = len(fractions) - 2 - number  # cuts that are still to come
        at = max(least, min(wanted, len(days) - 1 - left))
        found.append(days[at])
        least = at + 1
    return tuple(found)
