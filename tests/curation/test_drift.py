"""Rules by which outcomes of training speak against a task."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.curation.drift import (
    LEAST_FAULTS,
    Suspicion,
    Tally,
    binomial_tail,
    blame,
    faulty,
    gold_lost,
    hacked,
    ruled_wrong,
    tally,
)
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Finding, Verdict

PASSED, FAILED = Verdict("valid", "passed", 1.0), Verdict("valid", "failed", -0.2)
TAMPERED = Verdict("valid", "tampered", -1.0, findings=(Finding("frozen_test", "t.py", "edit", "tamper"),))
WEAK = replace(PASSED, findings=(Finding("flaky_contradiction", "t.py", "said both"),))
INVALID = Verdict("invalid", None, None, reason="the tests cannot be read")
HEALTHY = Tally(attempts=160, faults=1, judged=159, passed=80)


def attempt(verdict: Verdict | None = None, fault: str | None = None, task: str = "t") -> Trajectory:
    trouble = Fault(fault, "said so") if fault else None
    return Trajectory("a", "g", task, "digest", (), "submitted", trouble, None, verdict)


def test_what_is_counted() -> None:
    """Faults of boxes and verdicts that blame the task count as faults; what the policy or a stop caused does not."""
    batch = [attempt(PASSED), attempt(WEAK), attempt(FAILED), attempt(TAMPERED), attempt(INVALID)]
    batch += [attempt(fault=kind) for kind in ("SandboxDied", "VerifierError", "PolicyRefused", "Cancelled")]
    batch.append(attempt(PASSED, task="u"))
    counts = tally(batch, {"t": 1.0})
    assert counts["t"] == Tally(attempts=7, faults=3, judged=4, passed=2, weak=1, tampered=1)
    assert counts["u"] == Tally(1, 0, 1, 1)
    assert tally([attempt(WEAK)], {"t": 0.5})["t"].weak == 0  # its gold was trusted no more


def test_a_task_whose_boxes_die_is_told_from_a_fleet_whose_boxes_die() -> None:
    """Eight faults in eight attempts blame the task where others are well, not where half of all attempts fail."""
    dying = Tally(attempts=8, faults=8)
    found = faulty("bad", {"bad": dying, "x": HEALTHY, "y": HEALTHY})
    assert found is not None
    assert found.rule == "faults"
    assert "8 of 8" in found.reason
    troubled = Tally(attempts=160, faults=80, judged=80)
    assert faulty("bad", {"bad": dying, "x": troubled, "y": troubled}) is None
    assert faulty("bad", {"bad": dying}) is None  # with nobody to compare with
    few = Tally(attempts=3, faults=LEAST_FAULTS - 1)
    assert faulty("bad", {"bad": few, "x": HEALTHY}) is None


@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.0, 0.02, 0.3, 0.9]))
@settings(max_examples=60, deadline=None)
def test_tasks_alike_are_not_blamed(seed: int, rate: float) -> None:
    """Among forty tasks with one rate of faults, hardly ever is one blamed."""
    import numpy as np

    counts = np.random.default_rng(seed).binomial(16, rate, size=40)
    everything = {f"t{i}": Tally(attempts=16, faults=int(n), judged=16 - int(n)) for i, n in enumerate(counts)}
    assert sum(faulty(task, everything) is not None for task in everything) <= 1


def test_passes_beside_tampering_are_suspect() -> None:
    """Tampering that other tasks do not see, beside passes in the same batch, blames the reward of the task."""
    now = Tally(8, 0, 8, passed=4, tampered=4)
    found = hacked("bad", now, {"bad": now, "x": HEALTHY})
    assert found is not None
    assert found.rule == "reward"
    caught = replace(now, passed=0)
    assert hacked("bad", caught, {"bad": caught, "x": HEALTHY}) is None
    everywhere = replace(HEALTHY, tampered=80)
    assert hacked("bad", now, {"bad": now, "x": everywhere}) is None


@pytest.mark.parametrize(("weak", "suspect"), [(8, True), (5, True), (4, False), (0, False)])
def test_a_jump_is_suspect_only_on_weak_evidence(weak: int, suspect: bool) -> None:
    """A success rate that jumps blames the task where most passes are weaker than the gold; learning is no crime."""
    before, now = Tally(16, 0, 16, passed=1), Tally(8, 0, 8, passed=8, weak=weak)
    assert (hacked("t", now, {"t": before + now, "x": HEALTHY}) is not None) == suspect
    steady = replace(before, passed=12)
    assert hacked("t", now, {"t": steady + now, "x": HEALTHY}) is None


def test_a_person_who_finds_a_pass_wrong_is_believed() -> None:
    """A ruling against a pass blames its task once; rulings for passes, or against failures, blame nothing."""
    row = {"task": "t", "id": "a/0", "submission": "s", "reviewer": "kim", "reason": "prints the answer"}
    rows = [
        {**row, "ruling": "wrong", "outcome": "passed"},
        {**row, "ruling": "wrong", "outcome": "passed", "id": "a/1"},
        {**row, "task": "u", "ruling": "right", "outcome": "passed"},
        {**row, "task": "v", "ruling": "wrong", "outcome": "failed"},
    ]
    (found,) = ruled_wrong(rows)
    assert (found.task, found.rule) == ("t", "reward")
    assert "kim" in found.reason


def test_the_judge_is_blamed_unless_others_hold() -> None:
    """One task that deviates while others and the known canaries hold is to blame; otherwise it may be the judge."""
    assert blame(["bad"], ["x"], known_hold=True) == "tasks"
    assert blame(["bad"], ["x"], known_hold=False) == "judge"
    assert blame(["bad"], [], known_hold=True) == "judge"
    assert blame(["bad", "worse"], ["x"], known_hold=True) == "judge"
    lost = gold_lost("bad", ["bad (gold): expected passed"], again=False, holding=3)
    assert isinstance(lost, Suspicion)
    assert "only sometimes" in lost.reason


@given(n=st.integers(0, 40), p=st.floats(0, 1), data=st.data())
def test_binomial_tail(n: int, p: float, data: st.DataObject) -> None:
    """It is 1 at 0, falls with k, and both tails make 1."""
    k = data.draw(st.integers(0, n))
    tail = binomial_tail(k, n, p)
    assert binomial_tail(0, n, p) == pytest.approx(1.0)
    assert 0 <= tail <= 1
    below = math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k))
    assert tail + below == pytest.approx(1.0)


def test_no_number_of_attempts_is_too_large_for_the_tail() -> None:
    """Half of very many tosses of a coin are heads or more: a chance of one half, and half of that of just so many."""
    for n in (2_000, 100_000):
        assert binomial_tail(n // 2, n, 0.5) == pytest.approx(0.5 + 1 / math.sqrt(2 * math.pi * n), rel=1e-5)
    assert binomial_tail(1_500, 2_000, 0.01) == 0.0
