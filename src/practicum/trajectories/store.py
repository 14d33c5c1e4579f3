"""The store: trajectories as append-only Parquet, one file per appended batch.

Owns: `TrajectoryStore`, `Batch`.
Invariant: a file is whole or absent, is never changed, and reads back as the records that were appended.
One writer at a time (the run folder's lock sees to it), any number of readers.
Must not know: how rewards are made, or which trajectories train.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practicum.errors import StoreError
from practicum.records.trajectory import Trajectory
from practicum.trajectories.columns import SCHEMA_VERSION, from_table, to_table
from practicum.trajectories.durable import failed, sync_folder, write_atomic

_PHASE = re.compile(r"[a-z][a-z0-9_]*")
_NAME = re.compile(rf"({_PHASE.pattern})-(\d{{6,}})\.parquet")


@dataclass(frozen=True, slots=True)
class Batch:
    """One stored file. `phase` is for example `rl` or `test`; `update` the number of updates made before it ended."""

    path: Path
    phase: str
    index: int
    update: int
    count: int


class TrajectoryStore:
    """The trajectories under one folder (`trajectories/<phase>-<index>.parquet`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, phase: str, update: int, trajectories: Sequence[Trajectory]) -> Path | None:
        """Write one batch durably and return its file; an empty batch writes none.

        `phase` is a lower-case word. Raises `StoreError`; nothing is then half-written.
        """
        import pyarrow.parquet as pq

        if not _PHASE.fullmatch(phase):
            raise StoreError(f"phase {phase!r} is not a lower-case word")
        index = 1 + max((number for name, number, _ in self._files() if name == phase), default=-1)
        path = self.folder / f"{phase}-{index:06d}.parquet"
        if not trajectories:
            return None
        buffer = io.BytesIO()
        pq.write_table(to_table(trajectories, phase=phase, update=update), buffer, compression="zstd")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed(self.folder, error) from error
        write_atomic(path, buffer.getvalue())
        return path

    def batches(self, phase: str | None = None) -> list[Batch]:
        """The stored files, in order of update and index; only footers are read."""
        import pyarrow.parquet as pq

        batches = []
        for name, index, path in self._files():
            if phase in (None, name):
                with _reading(path):
                    footer = pq.read_metadata(path)
                    version = int(footer.metadata[b"practicum.schema"])
                    update = int(footer.metadata[b"practicum.update"])
                if version != SCHEMA_VERSION:
                    raise StoreError(
                        f"{path} has schema {version}, and this version of practicum reads {SCHEMA_VERSION}",
                        fix="read it with the version that wrote it",
                    )
                batches.append(Batch(path, name, index, update, footer.num_rows))
        return sorted(batches, key=lambda batch: (batch.update, batch.phase, batch.index))

    def load(self, batch: Batch) -> list[Trajectory]:
        """The records of one file. Raises `StoreError`."""
        import pyarrow.parquet as pq

        with _reading(batch.path):
            return from_table(pq.read_table(batch.path))

    def read(self, phase: str | None = None) -> Iterator[Trajectory]:
        """All records, one file in memory at a time."""
        for batch in self.batches(phase):
            yield from self.load(batch)

    def rows(self, columns: Sequence[str], phase: str | None = None) -> Iterator[dict[str, Any]]:
        """The named columns only (see `columns.schema`), for counting without reading tokens.

        Text that UTF-8 cannot hold stays escaped, as `columns` says.
        """
        import pyarrow.parquet as pq

        for batch in self.batches(phase):
            with _reading(batch.path):
                rows = pq.read_table(batch.path, columns=list(columns)).to_pylist()
            yield from rows

    def find(self, trajectory_id: str) -> Trajectory | None:
        """The record named `trajectory_id`, or None."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        from practicum.trajectories.columns import pack

        for batch in self.batches():
            with _reading(batch.path):
                mask = pc.equal(pq.read_table(batch.path, columns=["id"])["id"], pack(trajectory_id))
                if pc.any(mask).as_py():
                    return from_table(pq.read_table(batch.path).filter(mask))[0]
        return None

    def move_after(self, update: int, aside: Path) -> list[Batch]:
        """Move the batches of later updates into folder `aside`, and return them.

        Numbering continues as if they had never been. Raises `StoreError`; safe to repeat.
        """
        moved = [batch for batch in self.batches() if batch.update > update]
        try:
            for batch in moved:
                aside.mkdir(parents=True, exist_ok=True)
                batch.path.rename(aside / batch.path.name)
            if moved:
                sync_folder(self.folder)
        except OSError as error:
            raise failed(aside, error) from error
        return moved

    def _files(self) -> list[tuple[str, int, Path]]:
        if not self.folder.is_dir():
            return []
        found = [(match, path) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        return sorted((match[1], int(match[2]), path) for match, path in found)


class _reading:  # noqa: N801 (a context manager, read as a verb)
    """Turns what can go wrong with a damaged or missing file into a `StoreError` that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        import pyarrow as pa

        if isinstance(error, (OSError, pa.ArrowException, KeyError, TypeError, ValueError)):
            raise StoreError(
                f"{self.path} cannot be read as stored trajectories: {type(error).__name__}: {error}",
                fix="restore the file from a copy, or move it out of the folder to go on without its records",
            ) from error
