"""Features of many tasks, on disk where they are large.

Owns: `Store`, `Ragged`, `scratch`.
Invariant: memory grows by some hundred bytes a task, whatever the tasks hold; hashes lie in files without a name, of
which nothing is left when the process ends, however it ends.
Must not know: what hashes mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile, gettempdir
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.features import HASHED, PRINTS, Batch, Column, Row
from practicum.errors import StoreError

Hashes = npt.NDArray[np.uint64]
_CHUNK = 1 << 20  # hashes that are held at once


@contextmanager
def scratch() -> Iterator[None]:
    """For what is done with files without a name: a disk that fails is told as a `StoreError` that names the folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write what is compared to a file in {gettempdir()}: {error.strerror or error}",
            fix="free space there, or name another folder in TMPDIR",
        ) from error


class Ragged:
    """Hashes of each task, in one file. Written once from first to last, then read."""

    def __init__(self) -> None:
        with scratch():
            self._file = TemporaryFile(prefix="practicum-", buffering=1 << 20)  # noqa: SIM115  closed by `close`
        self._counts: list[npt.NDArray[np.int64]] = []
        self.offsets: npt.NDArray[np.int64] = np.zeros(1, np.int64)

    def append(self, flat: Hashes, counts: npt.NDArray[np.int64]) -> None:
        """More tasks: their hashes end to end, and how many each has."""
        with scratch():
            self._file.write(flat.tobytes())
        self._counts.append(counts)

    def finish(self) -> None:
        """No more to come; from here on it can be read."""
        with scratch():
            self._file.flush()
        counts = np.concatenate([np.zeros(0, np.int64), *self._counts])
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._counts = []

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)

    def span(self, start: int, stop: int) -> Hashes:
        """The hashes of tasks [start, stop), end to end."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        data = os.pread(self._file.fileno(), (last - first) * 8, first * 8)
        return np.frombuffer(data, np.uint64)

    def __getitem__(self, index: int) -> Hashes:
        return self.span(index, index + 1)

    def chunks(self) -> Iterator[tuple[int, int, Hashes]]:
        """(start, stop, hashes) of successive tasks, about `_CHUNK` hashes at a time."""
        count, start = len(self.offsets) - 1, 0
        while start < count:
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + _CHUNK, side="right")) - 1
            stop = min(max(stop, start + 1), count)
            yield start, stop, self.span(start, stop)
            start = stop

    def close(self) -> None:
        with scratch():  # what a full disk did not take is tried once more
            self._file.close()


class Store:
    """All features of the tasks that were added, in the order in which they came."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.rows: list[Row] = []
        self.refused: dict[int, str] = {}
        self.sets = {column.name: Ragged() for column in columns}
        self._hashes: list[Hashes] = []
        self.hashes: Hashes = np.zeros((0, len(HASHED) + len(PRINTS)), np.uint64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with ExitStack() as stack:
            for ragged in self.sets.values():
                stack.callback(ragged.close)

    def add(self, batches: Iterable[Batch]) -> None:
        """Take in what comes."""
        for batch in batches:
            self.rows += batch.rows
            self.refused |= batch.refused
            self._hashes.append(batch.hashes)
            for column, flat, counts in zip(self.columns, batch.flat, batch.counts, strict=True):
                self.sets[column.name].append(flat, counts)

    def finish(self) -> None:
        """All tasks are there."""
        self.hashes = np.concatenate([self.hashes, *self._hashes])
        self._hashes = []
        for ragged in self.sets.values():
            ragged.finish()

    def hashed(self, name: str) -> Hashes:
        """Hash of the whole text, or fingerprint, for each task; 0 where there is none."""
        return self.hashes[:, (*HASHED, *PRINTS).index(name)]
