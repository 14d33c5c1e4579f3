"""Learning rates as pure functions of the step.

Owns: warm-up with cosine decay, linear decay. Invariant: never negative, never above the peak.
Must not know: optimisers.
"""

from __future__ import annotations

import math


def warmup_cosine(step: int, steps: int, *, peak: float, warmup: int, floor: float = 0.05) -> float:
    """Rate of `step` (from 0) of `steps`: linear up to `peak` in `warmup`, then a cosine down to `floor · peak`."""
    rise = min(1.0, (step + 1) / warmup) if warmup > 0 else 1.0
    fall = 0.5 * (1.0 + math.cos(math.pi * min(1.0, step / max(1, steps))))
    return peak * rise * (floor + (1.0 - floor) * fall)


def linear(step: int, steps: int, *, first: float, last: float, warmup: int = 0) -> float:
    """Rate of `step` (from 0) of `steps`, from `first` to `last`, rising over the first `warmup` steps."""
    rise = min(1.0, (step + 1) / warmup) if warmup > 0 else 1.0
    return rise * (first + (last - first) * min(1.0, step / max(1, steps - 1)))
