"""The line of candidates between strategies, which propose them, and workers, who try them.

Owns: `Line`, `Seat`.
Invariant: what became of candidates is written down strategy by strategy in turn, each in the order in which it
proposed: so what is made depends on the candidates and not on how fast anything was. A turn ends with a task, or after
a few candidates without. While the one whose turn it is lets wait, others are tried ahead, but not far.
Must not know: how candidates are found or tried.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from practicum.curation.synthesis.journal import Entry, Journal
from practicum.curation.synthesis.strategy import Candidate, Refusal
from practicum.records.task import Task

_TURN = 4  # candidates without a task
_AHEAD = 2  # of a strategy whose turn it is not
_READY = 2  # proposed and not taken

Outcome = Task | Refusal
Write = Callable[[Candidate, Outcome], Entry]


@dataclass(slots=True)
class Seat:
    """A candidate that somebody tries, and what became of it once that is known."""

    candidate: Candidate
    outcome: Outcome | None = None


@dataclass(slots=True)
class _Lane:
    """One strategy: what it proposed, what is being tried, and how many turns it had."""

    ready: deque[Candidate] = field(default_factory=deque)
    seats: deque[Seat] = field(default_factory=deque)
    proposing: bool = True
    turns: int = 0
    since: int = 0  # its last turn

    def counted(self, kept: bool) -> None:
        self.since += 1
        if kept or self.since == _TURN:
            self.turns, self.since = self.turns + 1, 0

    @property
    def over(self) -> bool:
        return not (self.proposing or self.ready or self.seats)

    @property
    def served(self) -> bool:
        """Whether a task of it only waits for its turn."""
        return any(isinstance(seat.outcome, Task) for seat in self.seats)


class Line:
    """Where strategies put candidates and workers get them. `write` is called for each outcome, in order."""

    def __init__(self, journal: Journal, count: int, workers: int, strategies: Sequence[str], write: Write) -> None:
        self.journal = journal
        self._count = count
        self._workers = workers
        self._write = write
        self._lanes = {name: _Lane() for name in strategies}
        self._changed = asyncio.Event()
        for entry in journal.entries:
            if entry.strategy in self._lanes:
                self._lanes[entry.strategy].counted(bool(entry.task))

    @property
    def enough(self) -> bool:
        """Whether there are as many tasks as were asked for."""
        return len(self.journal.kept) >= self._count

    async def put(self, strategy: str, candidate: Candidate | None) -> None:
        """Add a candidate, once there is room; None after the last."""
        lane = self._lanes[strategy]
        if candidate is None:
            lane.proposing = False
            self._settle()
        else:
            while len(lane.ready) >= _READY:
                await self._changed.wait()
            lane.ready.append(candidate)
        self._wake()

    async def take(self) -> Seat | None:
        """A candidate to try; None when there are enough tasks, or nothing is left."""
        while not self.enough and any(lane.proposing or lane.ready for lane in self._lanes.values()):
            lane = self._next()
            if lane is not None:
                seat = Seat(lane.ready.popleft())
                lane.seats.append(seat)
                self._wake()
                return seat
            await self._changed.wait()
        return None

    def tell(self, seat: Seat, outcome: Outcome) -> None:
        """What became of a candidate that was taken. Raises what writing raises."""
        seat.outcome = outcome
        self._settle()
        self._wake()

    def flush(self) -> None:
        """Write down what is known, whoever's turn it is: for a run that is stopped."""
        for name, lane in self._lanes.items():
            for seat in [seat for seat in lane.seats if seat.outcome is not None]:
                if not self.enough:
                    self._commit(name, seat)

    def _next(self) -> _Lane | None:
        """The lane to take from: of those that may be tried further, the least tried, in the order of turns."""
        turn = self._turn()
        fit = [
            lane
            for name, lane in self._lanes.items()
            if lane.ready
            and (len(lane.seats) < self._workers if name == turn else len(lane.seats) < _AHEAD and not lane.served)
        ]
        return min(fit, key=lambda lane: (len(lane.seats), lane.turns), default=None)

    def _turn(self) -> str | None:
        """Who had the fewest turns, of those that are not over; the first of equals."""
        names = [name for name, lane in self._lanes.items() if not lane.over]
        return min(names, key=lambda name: self._lanes[name].turns, default=None)

    def _settle(self) -> None:
        while not self.enough and (name := self._turn()) is not None:
            seats = self._lanes[name].seats
            if not seats or seats[0].outcome is None:
                return
            self._commit(name, seats[0])

    def _commit(self, name: str, seat: Seat) -> None:
        assert seat.outcome is not None
        self._lanes[name].seats.remove(seat)
        self._lanes[name].counted(isinstance(seat.outcome, Task))
        self.journal.add(self._write(seat.candidate, seat.outcome))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
