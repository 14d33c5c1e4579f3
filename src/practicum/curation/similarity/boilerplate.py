"""Text that many tasks of one source share, and that therefore says nothing about any of them.

Owns: `without_boilerplate`, `limits_of`.
Invariant: a hash is dropped from the tasks of one group only where it is common among the *distinct* tasks of that
group; copies of one task count once, so that copying does not make a task's own text common.
Must not know: what hashes mean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.matches import Rules
from practicum.curation.similarity.store import Ragged
from practicum.curation.similarity.tokens import mixed

Hashes = npt.NDArray[np.uint64]
_AT_ONCE = 1 << 23  # hashes that are counted at once; beyond, in several passes


def without_boilerplate(
    column: Ragged,
    groups: npt.NDArray[np.int64],
    distinct: npt.NDArray[np.bool_],
    rules: Rules,
    *,
    reach: int = 1,
) -> tuple[Ragged, int]:
    """`column` without what is common, and how many hashes were common. Close it in the end.

    `groups` numbers each task's group, `distinct` is False for a task that is a copy of an earlier one. For runs,
    which stand in order, `reach` is their length: one that overlaps a common one goes too, for it is in part
    boilerplate. (A run that a single task repeats often counts as common as well.)
    """
    limits = limits_of(groups, distinct, rules)
    common = _common(column, groups, distinct, limits)
    kept = Ragged()
    for start, stop, flat in column.chunks():
        owners = np.repeat(np.arange(start, stop), column.sizes[start:stop])
        mask = ~_spread(_contains(common, _keys(flat, groups[owners])), column.sizes[start:stop], reach)
        kept.append(flat[mask], np.bincount(owners[mask] - start, minlength=stop - start))
    kept.finish()
    return kept, len(common)


def limits_of(groups: npt.NDArray[np.int64], distinct: npt.NDArray[np.bool_], rules: Rules) -> npt.NDArray[np.int64]:
    """For each group, in how many tasks a hash may stand and still say something."""
    sizes = np.bincount(groups[distinct], minlength=int(groups.max(initial=-1)) + 1)
    share = np.minimum(rules.common_share * sizes, rules.common_most)
    return np.asarray(np.maximum(share, rules.common_least), np.int64)


def _common(
    column: Ragged, groups: npt.NDArray[np.int64], distinct: npt.NDArray[np.bool_], limits: npt.NDArray[np.int64]
) -> Hashes:
    """The sorted keys of hashes that stand in more tasks of their group than its limit."""
    passes = int(column.offsets[-1]) // _AT_ONCE + 1
    found: list[Hashes] = [np.empty(0, np.uint64)]
    least = int(limits.min(initial=0))
    for number in range(passes):
        keys, places = _part(column, groups, distinct, number, passes)
        order = np.sort(keys)
        first = np.flatnonzero(np.diff(order, prepend=order[:1] ^ np.uint64(1)))
        counts = np.diff(first, append=len(order))
        often = counts > least
        candidates, counts = order[first[often]], counts[often]
        if len(candidates):
            at = np.searchsorted(candidates, keys)
            hit = (at < len(candidates)) & (candidates[np.minimum(at, len(candidates) - 1)] == keys)
            group = np.zeros(len(candidates), np.int64)
            group[at[hit]] = places[hit]
            found.append(candidates[counts > limits[group]])
    return np.sort(np.concatenate(found))


def _part(
    column: Ragged, groups: npt.NDArray[np.int64], distinct: npt.NDArray[np.bool_], number: int, passes: int
) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Keys that fall into pass `number`, and the group of each."""
    keys: list[Hashes] = [np.empty(0, np.uint64)]
    places: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    for start, stop, flat in column.chunks():
        sizes = column.sizes[start:stop]
        group = np.repeat(groups[start:stop], sizes)
        key = _keys(flat, group)
        mask = np.repeat(distinct[start:stop], sizes) & (key % np.uint64(passes) == np.uint64(number))
        keys.append(key[mask])
        places.append(group[mask])
    return np.concatenate(keys), np.concatenate(places)


def _keys(flat: Hashes, groups: npt.NDArray[np.int64]) -> Hashes:
    """One number for a hash within a group."""
    return mixed(flat ^ mixed(groups.astype(np.uint64) + np.uint64(1)))


def _contains(common: Hashes, keys: Hashes) -> npt.NDArray[np.bool_]:
    if not len(common):
        return np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(common, keys), len(common) - 1)
    return np.asarray(common[at] == keys)


def _spread(mask: npt.NDArray[np.bool_], sizes: npt.NDArray[np.int64], reach: int) -> npt.NDArray[np.bool_]:
    """`mask` widened by less than `reach` places to both sides, within each task."""
    if reach == 1 or not mask.any():
        return mask
    ends = np.cumsum(sizes)
    place, counted = np.arange(len(mask)), np.concatenate([[0], np.cumsum(mask)])
    low = np.maximum(place - reach + 1, np.repeat(ends - sizes, sizes))
    high = np.minimum(place + reach, np.repeat(ends, sizes))
    return np.asarray(counted[high] > counted[low])
