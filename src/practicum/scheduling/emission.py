"""Exactly once: each unit that was dispatched leaves once, as ended or as cancelled.

Owns: `Emissions`, `Emission`.
Invariant: a unit has one terminal state, which never changes; sequence numbers of those that left are 0, 1, 2, …
without a gap.
Must not know: what a unit is, files, clocks. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Terminal = Literal["ended", "cancelled"]


class ReportedTwice(RuntimeError):
    """A unit was dispatched, or left, a second time: a bug in whoever calls, never a fault of a machine."""


@dataclass(frozen=True, slots=True)
class Emission:
    """How a unit left, and as which of all. To be written durably by the caller, before it is acted upon."""

    unit: str
    state: Terminal
    sequence: int
    reason: str = ""


class Emissions:
    """The ledger of units. A restart begins with the latest `Emission`s that were written before it, without a gap.

    The last `keep` units that left are remembered. One that left before them is unknown: to report it again is still
    an error, but that it is dispatched again would not be noticed.
    """

    __slots__ = ("_keep", "_left", "_open", "left")

    def __init__(self, before: Iterable[Emission] = (), *, keep: int = 200_000) -> None:
        self._open: dict[str, None] = {}
        self._left: OrderedDict[str, Emission] = OrderedDict()
        self._keep = keep
        self.left = 0  # how many have left, which is the next sequence number
        for emission in sorted(before, key=lambda emission: emission.sequence):
            if (self._left and emission.sequence != self.left) or emission.unit in self._left:
                raise ReportedTwice(
                    f"{emission.unit} has the number {emission.sequence}, and number {self.left} comes next"
                )
            self._remember(emission)

    def dispatch(self, unit: str) -> None:
        """`unit` is on its way. Raises `ReportedTwice` where it is, or was, already."""
        if unit in self._open or unit in self._left:
            raise ReportedTwice(f"{unit} was dispatched twice")
        self._open[unit] = None

    def end(self, unit: str) -> Emission:
        """`unit` came to its end. Raises `ReportedTwice` where it had left, `KeyError` where it never was."""
        return self._leave(unit, "ended", "")

    def cancel(self, unit: str, reason: str) -> Emission:
        """`unit` will come to no end. Raises as `end` does."""
        return self._leave(unit, "cancelled", reason)

    def cancel_rest(self, reason: str) -> tuple[Emission, ...]:
        """Cancel all that are on their way, in order of dispatch."""
        return tuple(self.cancel(unit, reason) for unit in tuple(self._open))

    @property
    def open(self) -> tuple[str, ...]:
        """The units on their way, in order of dispatch."""
        return tuple(self._open)

    def of(self, unit: str) -> Emission | None:
        """How `unit` left; None while it is on its way. Raises `KeyError` where it is not known."""
        if unit in self._open:
            return None
        return self._left[unit]

    def _leave(self, unit: str, state: Terminal, reason: str) -> Emission:
        if unit in self._left:
            before = self._left[unit]
            raise ReportedTwice(f"{unit} was reported twice: {before.state} as number {before.sequence}, now {state}")
        del self._open[unit]
        emission = Emission(unit, state, self.left, reason)
        self._remember(emission)
        return emission

    def _remember(self, emission: Emission) -> None:
        self._left[emission.unit] = emission
        self.left = emission.sequence + 1
        if len(self._left) > self._keep:
            self._left.popitem(last=False)
