"""How hard the host is pressed, by the kernel's own account.

Owns: `Pressure`, `read_pressure`.
Invariant: a share is in [0, 1]; what this host does not tell is None, never 0.
Must not know: who acts on it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Pressure:
    """Shares of the last ten seconds in which some task stood still for want of it.

    `source` "psi" is pressure stall information (Linux 4.20 on). Where it is missing, `cpu` is estimated from the
    load average of the last minute, as the share of the runnable tasks for which there was no core.
    `pids_free` is the share of process ids that are not taken; `load_per_core` is the number of tasks, on average over
    the last minute, that ran, could have run or waited for a disk, for each core.
    """

    cpu: float | None
    memory: float | None
    io: float | None
    pids_free: float | None
    load_per_core: float | None
    source: Literal["psi", "loadavg", "none"]


def read_pressure(proc: Path = Path("/proc"), *, cores: int | None = None) -> Pressure:
    """The host's pressure now. A few reads of small files in memory: some 50 µs.

    `proc` may be another folder with the same files; `cores` is by default what this process may use.
    """
    stalls = {name: _stalled(proc / "pressure" / name) for name in ("cpu", "memory", "io")}
    load = _read(proc / "loadavg").split()
    source: Literal["psi", "loadavg", "none"] = "psi" if any(stall is not None for stall in stalls.values()) else "none"
    cpu, per_core = stalls["cpu"], None
    if load:
        per_core = float(load[0]) / (cores if cores is not None else len(os.sched_getaffinity(0)))
        if source == "none":
            cpu, source = max(0.0, 1 - 1 / per_core) if per_core > 0 else 0.0, "loadavg"
    most = _read(proc / "sys" / "kernel" / "pid_max")
    pids_free = None
    if most.strip() and len(load) > 3:
        pids_free = min(1.0, max(0.0, 1 - int(load[3].split("/")[1]) / int(most)))
    return Pressure(cpu, stalls["memory"], stalls["io"], pids_free, per_core, source)


def _stalled(path: Path) -> float | None:
    """`avg10` of the line `some avg10=1.23 avg60=… avg300=… total=…` as a share."""
    for line in _read(path).splitlines():
        kind, *fields = line.split()
        if kind == "some":
            for name, _, value in (field.partition("=") for field in fields):
                if name == "avg10":
                    return min(1.0, max(0.0, float(value) / 100))
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:  # missing, or compiled in but switched off (EOPNOTSUPP)
        return ""
