"""Error rates from a person's rulings on a sample of verdicts.

Owns: `Bounded`, `Rulings`, `posterior`.
Invariant: the sample may be chosen by verdict, reward or reliability: given the verdicts, what was chosen says
nothing more about the rates, so the likelihood below holds without weights. Pure.
Must not know: who ruled, how the sample was drawn.

A verdict that a person looked at cannot be counted as a trial of ρ0 or ρ1: among accepted attempts every wrong one
is a false positive, whatever the rate. So three unknowns are estimated together: ρ0, ρ1 and π, the share of right
attempts. An unruled verdict contributes P(accepted) = π(1 − ρ1) + (1 − π)ρ0, or its complement; a ruled one the
probability of truth and verdict together, such as (1 − π)ρ0; a submission of known truth that of its verdict. The
prior is uniform in all three, and the posterior is summed on a grid that is finer towards 0, where rates lie.
(W. J. Rogan and B. Gladen, American Journal of Epidemiology 107 (1978) 71–76, for the mixture.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from practicum.verification.calibration.bounds import SIDE, Rate

_POINTS = 72
_Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A quantity, with bounds each of which errs with a chance of 2.5 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rulings:
    """Counts of verdicts that a person found right or wrong, by what the verdict was."""

    passed_right: int = 0
    passed_wrong: int = 0
    failed_right: int = 0
    failed_wrong: int = 0

    @property
    def total(self) -> int:
        return self.passed_right + self.passed_wrong + self.failed_right + self.failed_wrong


@dataclass(frozen=True, slots=True)
class Posterior:
    """Means and bounds. `youden.low` errs with 5 %, as it is used from one side only."""

    false_positive: Bounded
    false_negative: Bounded
    youden: Bounded


def posterior(wrong: Rate, right: Rate, rulings: Rulings, *, passed: int, failed: int) -> Posterior:
    """ρ0, ρ1 and J given submissions of known truth (`wrong`, `right`), rulings, and all verdicts on attempts.

    `passed` and `failed` count those verdicts, the ruled ones among them; where they are fewer than the rulings, the
    rulings are all there is.
    """
    ruled_passed = rulings.passed_right + rulings.passed_wrong
    ruled_failed = rulings.failed_right + rulings.failed_wrong
    root = (np.arange(_POINTS) + 0.5) / _POINTS
    rates, share = root**2, root
    rho0, rho1, pi = rates[:, None, None], rates[None, :, None], share[None, None, :]
    accepted = pi * (1 - rho1) + (1 - pi) * rho0
    log = (
        np.log(root)[:, None, None]  # the grid's density: d(u²) = 2u du
        + np.log(root)[None, :, None]
        + _binomial(rho0, wrong)
        + _binomial(rho1, right)
        + rulings.passed_right * np.log(pi * (1 - rho1))
        + rulings.passed_wrong * np.log((1 - pi) * rho0)
        + rulings.failed_right * np.log((1 - pi) * (1 - rho0))
        + rulings.failed_wrong * np.log(pi * rho1)
        + max(0, passed - ruled_passed) * np.log(accepted)
        + max(0, failed - ruled_failed) * np.log1p(-accepted)
    )
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    both = weight.sum(axis=2)
    youden = 1.0 - rates[:, None] - rates[None, :]
    return Posterior(
        _summary(rates, both.sum(axis=1), SIDE),
        _summary(rates, both.sum(axis=0), SIDE),
        _summary(youden.ravel(), both.ravel(), 2 * SIDE),
    )


def _binomial(rate: _Grid, seen: Rate) -> _Grid:
    log: _Grid = seen.errors * np.log(rate) + (seen.trials - seen.errors) * np.log1p(-rate)
    return log


def _summary(values: _Grid, weight: _Grid, side: float) -> Bounded:
    order = np.argsort(values)
    values, below = values[order], np.cumsum(weight[order])
    last = len(values) - 1
    low, high = (values[min(last, int(np.searchsorted(below, p)))] for p in (side, 1.0 - side))
    return Bounded(float((values * weight[order]).sum()), float(low), float(high))
