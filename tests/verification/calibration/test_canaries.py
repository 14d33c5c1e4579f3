"""Canaries against the real judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from practicum.records.task import RewardRule
from practicum.records.tree import File
from practicum.records.verdict import Signal, Verdict
from practicum.verification.calibration.canaries import KNOWN, Canary, deviation
from practicum.verification.judge import ExecutionVerifier

if TYPE_CHECKING:
    from verification.conftest import Bench


def judge(bench: Bench, canary: Canary) -> Verdict:
    verifier = ExecutionVerifier(bench.provider, drivers=bench.drivers)
    return bench.runner.run(verifier.verify(canary.task, canary.submission))


@pytest.mark.parametrize("canary", KNOWN, ids=lambda canary: canary.name)
def test_the_judge_gives_the_known_verdicts(bench: Bench, canary: Canary) -> None:
    """Every canary that comes with the package gets the verdict that it must get."""
    assert deviation(canary, judge(bench, canary)) is None


def test_every_kind_is_there() -> None:
    """The set holds each kind of verdict, under names of their own."""
    kinds = {canary.outcome or canary.status for canary in KNOWN}
    assert kinds == {"passed", "failed", "tampered", "build_failed", "invalid"}
    assert len({canary.name for canary in KNOWN}) == len(KNOWN)


def test_a_changed_acceptance_script_is_seen(bench: Bench) -> None:
    """A canary whose frozen tests were weakened gets another verdict, and the deviation says which."""
    wrong = next(canary for canary in KNOWN if canary.name == "pytest-wrong")
    frozen = File(b"def test_sum():\n    pass\n\n\ndef test_nothing():\n    pass\n")
    check = replace(wrong.task.verification, tests={"test_frozen.py": frozen})
    weakened = replace(wrong, task=replace(wrong.task, verification=check))
    assert deviation(weakened, judge(bench, weakened)) == "expected failed, but the outcome is passed"


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (
            Verdict("unscorable", None, None, reason="box lost"),
            "expected passed, but the verdict is unscorable (box lost)",
        ),
        (Verdict("valid", "passed", 0.5), "expected reward 1.0, but it is 0.5"),
        (Verdict("valid", "passed", 1.0), None),
    ],
    ids=["unscorable", "reward", "same"],
)
def test_any_difference_is_a_deviation(verdict: Verdict, said: str | None) -> None:
    """Status, outcome and reward each count."""
    assert deviation(KNOWN[0], verdict) == said


def test_signals_are_no_deviation() -> None:
    """What turns or a model took off a pass is no change of the judge; a reward that does not follow from them is."""
    known = KNOWN[0]
    rule = RewardRule("default", 0.2, ("turns", "judge"))
    canary = replace(known, task=replace(known.task, verification=replace(known.task.verification, reward=rule)))
    shaped = Verdict("valid", "passed", 0.9, signals=(Signal("turns", 0.5),))
    assert deviation(canary, shaped) is None
    assert deviation(canary, replace(shaped, reward=0.85)) == "expected reward 1.0, but it is 0.85"
    assert deviation(known, shaped) == "expected reward 1.0, but it is 0.9"
