"""Which verdicts a person should look at: more of those that pay much and are trusted little.

Owns: `reliability`, `draw`, `Drawn`.
Invariant: every verdict can be drawn, each stratum at a rate that is told; same seed and verdicts, same sample. Pure.
Must not know: where verdicts are stored, who looks at them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from practicum.records.verdict import Verdict
from practicum.verification.fusion import RELIABILITY

UNSURE = 0.75  # below it a verdict is trusted little
_NOTED = 0.5  # what a finding that does not veto leaves of the trust
_SHARES = {(True, True): 0.5, (True, False): 0.25, (False, True): 0.15, (False, False): 0.1}
_NAMES = {
    (True, True): "passed, unsure",
    (True, False): "passed, sure",
    (False, True): "not passed, unsure",
    (False, False): "not passed, sure",
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Drawn(Generic[T]):
    """One of the sample. `rate` of its stratum was drawn."""

    item: T
    stratum: str
    rate: float


def reliability(verdict: Verdict, youden_low: float | None = None) -> float:
    """How far `verdict` is to be trusted, in [0, 1]: by its signals, its findings and what is known of its task."""
    trusts = (signal.score if signal.name == RELIABILITY else signal.reliability for signal in verdict.signals)
    trust = min(trusts, default=1.0)
    if any(finding.severity == "note" for finding in verdict.findings):
        trust *= _NOTED
    if youden_low is not None:
        trust *= youden_low
    return min(1.0, max(0.0, trust))


def draw(items: Sequence[T], key: Callable[[T], tuple[bool, float]], *, size: int, seed: int) -> list[Drawn[T]]:
    """At most `size` of `items`; `key` gives whether one passed and how reliable it is.

    Half of the sample are passed and unsure ones, and strata that have too few leave their places to the others.
    """
    strata: defaultdict[tuple[bool, bool], list[T]] = defaultdict(list)
    for item in items:
        passed, trust = key(item)
        strata[passed, trust < UNSURE].append(item)
    taken = dict.fromkeys(_SHARES, 0)
    for _ in range(min(size, len(items))):
        open_ones = [name for name in _SHARES if taken[name] < len(strata[name])]
        taken[min(open_ones, key=lambda name: (taken[name] + 0.5) / _SHARES[name])] += 1
    drawn: list[Drawn[T]] = []
    for name, count in taken.items():
        rng = random.Random(f"spot-check-{seed}-{_NAMES[name]}")
        chosen = rng.sample(strata[name], count)
        drawn += [Drawn(item, _NAMES[name], count / len(strata[name])) for item in chosen]
    return drawn
