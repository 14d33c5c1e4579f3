"""From an outcome and signals to a reward.

Owns: `TABLES`, `fuse`, `reward_problem`, `shaped`, `unshaped`.
Invariant: validity comes before integrity, integrity before outcome, outcome before shaping. Only a pass is shaped,
only downwards, and by no more than the task's band, which no table lets reach a failure's reward: so no failed
attempt outranks a passed one, whatever the signals say. A signal that is missing changes nothing. Pure.
Must not know: where signals come from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from practicum.records.task import RewardRule, Task
from practicum.records.verdict import Outcome, Signal, Verdict, default_reward

RELIABILITY = "reliability"  # the signal that says how far a verdict is to be trusted; it never shapes


def _strict(outcome: Outcome, *, newly_passed: int, total: int) -> float:
    """The default table without credit for a part."""
    return default_reward("failed" if outcome == "partial" else outcome, newly_passed=newly_passed, total=total)


def _binary(outcome: Outcome, *, newly_passed: int, total: int) -> float:
    """1 for a pass, 0 for everything else."""
    return 1.0 if outcome == "passed" else 0.0


TABLES = {"default": default_reward, "strict": _strict, "binary": _binary}
PASSED = 1.0  # in each table
BELOW = 0.8  # no failed attempt reaches it, in any table
WIDEST = 0.2  # band, so that a shaped pass stays above


def reward_problem(rule: RewardRule) -> str | None:
    """Why `rule` cannot be followed, or None."""
    if rule.table not in TABLES:
        return f"there is no reward table {rule.table!r}: use one of {', '.join(TABLES)}"
    if not 0 <= rule.band <= WIDEST:
        return f"the band {rule.band} is not within 0 and {WIDEST}: a failed attempt could outrank a passed one"
    if bool(rule.signals) != (rule.band > 0):
        return "`band` and `signals` go together: a band without signals shapes nothing, nor do signals without a band"
    return None


def fuse(rule: RewardRule, outcome: Outcome, signals: Sequence[Signal], *, newly: int, total: int) -> float:
    """The reward: the table's, and for a pass less at most the band, by the weighted mean of the named signals.

    A signal's weight is its own times its reliability. Scores beyond [0, 1], or none at all, count as missing.
    """
    base = TABLES[rule.table](outcome, newly_passed=newly, total=total)
    if outcome != "passed":
        return base
    known = [signal for signal in signals if signal.name in rule.signals and _usable(signal)]
    weight = math.fsum(signal.weight * signal.reliability for signal in known)
    if weight <= 0:
        return base
    mean = math.fsum(signal.score * signal.weight * signal.reliability for signal in known) / weight
    return max(base - rule.band * (1.0 - min(1.0, mean)), BELOW)


def _usable(signal: Signal) -> bool:
    numbers = (signal.score, signal.weight, signal.reliability)
    return all(map(math.isfinite, numbers)) and 0 <= signal.score <= 1 and signal.weight > 0 and signal.reliability > 0


def unshaped(task: Task, verdict: Verdict) -> float | None:
    """The reward by the table alone, where that of `verdict` follows from it and its signals; else as it stands."""
    rule = task.verification.reward
    follows = verdict.passed and verdict.reward == fuse(rule, "passed", verdict.signals, newly=1, total=1)
    return PASSED if follows else verdict.reward


def shaped(task: Task, verdict: Verdict, signals: Sequence[Signal]) -> Verdict:
    """`verdict` with further signals, and with the reward that they give it.

    A verdict without a number stays without one, and one that is not a pass keeps its reward.
    """
    added = replace(verdict, signals=(*verdict.signals, *signals))
    if verdict.status != "valid" or verdict.outcome != "passed":
        return added
    return replace(added, reward=fuse(task.verification.reward, "passed", added.signals, newly=1, total=1))
