"""How busy the processors are, and by whom.

Owns: `Effort`. Invariant: seconds of this process and of all its children that have ended, boxes included, apart from
what the machine did as a whole. Must not know: what the work is.

Source: proc(5), `/proc/stat`: the line `cpu` counts user, nice, system, idle, iowait, irq, softirq, steal … in ticks.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

_IDLE = (3, 4)  # idle and iowait
_STAT = Path("/proc/stat")


class Effort:
    """From its making on. `stop` once the boxes are gone: only then are their seconds known."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._own, self._machine = _own_s(), _machine()
        self._busy: float | None = None
        self._wall = 0.0

    def pause(self) -> None:
        """The work is over: what follows is closing."""
        busy, total = (now - then for now, then in zip(_machine(), self._machine, strict=True))
        self._busy = busy / total if total else None
        self._wall = time.monotonic() - self._start

    def document(self) -> dict[str, Any]:
        """Seconds of wall clock and of processors, and the shares of the processors that were busy until `pause`."""
        cores = os.cpu_count() or 1
        cpu_s = _own_s() - self._own
        wall = self._wall or time.monotonic() - self._start
        return {
            "wall_s": round(wall, 2),
            "cpu_s": round(cpu_s, 2),
            "cores": cores,
            "own_share": round(min(1.0, cpu_s / (wall * cores)), 3) if wall else None,
            "machine_share": round(self._busy, 3) if self._busy is not None else None,
        }


def _own_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _machine() -> tuple[int, int]:
    """Ticks of all processors that were busy, and all ticks."""
    ticks = [int(part) for part in _STAT.read_text("ascii").split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - sum(ticks[at] for at in _IDLE), sum(ticks)
