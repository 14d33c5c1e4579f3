"""Long runs of words or tokens that stand in a protected task too, whatever stands around them.

Owns: `overlaps`.
Invariant: every task with such a run is found; runs that are boilerplate of their source do not count.
Must not know: what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.minhash import Flags
from practicum.curation.similarity.store import Ragged

Hashes = npt.NDArray[np.uint64]


def overlaps(runs: Ragged, protected: Flags) -> Iterator[tuple[int, int, int, float]]:
    """(task, protected task, runs, their share) for each task with runs that stand in protected tasks.

    The protected task named is the one that most of them stand in (of several with a run, its first holder).
    """
    grams, owners = _index(runs, protected)
    if not len(grams):
        return
    for start, stop, flat in runs.chunks():
        at = np.minimum(np.searchsorted(grams, flat), len(grams) - 1)
        hit = grams[at] == flat
        places = np.repeat(np.arange(start, stop), runs.sizes[start:stop])
        hit &= ~protected[places]
        counts = np.bincount(places[hit] - start, minlength=stop - start)
        for number in np.flatnonzero(counts):
            part = counts[number] / runs.sizes[start + number]
            mine = slice(*(runs.offsets[start + number : start + number + 2] - runs.offsets[start]))
            other = int(np.bincount(owners[at[mine][hit[mine]]]).argmax())
            yield int(start + number), other, int(counts[number]), float(part)


def _index(runs: Ragged, protected: Flags) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """All runs of protected tasks, sorted, each with the first task that holds it."""
    found: list[Hashes] = [np.empty(0, np.uint64)]
    holders: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    for start, stop, flat in runs.chunks():
        places = np.repeat(np.arange(start, stop), runs.sizes[start:stop])
        mask = protected[places]
        found.append(flat[mask])
        holders.append(places[mask])
    grams, first = np.unique(np.concatenate(found), return_index=True)
    return grams, np.concatenate(holders)[first]
