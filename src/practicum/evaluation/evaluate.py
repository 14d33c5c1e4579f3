"""From trajectories to numbers about a policy: a success rate, and the difference between two.

Owns: `EvalResult`, `PairedDifference`, `summarise`, `compare`, `pass_at`.
Invariant: what was not judged is never counted as a failure: it is left out of the rate and counted beside it.
Must not know: how trajectories are made, training.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from practicum.evaluation.statistics import clustered_wilson, mcnemar_exact, paired_interval, pass_at_k, sign_flip_p
from practicum.records.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class EvalResult:
    """`samples` were judged, `passed` of them passed; `rate` = passed / samples, with its 95 % interval.

    `tasks` counts every task attempted. `unscorable` attempts met an infrastructure fault or were cancelled,
    `invalid` ones a task at fault; neither is among `samples`. Where nothing was judged, rate is 0 in [0, 1],
    and the JSON document has null for the three: there is no rate to read.
    """

    tasks: int
    samples: int
    passed: int
    rate: float
    low: float
    high: float
    unscorable: int
    invalid: int

    def to_json(self) -> dict[str, float | None]:
        unknown = {} if self.samples else {"rate": None, "low": None, "high": None}
        return asdict(self) | unknown


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """`after` − `before` in mean success per task over `n` tasks judged on both sides, with its 95 % interval.

    `gained` and `lost` count tasks whose rate rose and fell; `p_value` is two-sided: McNemar's exact test where
    each task has one sample a side, else the sign-flip test. `unpaired` tasks were judged on one side at most.
    """

    n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_value: float
    gained: int
    lost: int
    unpaired: int

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def summarise(trajectories: Iterable[Trajectory]) -> EvalResult:
    """Success rate of the attempts that were judged. Pure."""
    everything = list(trajectories)
    counts = _counts(everything)
    samples = sum(judged for _, judged in counts.values())
    passed = sum(successes for successes, _ in counts.values())
    low, high = clustered_wilson(list(counts.values()))
    invalid = sum(_is_invalid(trajectory) for trajectory in everything)
    return EvalResult(
        tasks=len(counts),
        samples=samples,
        passed=passed,
        rate=passed / samples if samples else 0.0,
        low=low,
        high=high,
        unscorable=len(everything) - samples - invalid,
        invalid=invalid,
    )


def compare(before: Iterable[Trajectory], after: Iterable[Trajectory]) -> PairedDifference:
    """How much better `after` does than `before`, task by task. Raises `ValueError` where no task was judged in both.

    Tasks are paired by id and digest: a task that was changed in between is not the same task.
    """
    first, second = _counts(before), _counts(after)
    paired = sorted(task for task in first.keys() & second.keys() if first[task][1] and second[task][1])
    if not paired:
        raise ValueError("no task was judged on both sides, so there is nothing to compare")
    rates = np.array([[first[t][0] / first[t][1], second[t][0] / second[t][1]] for t in paired])
    differences = rates[:, 1] - rates[:, 0]
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    single = all(first[task][1] == second[task][1] == 1 for task in paired)
    low, high = paired_interval(rates[:, 0].tolist(), rates[:, 1].tolist())
    return PairedDifference(
        n=len(paired),
        before=float(rates[:, 0].mean()),
        after=float(rates[:, 1].mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        p_value=mcnemar_exact(gained, lost) if single else sign_flip_p(differences.tolist()),
        gained=gained,
        lost=lost,
        unpaired=len(first.keys() | second.keys()) - len(paired),
    )


def pass_at(trajectories: Iterable[Trajectory], k: int) -> float:
    """Unbiased pass@k, the mean over tasks. Raises `ValueError` where a task has fewer than `k` judged attempts."""
    counts = _counts(trajectories)
    if not counts:
        raise ValueError("there are no attempts")
    return sum(pass_at_k(judged, passed, k) for passed, judged in counts.values()) / len(counts)


def _is_judged(trajectory: Trajectory) -> bool:
    return trajectory.fault is None and trajectory.verdict is not None and trajectory.verdict.status == "valid"


def _is_invalid(trajectory: Trajectory) -> bool:
    return trajectory.fault is None and trajectory.verdict is not None and trajectory.verdict.status == "invalid"


def _counts(trajectories: Iterable[Trajectory]) -> Mapping[tuple[str, str], tuple[int, int]]:
    """(passed, judged) by task; a task none of whose attempts was judged is there with (0, 0)."""
    counts: defaultdict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for trajectory in trajectories:
        key = (trajectory.task_id, trajectory.task_digest)
        passed, judged = counts[key]
        counts[key] = (passed + (trajectory.passed and _is_judged(trajectory)), judged + _is_judged(trajectory))
    return dict(counts)
