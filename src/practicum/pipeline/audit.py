"""The audit trail: decisions as hash-chained JSON lines.

Owns: the format of `audit.jsonl`.
Invariant: each line carries the SHA-256 of the line before it, so that no line can be altered, removed or put in
between without breaking the chain; a head kept elsewhere shows whether the end is missing.
Must not know: which decisions are made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from practicum.errors import StoreError
from practicum.trajectories.durable import append_line

ORIGIN = "0" * 64


def append(path: Path, event: str, data: Mapping[str, Any]) -> None:
    """Append one decision, on the disk when this returns. One writer at a time. Raises `StoreError`."""
    lines = _lines(path)
    entry = {
        "seq": len(lines),
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": event,
        "data": dict(data),
        "previous": _digest(lines[-1]) if lines else ORIGIN,
    }
    append_line(path, json.dumps(entry).encode(), sync=True)


def head(path: Path) -> str:
    """SHA-256 of the last line, or `ORIGIN`."""
    lines = _lines(path)
    return _digest(lines[-1]) if lines else ORIGIN


def verify(path: Path, *, reaches: str | None = None) -> int:
    """Number of entries, if the chain holds and contains the line of digest `reaches`; else `StoreError`."""
    previous, seen = ORIGIN, {ORIGIN}
    lines = _lines(path)
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            intact = entry["previous"] == previous and entry["seq"] == number - 1
        except (ValueError, KeyError, TypeError):
            intact = False
        if not intact:
            raise StoreError(f"the audit trail {path} is broken at line {number}: it, or the line before, was altered")
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


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")[:-1]  # what follows the last line break is empty or torn
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
