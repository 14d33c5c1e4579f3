"""Attempts in flight on record, and back.

Owns: `Log` (what one attempt writes), `UNWRITTEN` (nothing), `recalled` (what there is left to do of one).
Invariant: an action is on the disk before it is carried out; what is recalled never does again what was done.
Must not know: boxes, policies, the format of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from practicum.records.trajectory import Trajectory, Turn
from practicum.rollouts.spec import AttemptSpec, Rolled
from practicum.rollouts.start import Start
from practicum.trajectories.journal import Flight, Journal


@dataclass(frozen=True, slots=True)
class Log:
    """Writes what happens to the attempt `unit` into `journal`; without one it writes nothing."""

    journal: Journal | None
    unit: str

    def begun(self, spec: AttemptSpec, turns: Sequence[Turn] = (), pending: Turn | None = None) -> None:
        """The attempt begins, with what stands already; what was on record of it counts no more."""
        if self.journal is not None:
            self.journal.begun(self.unit, spec.task.digest, spec.seed, turns, pending)

    async def intent(self, turn: Turn, turns: Sequence[Turn]) -> None:
        """`turn` was sampled after `turns`, and its action is about to be carried out."""
        if self.journal is not None:
            self.journal.intent(self.unit, turn, turns[-1] if turns else None)
            await self.journal.durable()

    def result(self, turn: Turn) -> None:
        """What came of the turn. Not waited for: without it the action is carried out again where it was before."""
        if self.journal is not None:
            self.journal.result(self.unit, turn)

    def ended(self, rolled: Rolled) -> None:
        """The attempt is over, and is to be judged."""
        if self.journal is not None:
            self.journal.ended(rolled.trajectory)


UNWRITTEN = Log(None, "")


def recalled(flight: Flight, spec: AttemptSpec) -> AttemptSpec | Rolled | Trajectory:
    """What is left to do of `spec`, given what is on record of it: roll it out, judge it, or only report it.

    A spec to roll out goes on from its last turn; whether it can is found out there. What is over counts only where it
    was this very attempt (its task, its seed); else it is rolled out, where that is told and counted.
    """
    over = flight.judged or flight.ended
    if over is None or (over.task_digest, over.seed) != (spec.task.digest, spec.seed):
        start = Start(flight.task_digest, flight.turns, flight.pending, cost={"resumes": 1.0}, seed=flight.seed)
        return replace(spec, start=start)
    if flight.judged is not None:
        return flight.judged
    return Rolled(spec, over.turns, over.stop_reason, over.fault, over.submission, over.cost)
