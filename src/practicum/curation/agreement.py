"""What reviews say beyond the single task: how far reviewers agree, and how many defects a set has at most.

Owns: `cohen_kappa`, `Agreement`, `Sampled`, `defect_estimate`, `DefectEstimate`, `plainly`.
Invariant: no bound is narrower because a sample happened to agree, and what nobody looked at counts as unknown, not as
good. Pure.
Must not know: tasks, reviewers, files.

Sources: J. Cohen, Educational and Psychological Measurement 20 (1960) 37–46, for κ, and for taking chance agreement as
known in its interval, which here is E. B. Wilson's (1927) of the observed agreement: unlike the normal one it has width
where all agree. Simulated for 20 to 100 tasks with 5 to 30 % defects it holds with 94 to 99 %, but with 89 to 93 % for
20 or 40 tasks and κ near 0.9. Pairs of more than two reviewers are averaged after R. J. Light, Psychological
Bulletin 76 (1971) 365–377.
The bound on defects is C. J. Clopper and E. S. Pearson's (1934). Over strata sampled in proportion to their size, the
count of defects is less spread than a binomial one of the same mean (W. Hoeffding, Annals of Mathematical Statistics 27
(1956) 713–721, theorem 4), so the bound of one pooled sample holds for them. With no defect in n it is about 3/n
(J. A. Hanley and A. Lippman-Hand, JAMA 249 (1983) 1743–1745).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from practicum.evaluation.statistics import wilson
from practicum.verification.calibration.bounds import clopper_pearson

SIDE = 0.05
"""Chance that the upper bound on defects errs: 95 %, one-sided."""
_NEAR = 0.005  # so far the rule of three may be from the exact bound and still be said beside it


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two reviewers' answers on `n` tasks: `agreed` of them were equal. `kappa` with its 95 % interval.

    Where both gave one and the same answer throughout, chance explains it all and the three are None.
    """

    n: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def cohen_kappa(pairs: Sequence[tuple[Any, Any]]) -> Agreement:
    """Agreement beyond chance of two reviewers, from one pair of answers a task."""
    n = len(pairs)
    agreed = sum(first == second for first, second in pairs)
    first_counts, second_counts = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(first_counts[answer] * second_counts[answer] for answer in first_counts)  # of n²
    if n == 0 or by_chance == n * n:
        return Agreement(n, agreed, None, None, None)
    expected = by_chance / n**2
    low, high = wilson(agreed, n)
    kappa, *bounds = ((share - expected) / (1 - expected) for share in (agreed / n, low, high))
    return Agreement(n, agreed, kappa, max(-1.0, bounds[0]), min(1.0, bounds[1]))


def light_kappa(found: Sequence[Agreement]) -> float | None:
    """The mean κ over pairs of reviewers; None where no pair has one."""
    known = [each.kappa for each in found if each.kappa is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Sampled:
    """One stratum: of `size` tasks, `reviewed` were drawn at random and looked at, and `defects` of those are bad."""

    name: str
    size: int
    reviewed: int
    defects: int

    def __post_init__(self) -> None:
        if not 0 <= self.defects <= self.reviewed <= self.size:
            raise ValueError(f"{self.defects} defects in {self.reviewed} of {self.size} tasks")


@dataclass(frozen=True, slots=True)
class DefectEstimate:
    """Share of bad tasks among `tasks`: `rate` by strata, None before each was looked at, and at most `high` (95 %)."""

    tasks: int
    reviewed: int
    defects: int
    rate: float | None
    high: float
    strata: tuple[Sampled, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def defect_estimate(strata: Sequence[Sampled], side: float = SIDE) -> DefectEstimate:
    """The share of bad tasks over all strata, and a bound that errs with a chance of at most `side`.

    A stratum that was looked at wholly is known; one that nobody looked at may be all bad.
    """
    strata = tuple(stratum for stratum in strata if stratum.size)
    total = sum(stratum.size for stratum in strata)
    reviewed, defects = sum(s.reviewed for s in strata), sum(s.defects for s in strata)
    if total == 0:
        return DefectEstimate(0, 0, 0, None, 1.0, strata)
    rate = None
    if all(s.reviewed for s in strata):
        rate = sum(s.size * s.defects / s.reviewed for s in strata) / total
    known = sum(s.defects for s in strata if s.reviewed == s.size)
    unseen = sum(s.size for s in strata if s.reviewed == 0)
    partly = [s for s in strata if 0 < s.reviewed < s.size]
    high = (known + unseen + (_most_bad(partly, side) if partly else 0.0)) / total
    return DefectEstimate(total, reviewed, defects, rate, min(1.0, high), strata)


def _most_bad(strata: Sequence[Sampled], side: float) -> float:
    """At most so many tasks of `strata` are bad. Which of two bounds is used depends on sizes alone, never on finds."""
    size = float(sum(s.size for s in strata))
    clean = [Sampled(s.name, s.size, s.reviewed, 0) for s in strata]
    bound = min((_pooled, _apart), key=lambda bound: bound(clean, side))
    return min(size, bound(strata, side))


def _pooled(strata: Sequence[Sampled], side: float) -> float:
    """All strata as one sample; where one was drawn too thinly for its size, all of the bound is raised to match."""
    reviewed, defects = sum(s.reviewed for s in strata), sum(s.defects for s in strata)
    thinnest = max(s.size / s.reviewed for s in strata)
    return thinnest * reviewed * clopper_pearson(defects, reviewed, side)[1]


def _apart(strata: Sequence[Sampled], side: float) -> float:
    """Each stratum with a bound of its own, all of which hold at once (Bonferroni)."""
    share = side / len(strata)
    return sum(s.size * clopper_pearson(s.defects, s.reviewed, share)[1] for s in strata)


def plainly(found: DefectEstimate, target: float | None = None) -> str:
    """The estimate in words, and what follows for a batch that must stay below `target`."""
    if found.reviewed == 0:
        said = "nobody has looked at any of it, so nothing is known of its defects"
    else:
        said = (
            f"{found.defects} of {found.reviewed} reviewed tasks are bad; at most {found.high:.1%} of all {found.tasks}"
        )
        number = len(found.strata)
        said += f" are (95 %, exact, by {number} {'stratum' if number == 1 else 'strata'})"
        if found.defects == 0 and found.reviewed < found.tasks and abs(3 / found.reviewed - found.high) < _NEAR:
            said += f"; no defect in n bounds the rate at about 3/n = {3 / found.reviewed:.1%}"
    if target is None:
        return said
    if found.high <= target:
        return f"{said}: within the target of {target:.1%}"
    return f"{said}: above the target of {target:.1%}, so the batch goes back whole"
