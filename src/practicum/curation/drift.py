"""When outcomes of training speak against a task: rules that say so, as pure functions of what was counted.

Owns: `Tally`, `Suspicion`, `tally`, `faulty`, `hacked`, `blame`, `gold_lost`, `ruled_wrong`.
Invariant: a task is blamed only where the others say that it is not the host, the judge or the policy: each rule
compares it with them, needs a least number of observations, and says what it rests on.
Must not know: runs, disks, what happens to a task that is blamed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from practicum.records.trajectory import Trajectory
from practicum.rollouts.collector import SPARE
from practicum.verification.calibration.bounds import beta_below
from practicum.verification.calibration.sampling import reliability

ALPHA = 1e-3
"""Chance, over all tasks that are compared, of blaming one that is like the others."""
LEAST_FAULTS = 4
LEAST_TAMPERED = 3
JUMP_FROM, JUMP_TO = 0.25, 0.75
"""A success rate up to the first, then at least the second within one batch, is a jump."""
LEAST_BEFORE, LEAST_NOW = 8, 4
"""Judged attempts before and in the batch without which there is no telling of a jump."""
WEAK = 0.8
"""A pass is weak where it is trusted less than this share of what the task's own gold is."""
NOT_THE_HOST = frozenset({"PolicyError", "PolicyRefused", "Cancelled", SPARE})
"""Faults that say nothing about a task or its boxes."""

Rule = Literal["gold", "faults", "reward"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What attempts at one task came to. `faults` are of the infrastructure, or verdicts that blame the task itself.

    `weak` counts those that passed, but on weaker evidence than the gold.
    """

    attempts: int = 0
    faults: int = 0
    judged: int = 0
    passed: int = 0
    weak: int = 0
    tampered: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in Tally.__slots__))

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why one task should not be trained on, by which rule, on what evidence (JSON data)."""

    task: str
    rule: Rule
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


def tally(trajectories: Iterable[Trajectory], trust: Mapping[str, float]) -> dict[str, Tally]:
    """What `trajectories` came to, by task id. `trust` says how reliable the verdict on each task's gold was."""
    found: defaultdict[str, Tally] = defaultdict(Tally)
    for trajectory in trajectories:
        found[trajectory.task_id] += _one(trajectory, trust.get(trajectory.task_id, 1.0))
    return dict(found)


def _one(trajectory: Trajectory, gold: float) -> Tally:
    verdict, fault = trajectory.verdict, trajectory.fault
    if fault is not None:
        blameless = fault.kind in NOT_THE_HOST
        return Tally(attempts=0 if blameless else 1, faults=0 if blameless else 1)
    if verdict is None or verdict.status != "valid":
        return Tally(attempts=1, faults=int(verdict is not None))
    weak = verdict.passed and reliability(verdict) < WEAK * gold
    tampered = verdict.outcome == "tampered"
    return Tally(1, 0, 1, int(verdict.passed), int(weak), int(tampered))


def faulty(task: str, everything: Mapping[str, Tally]) -> Suspicion | None:
    """Whether faults of `task` exceed the fleet's rate, that of all others in `everything`: a binomial test."""
    own, rest = everything[task], _others(task, everything)
    if own.faults < LEAST_FAULTS or not rest.attempts:
        return None
    rate = _rate(rest.faults, rest.attempts)
    chance = binomial_tail(own.faults, own.attempts, rate) * len(everything)
    if chance >= ALPHA:
        return None
    return Suspicion(
        task,
        "faults",
        f"{own.faults} of {own.attempts} attempts met a fault, where others do in {rate:.1%}",
        {"own": own.to_json(), "others": rest.to_json(), "p": chance},
    )


def hacked(task: str, now: Tally, everything: Mapping[str, Tally]) -> Suspicion | None:
    """Whether the reward of `task` seems to be had without the work.

    `now` is what the newest batch came to; `everything` counts it in. Either passes stand beside tampering that other
    tasks do not see, or the success rate jumped, and most of the passes stand on weaker evidence than the gold.
    """
    own, rest = everything[task], _others(task, everything)
    before = Tally(*(getattr(own, name) - getattr(now, name) for name in Tally.__slots__))
    if now.tampered and now.passed and own.tampered >= LEAST_TAMPERED and rest.judged:
        rate = _rate(rest.tampered, rest.judged)
        chance = binomial_tail(own.tampered, own.judged, rate) * len(everything)
        if chance < ALPHA:
            return Suspicion(
                task,
                "reward",
                f"{own.tampered} of {own.judged} attempts tampered (of others {rate:.1%}) while {now.passed} passed",
                {"own": own.to_json(), "others": rest.to_json(), "p": chance},
            )
    jumped = (
        before.judged >= LEAST_BEFORE
        and now.judged >= LEAST_NOW
        and before.passed <= JUMP_FROM * before.judged
        and now.passed >= JUMP_TO * now.judged
    )
    if jumped and now.weak * 2 > now.passed:
        return Suspicion(
            task,
            "reward",
            f"success jumped from {before.passed} of {before.judged} to {now.passed} of {now.judged}, and {now.weak} "
            "of those passes stand on weaker evidence than the gold",
            {"before": before.to_json(), "now": now.to_json()},
        )
    return None


def ruled_wrong(rulings: Iterable[Mapping[str, Any]]) -> list[Suspicion]:
    """A suspicion for each task of which a person ruled that a pass was none. `rulings` are those that count."""
    wrong: dict[str, Mapping[str, Any]] = {}
    for row in rulings:
        if row["ruling"] == "wrong" and row["outcome"] == "passed":
            wrong.setdefault(str(row["task"]), row)
    return [
        Suspicion(
            task,
            "reward",
            f"{row['reviewer']} ruled that {row['id']} passed wrongly: {row['reason']}",
            {name: row[name] for name in ("id", "submission", "reviewer", "reason")},
        )
        for task, row in sorted(wrong.items())
    ]


def blame(deviating: Sequence[str], holding: Sequence[str], *, known_hold: bool) -> Literal["tasks", "judge"]:
    """Who is at fault where the verdicts on the `deviating` tasks' own canaries are not what they were.

    The tasks are, where the canaries that belong to no task still hold, and those of at least as many other tasks as
    deviate. Anything less is put down to the judge, which stops a run.
    """
    return "tasks" if known_hold and len(holding) >= max(1, len(deviating)) else "judge"


def gold_lost(task: str, said: Sequence[str], *, again: bool, holding: int) -> Suspicion:
    """The suspicion against a task whose canaries deviate, `again` also when they were looked at a second time."""
    how = "" if again else " only sometimes"
    return Suspicion(
        task,
        "gold",
        f"its known verdicts do not hold any more{how}: {'; '.join(said)}",
        {"deviations": list(said), "again": again, "others_that_hold": holding},
    )


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X ≥ k) of n draws with chance p each."""
    if not 0 <= k <= n or not 0 <= p <= 1:
        raise ValueError(f"k {k}, n {n}, p {p}")
    return beta_below(p, k, n - k + 1) if k else 1.0


def _others(task: str, everything: Mapping[str, Tally]) -> Tally:
    total = Tally()
    for name, each in everything.items():
        if name != task:
            total += each
    return total


def _rate(events: int, trials: int) -> float:
    """A rate that is not 0 because nothing happened yet (Laplace's rule of succession)."""
    return (events + 1) / (trials + 2)
