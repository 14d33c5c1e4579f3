"""MinHash signatures and locality-sensitive hashing: pairs of sets that are probably alike, without comparing all.

Owns: `Banding`, `banding_for`, `signatures`, `bucket_pairs`, `candidates`.
Invariant: of pairs whose Jaccard index is at the threshold, the share that becomes candidates is at least the recall
asked for (more above it); memory is bounded by the bucket cap, never quadratic.
Must not know: tasks.

Broder 1997 (resemblance = chance that minima agree); Leskovec, Rajaraman, Ullman, *Mining of Massive Datasets*, 3.4
(bands of rows: a pair with index s becomes a candidate with chance 1 − (1 − s^r)^b).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tempfile import TemporaryFile

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.store import Ragged
from practicum.curation.similarity.tokens import mixed

Hashes = npt.NDArray[np.uint64]
Signatures = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Pairs = npt.NDArray[np.int64]  # (pairs, 2), the smaller number first
CAP = 64  # members of a bucket up to which all pairs are looked at
_LARGE = 1 << 24  # bytes of signatures from which they are kept in a file
WINDOW = 8  # in larger ones, each member is paired with so many that follow it


@dataclass(frozen=True, slots=True)
class Banding:
    """`bands` of `rows` minima each."""

    bands: int
    rows: int

    @property
    def permutations(self) -> int:
        return self.bands * self.rows

    def chance(self, jaccard: float) -> float:
        """That a pair of this Jaccard index becomes a candidate."""
        return float(1 - (1 - jaccard**self.rows) ** self.bands)


def banding_for(threshold: float, permutations: int = 128, recall: float = 0.99) -> Banding:
    """The banding with the most rows (the fewest false candidates), then the fewest bands, that finds a pair at the
    threshold with chance `recall`, within so many permutations. Raises `ValueError` where there is none."""
    for rows in range(permutations, 0, -1):
        once = threshold**rows
        bands = math.log(1 - recall) / math.log1p(-once) if 0 < once < 1 else 1.0
        if once > 0 and bands <= permutations // rows:
            return Banding(math.ceil(bands), rows)
    raise ValueError(f"no banding of {permutations} permutations finds pairs at {threshold} with chance {recall}")


def signatures(sets: Ragged, permutations: int, threads: int = 2) -> Signatures:
    """Minima for each set (sets × permutations); in a file without a name where they are many. All ones for none."""
    count = len(sets.sizes)
    found: Signatures = _table((count, permutations)) if count else np.empty((0, permutations), np.uint32)
    random = np.random.default_rng(20)
    factors = random.integers(0, 1 << 63, permutations, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    terms = random.integers(0, 1 << 63, permutations, dtype=np.uint64)

    def fill(chunk: tuple[int, int, Hashes]) -> None:
        start, stop, flat = chunk
        sizes = sets.sizes[start:stop]
        some = np.flatnonzero(sizes)
        block = np.full((permutations, stop - start), 0xFFFFFFFF, np.uint32)
        if len(some):
            starts = (sets.offsets[start:stop] - sets.offsets[start])[some]
            for at in range(permutations):  # multiply-shift (Dietzfelbinger et al. 1997) on well-mixed values
                values = ((flat * factors[at] + terms[at]) >> np.uint64(32)).astype(np.uint32)
                block[at, some] = np.minimum.reduceat(values, starts)
        found[start:stop] = block.T

    with ThreadPoolExecutor(threads) as pool:  # numpy lets go of the interpreter's lock
        for _ in pool.map(fill, sets.chunks()):
            pass
    return found


def _table(shape: tuple[int, int]) -> Signatures:
    if shape[0] * shape[1] * 4 < _LARGE:
        return np.empty(shape, np.uint32)
    with TemporaryFile(prefix="practicum-") as file:  # the mapping outlives the descriptor
        return np.memmap(file, np.uint32, "w+", shape=shape)


def bucket_pairs(keys: Hashes, order_by: Hashes | None = None, first: Flags | None = None) -> Pairs:
    """Pairs of places with equal keys: all within a bucket of up to CAP members, neighbours in larger ones.

    In a large bucket members stand in the order of `order_by`, so that equal ones are neighbours; each is also paired
    with some of those that are `first`. A key of 0 is no key.
    """
    some = np.flatnonzero(keys)
    order = some[
        np.lexsort([way[some] for way in (order_by, None if first is None else ~first, keys) if way is not None])
    ]
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] ^ np.uint64(1)))
    sizes = np.diff(starts, append=len(ordered))
    size_of, start_of = np.repeat(sizes, sizes), np.repeat(starts, sizes)
    left = size_of - (np.arange(len(ordered)) - start_of) - 1  # members that follow in the bucket
    reach = np.where(size_of <= CAP, left, np.minimum(left, WINDOW))
    found: list[Pairs] = [np.empty((0, 2), np.int64)]
    for step in range(1, int(reach.max(initial=0)) + 1):
        at = np.flatnonzero(reach >= step)
        found.append(np.stack([order[at], order[at + step]], axis=1))
    if first is not None:
        large = np.flatnonzero((size_of > CAP) & ~first[order])
        for step in range(WINDOW):
            head = order[start_of[large] + step]
            found.append(np.stack([head, order[large]], axis=1)[first[head]])
    return np.sort(np.concatenate(found), axis=1)


def candidates(signatures: Signatures, usable: Flags, banding: Banding, first: Flags | None = None) -> Iterator[Pairs]:
    """Pairs of usable sets that agree in a band, band by band; the same pair may come again."""
    previous: Hashes | None = None
    for band in range(banding.bands):
        rows = np.asarray(signatures[:, band * banding.rows : (band + 1) * banding.rows], np.uint64)
        keys = np.full(len(rows), band + 1, np.uint64)
        for at in range(banding.rows):
            keys = mixed(keys ^ rows[:, at])
        keys = np.where(usable, keys | np.uint64(1), np.uint64(0))
        yield bucket_pairs(keys, previous, first)
        previous = keys


def agreement(signatures: Signatures, pairs: Pairs) -> npt.NDArray[np.float64]:
    """The estimated Jaccard index of each pair: the share of minima that agree (standard error √(s(1 − s)/k))."""
    found = np.empty(len(pairs), np.float64)
    for start in range(0, len(pairs), 1 << 16):
        part = pairs[start : start + (1 << 16)]
        found[start : start + len(part)] = (signatures[part[:, 0]] == signatures[part[:, 1]]).mean(axis=1)
    return found
