"""Rewards corrected for the noise of verdicts.

Owns: `Form`, `corrected_reward`.
Invariant: only the decision between passed and not passed is corrected, and only of a verdict that is valid and not
tampered; no failed attempt is lifted over a passed one, and none falls below tampering. Pure.
Must not know: who trains on it.

A reward is taken apart as b + (a − b) r̃ + s: a for a pass, b for a plain failure, r̃ whether it passed, and s what
the table adds to or takes from a failure (partial credit, a failed build). r̃ is replaced, s stays:

- *backward*: r̃ → (r̃ − ρ0) / (1 − ρ0 − ρ1). Its mean is r for right and wrong attempts alike (N. Natarajan et al.,
  NeurIPS 2013, for losses), so with s = 0 the mean of the corrected reward is the true one; its variance grows as
  1/J². A result below the reward of tampering is cut there, which `clipped` tells.
- *forward*: r̃ → 1 + w with w(1) = ρ1 and w(0) = ρ1 − 1. Its mean is 1 for a right attempt and 1 − J for a wrong one:
  the true reward up to a positive scale and a constant, and it needs ρ1 only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from practicum.records.verdict import Verdict, default_reward
from practicum.verification.calibration.noise import NoiseEstimate

Form = Literal["none", "backward", "forward"]
PASSED = default_reward("passed", newly_passed=1, total=1)
FAILED = default_reward("failed", newly_passed=0, total=1)
TAMPERED = default_reward("tampered", newly_passed=0, total=1)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A reward before and after. `clipped` says that the formula gave less than `TAMPERED`."""

    raw: float
    value: float
    clipped: bool = False


def corrected_reward(verdict: Verdict, form: Form, found: NoiseEstimate | None) -> Corrected | None:
    """The reward of `verdict` under `form`; None where it carries none.

    Raises `ValueError` where `form` needs rates and `found` is None or leaves the verdict without meaning (J ≤ 0).
    """
    if verdict.reward is None:
        return None
    raw = verdict.reward
    if form == "none" or verdict.status != "valid" or verdict.outcome == "tampered":
        return Corrected(raw, raw)
    if found is None or found.youden <= 0:
        raise ValueError("a correction needs rates that leave the verdict a meaning (J above 0)")
    shaping = raw - (PASSED if verdict.passed else FAILED)
    share = decision(verdict.passed, form, found.false_positive.value, found.false_negative.value)
    value = FAILED + (PASSED - FAILED) * share + shaping
    return Corrected(raw, max(value, TAMPERED), value < TAMPERED)


def decision(passed: bool, form: Form, rho0: float, rho1: float) -> float:
    """What takes the place of r̃ (1 where `passed`)."""
    if form == "backward":
        return (float(passed) - rho0) / (1.0 - rho0 - rho1)
    if form == "forward":
        return 1.0 + (rho1 if passed else rho1 - 1.0)
    return float(passed)
