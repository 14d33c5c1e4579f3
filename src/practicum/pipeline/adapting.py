"""How many attempts act at once, by what the host bears.

Owns: `Adapting`.
Invariant: never more than the configuration allows; each change is told with its reason.
Must not know: who gives places, what attempts are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from practicum.records.trajectory import Trajectory
from practicum.scheduling.concurrency import Bounds, Concurrency, Decision, Signals
from practicum.scheduling.pressure import read_pressure

EVERY_S = 2.0
_P95 = 0.95


class Adapting:
    """Measures, decides, and passes a changed cap on. `usage` gives places held and submissions before the judge."""

    def __init__(
        self,
        highest: int,
        verifiers: int,
        usage: Callable[[], tuple[int, int]],
        on_change: Callable[[Decision], None],
    ) -> None:
        self._machine = Concurrency(Bounds(lowest=min(os.cpu_count() or 1, highest), highest=highest), cap=highest)
        self._verifiers, self._usage, self._on_change = verifiers, usage, on_change
        self._leases: list[float] = []
        self._failed = self._ended = 0

    def saw(self, trajectory: Trajectory) -> None:
        """An attempt ended."""
        self._ended += 1
        self._leases.append(trajectory.cost.get("lease_s", 0.0))
        self._failed += trajectory.fault is not None and trajectory.fault.kind == "CreateFailed"

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            decision = self._machine.decide(self._signals())
            if decision.change != "kept":
                self._on_change(decision)

    def _signals(self) -> Signals:
        held, waiting = self._usage()
        pressure = read_pressure()
        leases = sorted(self._leases)
        signals = Signals(
            in_use=held,
            ended=self._ended,
            create_p95_s=leases[int(_P95 * (len(leases) - 1))] if leases else None,
            create_failed=self._failed / len(leases) if leases else None,
            cpu_pressure=pressure.cpu,
            memory_pressure=pressure.memory,
            io_pressure=pressure.io,
            load_per_core=pressure.load_per_core,
            pids_free=pressure.pids_free,
            verify_backlog=max(0, waiting - self._verifiers) / self._verifiers,
        )
        self._leases.clear()
        self._failed = self._ended = 0
        return signals
