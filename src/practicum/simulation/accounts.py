"""What became of every attempt, and where the seconds of every place went.

Owns: `Accounts`.
Invariant: each second of a place is booked once; an attempt that gave no work away has no reward, or it is counted as a
scored fault, by what the simulated boxes and judges themselves know.
Must not know: schedulers, how any of it is shown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from practicum.records.trajectory import Trajectory
from practicum.rollouts.attempt import Rolled
from practicum.scheduling.histogram import Histogram
from practicum.scheduling.identity import Account, Clock
from practicum.simulation.boxes import ANSWER
from practicum.simulation.world import World


class Accounts:
    """Filled while a simulation runs; `stop` it, then `close` it, at the end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._held: dict[str, float] = {}
        self._over, self._unfinished_s = False, 0.0
        self.dispatched: set[str] = set()
        self.refills: set[str] = set()  # that the collector may dispatch
        self.reports: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()  # by kind, of masked attempts
        self.scored_faults = 0
        self.ended = 0
        self.turns = 0
        self.lives = Counter[str]()  # boxes lost, tries to lease, beginnings anew
        self.seconds = Histogram()  # that attempts without a fault held their places
        self.places = Account()
        self.trainer: Clock | None = None

    @contextmanager
    def holding(self, attempt: str) -> Iterator[None]:
        """For the time in which `attempt` rolls out."""
        self._held[attempt] = self._loop.time()
        try:
            yield
        finally:
            began = self._held.pop(attempt, None)
            if began is not None:  # it did not come to an end
                seconds = self._loop.time() - began
                if self._over:
                    self._unfinished_s += seconds
                else:
                    self.places.add("retry", seconds)

    def rolled(self, rolled: Rolled) -> None:
        """Book the seconds of an attempt that was rolled out; those of lives that were lost are `retry`."""
        held, meters = self._loop.time() - self._held.pop(rolled.spec.id), rolled.meters
        self.ended += 1
        self.turns += len(rolled.turns)
        for name in ("boxes_lost", "lease_retries", "restarts"):
            self.lives[name] += int(meters.get(name, 0))
        waited = self._world.policy.waited_by.pop(rolled.spec.id, 0.0)
        if rolled.fault is not None:
            self.places.add("retry", held)
            return
        self.seconds.add(held)
        generated = max(0.0, meters["generate_s"] - waited)
        spans = {
            "lease": meters.get("lease_s", 0.0),
            "generate": generated,
            "wait_engine": meters["generate_s"] - generated,
            "act": meters["act_s"] + meters["snapshot_s"],
            "submit": meters.get("collect_s", 0.0) + meters.get("close_s", 0.0),
        }
        for state, seconds in spans.items():
            self.places.add(state, seconds)
        self.places.add("retry", max(0.0, held - sum(spans.values())))

    def reported(self, trajectory: Trajectory) -> None:
        """The collector's report of one attempt."""
        self.reports[trajectory.id] += 1
        if trajectory.fault is not None:
            self.faults[trajectory.fault.kind] += 1
        self.places.add("wait_judge", trajectory.cost.get("wait_backlog_s", 0.0))
        if trajectory.reward is not None and not self._earned(trajectory):
            self.scored_faults += 1

    def stop(self) -> None:
        """What ends from now on is under way at the end of the simulation, and was not thrown away."""
        self._over = True

    def close(self) -> None:
        """Book what places were not used for as `idle`; the time of what was under way at the end is left out."""
        places = self._world.scenario.concurrent * (self._loop.time() - self._began_s) - self._unfinished_s
        self.places.add("idle", max(0.0, places - self.places.total_s))

    @property
    def reported_once(self) -> bool:
        """Every attempt that was dispatched left once, and no other did, but refills that were still in line."""
        reported = self.reports.keys()
        return self.dispatched <= reported <= self.dispatched | self.refills and set(self.reports.values()) <= {1}

    def _earned(self, trajectory: Trajectory) -> bool:
        """Whether the reward is what the judge gave for what a living box gave away."""
        changes = trajectory.submission.changes if trajectory.submission is not None else ()
        files = [change.file for change in changes if change.path == ANSWER and change.file is not None]
        box = files[0].data.decode().split()[1] if files else ""
        return box in self._world.provider.faults.delivered and self._world.verifier.given.get(box) == trajectory.reward
