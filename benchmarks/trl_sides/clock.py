"""Cpu-seconds of a process and of its boxes, and what the process spent them on.

Owns: `Spent`, `spent`, `Parts`.
Invariant: every cpu-second is counted once: a call that is timed within another is taken off the outer one.
Must not know: who trains.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = ("generation", "forward and backward", "log-probabilities", "text", "batches", "records")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of cpu by the processes asked for (`own`, by pid), by all that stands below them, and of wall clock."""

    own: dict[int, float]
    boxes: float
    wall: float

    def since(self, before: Spent) -> Spent:
        own = {pid: seconds - before.own[pid] for pid, seconds in self.own.items()}
        return Spent(own, self.boxes - before.boxes, self.wall - before.wall)


def spent(pids: Collection[int]) -> Spent:
    """What `pids` have spent so far, and what processes below them have, ended ones included.

    One of `pids` that is the child of another must not end between two looks, or it would be taken for a box.
    """
    below: dict[int, list[int]] = {}
    seconds: dict[int, tuple[float, float]] = {}
    for pid, parent, itself, reaped in _processes():
        below.setdefault(parent, []).append(pid)
        seconds[pid] = (itself, reaped)
    own = {pid: seconds[pid][0] for pid in pids}
    boxes = sum(seconds[pid][1] for pid in pids)
    left = [child for pid in pids for child in below.get(pid, ()) if child not in pids]
    while left:
        pid = left.pop()
        boxes += sum(seconds[pid])
        left += below.get(pid, ())
    return Spent(own, boxes, time.perf_counter())


def _processes() -> Iterator[tuple[int, int, float, float]]:
    """(pid, parent, cpu-seconds of its own, of children that it has reaped) of every process."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        fields = stat.rpartition(")")[2].split()
        user, system, reaped_user, reaped_system = (int(each) / _TICK for each in fields[11:15])
        yield int(folder.name), int(fields[1]), user + system, reaped_user + reaped_system


class Parts:
    """Seconds that a thread spent in named parts of its work, kept in a file so that another process can read them."""

    def __init__(self, path: Path) -> None:
        size = struct.calcsize("d") * len(PARTS)
        if not path.exists():
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._seconds = memoryview(mmap.mmap(file.fileno(), size)).cast("d")
        self._under_way: list[tuple[str, float]] = []  # calls, and what others within each have taken

    def read(self) -> dict[str, float]:
        return dict(zip(PARTS, self._seconds, strict=True))

    def time(self, owner: Any, name: str, part: str, *, unless_in: str = "") -> None:
        """From here on count calls of `owner.name` as `part`, but for those made directly by `unless_in`.

        They must all be made in one thread.
        """
        inner, place = getattr(owner, name), PARTS.index(part)

        @functools.wraps(inner)
        def timed(*args: Any, **more: Any) -> Any:
            if unless_in and self._under_way and self._under_way[-1][0] == unless_in:
                return inner(*args, **more)
            start = time.thread_time()
            self._under_way.append((part, 0.0))
            try:
                return inner(*args, **more)
            finally:
                took = time.thread_time() - start
                self._seconds[place] += took - self._under_way.pop()[1]
                if self._under_way:
                    outer, within = self._under_way[-1]
                    self._under_way[-1] = outer, within + took

        setattr(owner, name, timed)
