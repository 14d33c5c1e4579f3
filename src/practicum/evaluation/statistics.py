"""Statistics of success: intervals for a rate, for a paired difference, and pass@k.

Owns: `wilson`, `clustered_wilson`, `paired_interval`, `mcnemar_exact`, `sign_flip_p`, `pass_at_k`.
Invariant: pure functions of numbers; an interval never has zero width because a sample happened to agree.
Must not know: trajectories, tasks.

Sources: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927), for one rate; E. L. Korn and B. I. Graubard, Survey Methodology
24 (1998), for clustered samples (the effective sample size); R. G. Newcombe, Statistics in Medicine 17 (1998)
2635–2650, method 10, for the paired difference; Q. McNemar, Psychometrika 12 (1947), in its exact form; M. Chen et
al., arXiv:2107.03374, for pass@k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Z95 = 1.96


def wilson(successes: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for `successes` out of `n` ((0, 1) for n = 0). Fractions are fine."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return 0.0, 1.0
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == n else min(1.0, centre + half)


def clustered_wilson(counts: Sequence[tuple[int, int]], z: float = Z95) -> tuple[float, float]:
    """Interval for the rate over tasks, each given as (successes, samples).

    Samples of one task resemble each other, so the effective number of samples lies between the number of tasks
    and that of samples; it follows from the spread between tasks. With one sample a task, and with one task alone
    (whose own rate is then meant), this is `wilson`.
    """
    n = sum(samples for _, samples in counts)
    successes = sum(passed for passed, _ in counts)
    if n == 0:
        return 0.0, 1.0
    effective = _effective_n(counts)
    return wilson(successes / n * effective, effective, z)


def _effective_n(counts: Sequence[tuple[int, int]]) -> float:
    sizes = np.array([samples for _, samples in counts if samples], dtype=float)
    passed = np.array([successes for successes, samples in counts if samples], dtype=float)
    tasks, n = len(sizes), float(sizes.sum())
    if tasks < 2 or n == tasks:
        return n
    rate = float(passed.sum()) / n
    if rate in (0.0, 1.0):
        # No spread to learn from; one sample a task is the cautious reading.
        return float(tasks)
    residuals = passed - rate * sizes
    variance = tasks / (tasks - 1) * float((residuals**2).sum()) / n**2
    return min(n, max(float(tasks), rate * (1 - rate) / variance)) if variance > 0 else n


def paired_interval(before: Sequence[float], after: Sequence[float], z: float = Z95) -> tuple[float, float]:
    """Interval for mean(after) − mean(before) over pairs of rates in [0, 1], one pair a task.

    Newcombe's method 10: the Wilson intervals of both rates, combined by squares with the correlation between
    them, its continuity correction included. For pairs of 0 and 1 this is his formula exactly; rates in between
    only narrow the spread within tasks, for which a task still counts as one observation.
    """
    n = len(before)
    if n == 0 or n != len(after):
        raise ValueError(f"{n} rates before and {len(after)} after do not make pairs")
    x, y = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    rate_x, rate_y = float(x.mean()), float(y.mean())
    (low_x, high_x), (low_y, high_y) = wilson(rate_x * n, n, z), wilson(rate_y * n, n, z)
    correlation = _corrected_correlation(x, y)
    difference = rate_y - rate_x

    def combine(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a - 2 * correlation * a * b + b * b))

    low = difference - combine(rate_y - low_y, high_x - rate_x)
    high = difference + combine(high_y - rate_y, rate_x - low_x)
    return max(-1.0, low), min(1.0, high)


def _corrected_correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    n = len(x)
    covariance = float((x * y).mean() - x.mean() * y.mean())
    if covariance > 0:
        covariance = max(0.0, covariance - 1 / (2 * n))
    spread = float(x.std() * y.std())
    return max(-1.0, min(1.0, covariance / spread)) if spread > 1e-12 else 0.0


def mcnemar_exact(gained: int, lost: int) -> float:
    """Two-sided exact p for `gained` and `lost` discordant pairs under equal chances of both."""
    n = gained + lost
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1))
    return float(min(1.0, 2 * tail / 2**n))


def sign_flip_p(differences: Sequence[float], *, seed: int = 0, draws: int = 20_000) -> float:
    """Two-sided p that per-task differences are as likely in either direction.

    All sign patterns where there are at most 2^14, else `draws` seeded ones, the observed one counted among them.
    For differences in {−1, 0, 1} the full enumeration equals `mcnemar_exact`.
    """
    values = np.asarray([value for value in differences if value != 0], dtype=float)
    n = len(values)
    if n == 0:
        return 1.0
    observed = abs(values.sum()) - 1e-9  # sums of the same values in another order differ in the last bits
    if n <= 14:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return float((np.abs((1 - 2 * patterns) @ values) >= observed).mean())
    signs = 1 - 2 * np.random.default_rng(seed).integers(0, 2, size=(draws, n), dtype=np.int8)
    return float((np.count_nonzero(np.abs(signs @ values) >= observed) + 1) / (draws + 1))


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of k samples passes, from `successes` of `n`."""
    if not 1 <= k <= n or not 0 <= successes <= n:
        raise ValueError(f"pass@{k} cannot be had from {successes} successes of {n} samples")
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)
