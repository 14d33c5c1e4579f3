"""The write-ahead journal of attempts in flight.

Owns: `Journal`, `Flight`, the format of the file.
Invariant: a record is whole or is cut off when the file is opened, with all after it; what is appended survives the
process at once, and the host once `durable` returned; an action is on record before it is carried out. What is lost at
the end of the file costs work and never truth: an attempt goes on from the last turn that is left.
Must not know: policies, boxes, who reports what. One process at a time has a journal open.

A line a record: eight hexadecimal digits of CRC-32, a space, JSON `[unit, kind, data]`. A unit is an attempt's id.

    begun   task, seed, turns it starts with (a fork, what was parked, another start), one that was only sampled
    intent  a turn that was sampled, before its action is carried out
    result  what came of it: observation, snapshots, seconds
    ended   the attempt without a verdict; its turns are those above
    judged  the same with its verdict
    handed  it was reported, and is forgotten
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from practicum.errors import StoreError
from practicum.records.trajectory import Trajectory, Turn
from practicum.trajectories.columns import Row, row_of, trajectory_of, turn_rows, turns_of
from practicum.trajectories.durable import append_line, failed, write_atomic

_RESULT = ("observation", "snapshot_before", "snapshot_after", "timing", "failed")


@dataclass(frozen=True, slots=True)
class Flight:
    """What is on record of an attempt that was not reported.

    `pending` is a turn that was sampled and whose action has no result. `ended` has no verdict, `judged` has one where
    it could be judged; either holds all turns.
    """

    task_digest: str
    seed: int
    turns: tuple[Turn, ...] = ()
    pending: Turn | None = None
    ended: Trajectory | None = None
    judged: Trajectory | None = None


@dataclass(slots=True)
class _Unit:
    """A flight as it is read."""

    begun: Row
    turns: list[Row] = field(default_factory=list)
    pending: Row | None = None
    ended: Row | None = None
    judged: Row | None = None


class Journal:
    """The journal at `path`. Made by `open`."""

    def __init__(self, path: Path, fd: int, lost: int) -> None:
        self.path = path
        self.lost = lost
        """Bytes that were cut off when it was opened."""
        self._fd = fd
        self._written = self._synced = 0
        self._syncing: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open, or make, the journal at `path`, and cut off what a dead writer left torn. Raises `StoreError`."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            data = path.read_bytes()
            whole = sum(len(line) + 1 for line in _sound(data))
            if whole < len(data):
                os.ftruncate(fd, whole)
        except OSError as error:
            raise failed(path, error) from error
        return cls(path, fd, len(data) - whole)

    def close(self) -> None:
        """Give the file back. Idempotent; nobody may be waiting in `durable`."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ------------------------------------------------------------------------------------------

    def begun(self, unit: str, task_digest: str, seed: int, turns: Sequence[Turn], pending: Turn | None) -> None:
        """`unit` begins, with `turns` behind it; whatever was on record of it counts no more."""
        rows = turn_rows([*turns, *([pending] if pending else [])])
        kept, waiting = rows[: len(turns)], rows[len(turns) :]
        begun = {"task": task_digest, "seed": seed, "turns": kept, "pending": waiting[0] if waiting else None}
        self._append(unit, "begun", begun)

    def intent(self, unit: str, turn: Turn, previous: Turn | None) -> None:
        """`turn` was sampled (its observation is not there yet) and is about to be carried out."""
        self._append(unit, "intent", turn_rows([*([previous] if previous else []), turn])[-1])

    def result(self, unit: str, turn: Turn) -> None:
        """The turn whose intent is the last on record of `unit` came to its end."""
        (row,) = turn_rows([turn])
        self._append(unit, "result", {name: row[name] for name in _RESULT})

    def ended(self, trajectory: Trajectory) -> None:
        """The attempt is over, and is to be judged."""
        self._append(trajectory.id, "ended", _outcome(trajectory))

    def judged(self, trajectory: Trajectory) -> None:
        """The attempt is over, and is to be reported."""
        self._append(trajectory.id, "judged", _outcome(trajectory))

    def handed(self, units: Iterable[str]) -> None:
        """`units` were reported."""
        for unit in units:
            self._append(unit, "handed", None)

    def _append(self, unit: str, kind: str, data: Any) -> None:
        line = json.dumps([unit, kind, data], separators=(",", ":"), default=_plain).encode()
        append_line(self.path, b"%08x %s" % (zlib.crc32(line), line))
        self._written += 1

    async def durable(self) -> None:
        """Return when all that has been appended is on the disk; who waits at one time shares one fsync.

        Raises `StoreError`.
        """
        wanted = self._written
        while self._synced < wanted:
            if self._syncing is None:
                self._syncing = asyncio.create_task(self._sync())
            await asyncio.shield(self._syncing)

    async def _sync(self) -> None:
        reached = self._written
        try:
            await asyncio.to_thread(os.fdatasync, self._fd)
        except OSError as error:
            raise failed(self.path, error) from error
        finally:
            self._syncing = None
        self._synced = max(self._synced, reached)

    async def compact(self) -> int:
        """Forget what was reported; returns the bytes that are left. A kill leaves the old file or the new one."""
        while self._syncing is not None:
            await asyncio.shield(self._syncing)
        data = self._read()
        flying = self._units(data).keys()
        kept = [line for line in _sound(data) if json.loads(line[9:])[0] in flying]
        write_atomic(self.path, b"".join(line + b"\n" for line in kept))
        os.close(self._fd)
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._synced = self._written
        return sum(len(line) + 1 for line in kept)

    # --- reading ------------------------------------------------------------------------------------------

    def in_flight(self) -> dict[str, Flight]:
        """The attempts that were begun and not reported, in order of their beginning. Raises `StoreError`."""
        try:
            return {name: _flight(unit) for name, unit in self._units(self._read()).items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._senseless(error) from error

    def _units(self, data: bytes) -> dict[str, _Unit]:
        try:
            return _fold(data)
        except (KeyError, TypeError, ValueError) as error:
            raise self._senseless(error) from error

    def _senseless(self, error: Exception) -> StoreError:
        return StoreError(
            f"the journal {self.path} holds a record that makes no sense: {type(error).__name__}: {error}",
            fix="move the file away; the attempts that were in flight are then made anew",
        )

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise failed(self.path, error) from error


def _sound(data: bytes) -> Iterator[bytes]:
    """The records up to the first that is torn or altered, without line breaks."""
    for line in data.split(b"\n")[:-1]:
        if len(line) < 9 or line[8:9] != b" " or line[:8] != b"%08x" % zlib.crc32(line[9:]):
            return
        yield line


def _fold(data: bytes) -> dict[str, _Unit]:
    units: dict[str, _Unit] = {}
    for line in _sound(data):
        name, kind, row = json.loads(line[9:])
        if kind == "begun":
            units.pop(name, None)
            units[name] = _Unit(row, list(row["turns"]), row["pending"])
        elif kind == "handed":
            units.pop(name, None)
        else:
            _advance(units[name], kind, row)
    return units


def _advance(unit: _Unit, kind: str, row: Row) -> None:
    if kind == "intent":
        unit.pending = row
    elif kind == "result":
        if unit.pending is None:
            raise ValueError("a result without an intent")
        unit.turns.append({**unit.pending, **row})
        unit.pending = None
    elif kind == "ended":
        unit.ended = row
    elif kind == "judged":
        unit.judged = row
    else:
        raise ValueError(f"a record of kind {kind!r}")


def _flight(unit: _Unit) -> Flight:
    turns = turns_of([*unit.turns, *([unit.pending] if unit.pending else [])])
    whole = turns[: len(unit.turns)]
    return Flight(
        task_digest=unit.begun["task"],
        seed=unit.begun["seed"],
        turns=whole,
        pending=turns[-1] if unit.pending else None,
        ended=_trajectory(unit.ended, unit) if unit.ended else None,
        judged=_trajectory(unit.judged, unit) if unit.judged else None,
    )


def _outcome(trajectory: Trajectory) -> Row:
    return {**row_of(trajectory, "", 0), "turns": None}


def _trajectory(row: Row, unit: _Unit) -> Trajectory:
    submission = row["submission"]
    if submission is not None:
        for change in submission["changes"]:
            if change["file"] is not None:
                change["file"]["data"] = base64.b64decode(change["file"]["data"])
    return trajectory_of({**row, "turns": unit.turns})


def _plain(value: object) -> str:
    """What JSON does not know: the content of a file."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be put into a journal")
