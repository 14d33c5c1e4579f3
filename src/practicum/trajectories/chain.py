"""The audit trail: decisions as hash-chained JSON lines.

Owns: the format of `audit.jsonl` and of the other chained files, `Chain`, the lock by which processes write in turn.
Invariant: each line carries the SHA-256 of the line before it, so that no line can be altered, removed or put in
between without breaking the chain; a head kept elsewhere shows whether the end is missing.
Must not know: which decisions are made.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from practicum.errors import StoreError
from practicum.trajectories.durable import append_line, failed

ORIGIN = "0" * 64
LOCK_WAIT_S = 30.0  # writers hold the lock for one append
_BLOCK = 64 * 1024


def append(path: Path, event: str, data: Mapping[str, Any]) -> None:
    """Append one decision, on the disk when this returns, at the same cost however long the trail.

    Raises `StoreError`.
    """
    with _locked(path):
        count, head = _end(path)
        _write(path, count, head, [(event, data)])


class Chain:
    """A chained file as one process sees it: each entry is read, and checked to follow, once.

    `count` entries have been read, the last of which has the digest `head`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count, self.head = 0, ORIGIN
        self._size = 0

    def news(self) -> list[dict[str, Any]]:
        """The entries that were added since the last call, by whomever. Raises `StoreError` where the chain breaks."""
        found: list[dict[str, Any]] = []
        for line in _lines(self.path, self._size, follows=self.count > 0):
            found.append(_entry(self.path, line, self.count, self.head))
            self.count, self.head = self.count + 1, _digest(line)
            self._size += len(line) + 1
        return found

    def salvage(self, sound: Callable[[Mapping[str, Any]], bool]) -> tuple[list[dict[str, Any]], int]:
        """The news as long as each follows and is `sound`, and how many lines from there on were cut off.

        Only inside `writing`, and of files that can be made again. Raises `StoreError` where it cannot be done.
        """
        lines = _lines(self.path, self._size, follows=self.count > 0)
        found: list[dict[str, Any]] = []
        head = self.head
        for line in lines:
            try:
                entry = _entry(self.path, line, self.count + len(found), head)
            except StoreError:
                found = found[:-1]  # it may be the line before that was altered
                break
            if not sound(entry):
                break
            found.append(entry)
            head = _digest(line)
        lost = len(lines) - len(found)
        for line in lines[: len(found)]:
            self.count, self.head = self.count + 1, _digest(line)
            self._size += len(line) + 1
        if lost:
            try:
                os.truncate(self.path, self._size)
            except OSError as error:
                raise failed(self.path, error) from error
        return found, lost

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else appends while the block lasts. Raises `StoreError` where another does so for too long."""
        with _locked(self.path):
            yield

    def append(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Append all of `events` or none, on the disk when this returns.

        Only inside `writing`, and after `news` has returned all that was there; what is appended is news in turn.
        """
        _write(self.path, self.count, self.head, events)


def head(path: Path) -> str:
    """SHA-256 of the last line, or `ORIGIN`."""
    lines = _lines(path)
    return _digest(lines[-1]) if lines else ORIGIN


def verify(path: Path, *, reaches: str | None = None) -> int:
    """Number of entries, if the chain holds and contains the line of digest `reaches`; else `StoreError`."""
    previous, seen = ORIGIN, {ORIGIN}
    lines = _lines(path)
    for number, line in enumerate(lines):
        _entry(path, line, number, previous)
        previous = _digest(line)
        seen.add(previous)
    if reaches is not None and reaches not in seen:
        raise StoreError(f"the audit trail {path} is cut short or rewritten: it does not reach entry {reaches[:12]}")
    return len(lines)


def entries(path: Path) -> list[dict[str, Any]]:
    """All whole entries as they stand; whether the chain holds is for `verify` to say. Raises `StoreError`."""
    try:
        return [json.loads(line) for line in _lines(path)]
    except ValueError as error:
        raise StoreError(f"the audit trail {path} holds a line that is not JSON: {error}") from error


def _entry(path: Path, line: bytes, seq: int, previous: str) -> dict[str, Any]:
    """The entry in `line`, which must be number `seq` and follow the line of digest `previous`."""
    try:
        entry = json.loads(line)
        if entry["previous"] == previous and entry["seq"] == seq:
            return dict(entry)
    except (ValueError, KeyError, TypeError):
        pass  # told below, as any other break
    raise StoreError(f"the audit trail {path} is broken at line {seq + 1}: it, or the line before, was altered")


def _write(path: Path, count: int, head: str, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    lines: list[bytes] = []
    for event, data in events:
        entry = {"seq": count + len(lines), "time": now, "event": event, "data": dict(data), "previous": head}
        lines.append(json.dumps(entry).encode())
        head = _digest(lines[-1])
    if lines:
        append_line(path, b"\n".join(lines), sync=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock on `path`, which is made where there is none, and cut off a line that a dead writer left torn."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise failed(path, error) from error
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        while not _taken(fd):
            if time.monotonic() > deadline:
                raise StoreError(f"another process has been writing to {path} for {LOCK_WAIT_S:.0f} s")
            time.sleep(0.005)
        size = os.fstat(fd).st_size
        whole = size - len(_last_line(fd, size)[1])
        if whole < size:
            os.ftruncate(fd, whole)
        yield
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(path: Path) -> tuple[int, str]:
    """How many entries there are, and the digest of the last, from the last line alone."""
    with open(path, "rb") as file:
        line, _ = _last_line(file.fileno(), path.stat().st_size)
    if line is None:
        return 0, ORIGIN
    try:
        return int(json.loads(line)["seq"]) + 1, _digest(line)
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"the audit trail {path} is broken: its last line is no entry") from None


def _last_line(fd: int, size: int) -> tuple[bytes | None, bytes]:
    """The last whole line, None where there is none, and what follows it without a line break."""
    tail = b""
    while True:
        start = max(0, size - len(tail) - _BLOCK)
        tail = os.pread(fd, size - len(tail) - start, start) + tail
        if start == 0 or tail.count(b"\n") >= 2:
            break
    *whole, torn = tail.split(b"\n")
    return (whole[-1] if whole else None), torn


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _lines(path: Path, start: int = 0, *, follows: bool = False) -> list[bytes]:
    """Whole lines from the byte `start` on; `follows` says that something must be there before it."""
    try:
        with open(path, "rb") as file:
            if start > os.fstat(file.fileno()).st_size:
                raise StoreError(f"the audit trail {path} was cut short while it was in use")
            file.seek(start)
            return file.read().split(b"\n")[:-1]  # what follows the last line break is empty or torn
    except FileNotFoundError:
        if follows:
            raise StoreError(f"the audit trail {path} was removed while it was in use") from None
        return []
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
