"""Whose runs these are: all runs of many tasks, sorted, in a file that several processes can look into.

Owns: `RunTable`, `run_table`.
Invariant: memory is bounded while it is made, whatever it holds; the file has no name, and nothing is left of it when
the process that made it ends, however it ends.
Must not know: what runs are of.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.store import Ragged, scratch

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.uint32]
_AT_ONCE = 1 << 22  # runs that are sorted at once


class RunTable:
    """`length` runs and the owner of each. Sent to another process it is opened there, as long as it is open here."""

    def __init__(self, runs: str, owners: str, length: int) -> None:
        self.length = length
        self._paths = (runs, owners)
        self._runs: Hashes = np.memmap(runs, np.uint64, "r", shape=(length,)) if length else np.empty(0, np.uint64)
        self._owners: Places = np.memmap(owners, np.uint32, "r", shape=(length,)) if length else np.empty(0, np.uint32)

    def __reduce__(self) -> tuple[type[RunTable], tuple[str, str, int]]:
        return RunTable, (*self._paths, self.length)

    def known(self, runs: Hashes) -> Hashes:
        """Those of `runs` that stand in the table, which is not empty."""
        at = np.minimum(np.searchsorted(self._runs, runs), self.length - 1)
        return np.asarray(runs[self._runs[at] == runs])

    def owners_of(self, runs: Hashes) -> Places:
        """The owners of `runs`, each as often as it holds one."""
        first, last = np.searchsorted(self._runs, runs, "left"), np.searchsorted(self._runs, runs, "right")
        sizes = last - first
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.asarray(self._owners[np.repeat(first, sizes) + within])


@contextmanager
def run_table(sets: Ragged, *, at_once: int = _AT_ONCE) -> Iterator[RunTable]:
    """A table of all that `sets` holds, each under its number there; about `at_once` runs are sorted at a time."""
    length = int(sets.offsets[-1])
    passes = length // at_once + 1
    with ExitStack() as stack:
        with scratch(), ExitStack() as writing:  # closing writes what is left, and may fail as well
            runs, owners = (writing.enter_context(TemporaryFile(prefix="practicum-")) for _ in range(2))
            for number in range(passes):
                values, holders = _part(sets, number, passes)
                order = np.argsort(values, kind="stable")
                runs.write(values[order].tobytes())
                owners.write(holders[order].tobytes())
            runs.flush()
            owners.flush()
            stack.push(writing.pop_all())
        # A file without a name can be opened by way of the process that holds it.
        here = f"/proc/{os.getpid()}/fd"
        yield RunTable(f"{here}/{runs.fileno()}", f"{here}/{owners.fileno()}", length)


def _part(sets: Ragged, number: int, passes: int) -> tuple[Hashes, Places]:
    """The runs that fall into pass `number`, which are larger than those of earlier ones, and the owner of each."""
    step = (1 << 64) // passes + 1
    least, most = number * step, min((number + 1) * step, 1 << 64) - 1
    found: list[Hashes] = [np.empty(0, np.uint64)]
    holders: list[Places] = [np.empty(0, np.uint32)]
    for start, stop, flat in sets.chunks():
        mask = (flat >= np.uint64(least)) & (flat <= np.uint64(most))
        found.append(flat[mask])
        holders.append(np.repeat(np.arange(start, stop, dtype=np.uint32), sets.sizes[start:stop])[mask])
    return np.concatenate(found), np.concatenate(holders)
