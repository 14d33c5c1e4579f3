"""How often a task's verdicts are wrong, and what is left of their meaning.

Owns: `Evidence`, `NoiseEstimate`, `estimate`, `use_problem`.
Invariant: a rate is never told without its bounds, and a verdict that decided nothing counts as no trial. Pure.
Must not know: how the evidence was made.

For an attempt that is right (r = 1) or wrong (r = 0) and its verdict r̃: ρ0 = P(r̃ = 1 | r = 0) is the rate of false
positives, ρ1 = P(r̃ = 0 | r = 1) that of false negatives, and Youden's J = 1 − ρ0 − ρ1 (W. J. Youden, Cancer 3 (1950)
32–35) is what the verdict still says: E[r̃] = ρ0 + J r. At J = 0 it says nothing, and below 0 it misleads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.posterior import Bounded, Rulings, posterior


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one task's verdicts.

    `wrong` counts judgements of submissions known to be wrong (an error: accepted), `right` those of right ones (an
    error: rejected). The same submission may be judged many times, which shows flakiness; `wrong_distinct` and
    `right_distinct` count each submission once (an error: misjudged at least once). `undecided` verdicts were not
    valid. `passed` and `failed` count verdicts on attempts whose truth is unknown; `rulings` say it of some of those.
    """

    wrong: Rate = Rate()
    right: Rate = Rate()
    wrong_distinct: Rate = Rate()
    right_distinct: Rate = Rate()
    undecided: int = 0
    passed: int = 0
    failed: int = 0
    rulings: Rulings = Rulings()


@dataclass(frozen=True, slots=True)
class NoiseEstimate:
    """ρ0 (`false_positive`) and ρ1 (`false_negative`) of one task, and a 95 % lower bound of J.

    `method` is `trials` (exact bounds from submissions of known truth) or `rulings` (posterior, see there).
    """

    task: str
    digest: str
    false_positive: Bounded
    false_negative: Bounded
    youden_low: float
    method: Literal["trials", "rulings"]
    evidence: Evidence

    @property
    def youden(self) -> float:
        return 1.0 - self.false_positive.value - self.false_negative.value

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "youden": self.youden}


def estimate(task: str, digest: str, evidence: Evidence) -> NoiseEstimate:
    """The estimate that `evidence` supports. Where a person has ruled on attempts, rulings and trials are combined."""
    if evidence.rulings.total == 0:
        positive, negative = _bounded(evidence.wrong), _bounded(evidence.right)
        low = 1.0 - positive.high - negative.high  # each bound at 97.5 %, so both together at 95 %
        return NoiseEstimate(task, digest, positive, negative, low, "trials", evidence)
    found = posterior(
        # Repeats of one submission are no news about others.
        evidence.wrong_distinct,
        evidence.right_distinct,
        evidence.rulings,
        passed=evidence.passed,
        failed=evidence.failed,
    )
    return NoiseEstimate(
        task, digest, found.false_positive, found.false_negative, found.youden.low, "rulings", evidence
    )


def _bounded(rate: Rate) -> Bounded:
    return Bounded(rate.value, rate.low, rate.high)


def read_estimate(data: Mapping[str, Any]) -> NoiseEstimate:
    """The inverse of `to_json`: made again from the evidence. Raises `KeyError`, `TypeError` or `ValueError`."""
    given = data["evidence"]
    evidence = Evidence(
        wrong=Rate(**given["wrong"]),
        right=Rate(**given["right"]),
        wrong_distinct=Rate(**given["wrong_distinct"]),
        right_distinct=Rate(**given["right_distinct"]),
        undecided=int(given["undecided"]),
        passed=int(given["passed"]),
        failed=int(given["failed"]),
        rulings=Rulings(**given["rulings"]),
    )
    return estimate(str(data["task"]), str(data["digest"]), evidence)


def use_problem(found: NoiseEstimate | None, *, min_youden: float) -> str | None:
    """Why a task may not train, with the numbers, or None. Without an estimate nothing is known: too little."""
    if found is None:
        return "its verdicts' noise was never measured (no estimate for this digest)"
    if found.youden_low > min_youden:
        return None
    positive, negative, evidence = found.false_positive, found.false_negative, found.evidence
    return (
        f"its verdicts are too noisy: J = {found.youden:.2f} with lower bound {found.youden_low:.2f} ≤ {min_youden:g}; "
        f"false positives {positive.value:.1%} (at most {positive.high:.1%}, {evidence.wrong.trials} trials), "
        f"false negatives {negative.value:.1%} (at most {negative.high:.1%}, {evidence.right.trials} trials)"
    )
