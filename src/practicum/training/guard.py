"""Whether a step may be taken, and whether it may stay: a watch on losses, gradients and weights that are not numbers,
or out of all proportion.

Owns: `StepGuard`, its bounds `Bounds`.
Invariant: a step that is not taken leaves no trace in what later ones are measured by; the same numbers in the same
order give the same answers, in a resumed run too.
Must not know: models, optimisers, what a loss means.

Spikes are told by median and median absolute deviation (MAD) of the last steps taken, which a few wild values do not
move. A norm is a positive number that varies by factors, so it is compared by its logarithm; a loss may be negative, so
it is compared as it is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SIGMA = 1.4826
"""A normal distribution's standard deviation in MADs."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a step is out of proportion: more than `deviations` robust standard deviations above the median.

    A norm up to `harmless` or `factor` times the median never is, nor is a loss up to `rise` above the median. Nothing
    is before `least` steps were taken; `window` of them are remembered. A step after which what it was made on is worse
    by more than `ruin` does not stay. After `patience` steps in a row that were not taken the next one ends the run.
    """

    deviations: float = 6.0
    factor: float = 10.0
    harmless: float = 1.0
    rise: float = 1.0
    least: int = 8
    window: int = 64
    ruin: float = 1.0
    patience: int = 3


@dataclass(frozen=True, slots=True)
class StepGuard:
    """What is remembered: `losses` and `norms` of the last steps taken with the loss named `of`, and how many steps in
    a row were not taken since. A loss without a name is no measure, and only its gradient is watched."""

    bounds: Bounds = field(default_factory=Bounds)
    of: str = ""
    losses: tuple[float, ...] = ()
    norms: tuple[float, ...] = ()
    refused: int = 0

    def under(self, name: str) -> StepGuard:
        """The guard for steps with the loss `name`; another loss is another scale, so its memory begins anew."""
        return self if name == self.of else StepGuard(self.bounds, name, refused=self.refused)

    def objection(self, loss: float, norm: float) -> str | None:
        """Why a step with this loss and gradient norm must not be taken; None where it may."""
        if not math.isfinite(loss):
            return "the loss is not finite"
        if not math.isfinite(norm):
            return "the gradient is not finite"
        if len(self.norms) < self.bounds.least:
            return None
        most = _bound([_log(each) for each in self.norms], self.bounds.deviations, math.log(self.bounds.factor))
        if norm > self.bounds.harmless and _log(norm) > most:
            return f"the gradient's norm {norm:.3g} is out of proportion: it was {statistics.median(self.norms):.3g}"
        if self.of and loss > _bound(self.losses, self.bounds.deviations, self.bounds.rise):
            return f"the loss {loss:.3g} is out of proportion: it was {statistics.median(self.losses):.3g}"
        return None

    def ruin(self, before: float, after: float, weights: float) -> str | None:
        """Why the step that was just made must be undone; None where it may stay.

        `before` and `after` are what a part of its own samples came to, smaller being better; `weights` is their norm.
        """
        if not math.isfinite(weights):
            return "the step left weights that are not finite"
        if not math.isfinite(after):
            return "after the step its own samples have no finite loss"
        if after > before + self.bounds.ruin:
            return f"the step made its own samples worse, from {before:.3g} to {after:.3g}"
        return None

    def taken(self, loss: float, norm: float) -> StepGuard:
        """After a step that was taken."""
        keep = self.bounds.window
        return StepGuard(self.bounds, self.of, (*self.losses, loss)[-keep:], (*self.norms, norm)[-keep:])

    def not_taken(self) -> StepGuard:
        """After a step that was not."""
        return StepGuard(self.bounds, self.of, self.losses, self.norms, self.refused + 1)

    @property
    def spent(self) -> bool:
        """Whether too many steps in a row were not taken to hope for a better one."""
        return self.refused > self.bounds.patience

    def to_dict(self) -> dict[str, Any]:
        """What is remembered, as JSON; floats come back bit for bit."""
        return {"of": self.of, "losses": list(self.losses), "norms": list(self.norms), "refused": self.refused}

    def remembering(self, data: Mapping[str, Any]) -> StepGuard:
        """A guard of these bounds with the memory in `data`. Raises `KeyError`, `TypeError` or `ValueError`."""
        losses, norms = (tuple(float(each) for each in data[name]) for name in ("losses", "norms"))
        if len(losses) != len(norms) or not all(map(math.isfinite, (*losses, *norms))):
            raise ValueError("the guard's memory is damaged")
        return StepGuard(self.bounds, str(data["of"]), losses, norms, int(data["refused"]))


def _log(norm: float) -> float:
    """A gradient of exactly 0 comes where no sample has credit; it is small, not infinitely so."""
    return math.log(max(norm, 1e-12))


def _bound(values: Sequence[float], deviations: float, floor: float) -> float:
    """The most that is not out of proportion to `values`: the median and `deviations` MADs, at least `floor`."""
    median = statistics.median(values)
    mad = statistics.median(abs(value - median) for value in values)
    return median + max(floor, deviations * _SIGMA * mad)
