"""Rates of error with bounds that hold.

Owns: `Rate`, `clopper_pearson`, `beta_quantile`.
Invariant: bounds are exact for any number of trials, none included, and never exclude what was observed. Pure.
Must not know: what was tried.

Sources: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404–413, for the interval; W. J. Lentz, Applied Optics
15 (1976) 668–671, for evaluating the continued fraction of the incomplete beta function (NIST DLMF 8.17.22).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

SIDE = 0.025
"""Chance that one bound errs; two bounds together then hold with 95 %."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Rate:
    """`errors` in `trials`; trials may be none."""

    errors: int = 0
    trials: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.errors <= self.trials:
            raise ValueError(f"{self.errors} errors in {self.trials} trials")

    @property
    def value(self) -> float:
        """The observed share; 0 where nothing was tried (the bounds then say that nothing is known)."""
        return self.errors / self.trials if self.trials else 0.0

    @property
    def low(self) -> float:
        return clopper_pearson(self.errors, self.trials)[0]

    @property
    def high(self) -> float:
        return clopper_pearson(self.errors, self.trials)[1]

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.errors + other.errors, self.trials + other.trials)


def clopper_pearson(errors: int, trials: int, side: float = SIDE) -> tuple[float, float]:
    """Lower and upper bound of a rate, each of which errs with a chance of at most `side`."""
    if not 0 <= errors <= trials:
        raise ValueError(f"{errors} errors in {trials} trials")
    low = beta_quantile(side, errors, trials - errors + 1) if errors else 0.0
    high = beta_quantile(1.0 - side, errors + 1, trials - errors) if errors < trials else 1.0
    return low, high


@lru_cache(maxsize=4096)
def beta_quantile(p: float, a: float, b: float) -> float:
    """The x in [0, 1] below which a Beta(a, b) variable falls with chance `p`; a, b > 0. By bisection."""
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        if beta_below(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_below(x: float, a: float, b: float) -> float:
    """The chance that a Beta(a, b) variable is below `x`: the regularised incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges fast on the other side only
        return 1.0 - beta_below(1.0 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(scale) / a * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + step * d)
            c = _away_from_zero(1.0 + step / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-14:
            return value
    raise ArithmeticError(f"the incomplete beta function did not converge at {x}, {a}, {b}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
