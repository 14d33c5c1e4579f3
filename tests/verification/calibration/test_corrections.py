"""Corrected rewards: right on average, never out of order, never where nothing was decided."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from practicum.records.verdict import Verdict, default_reward
from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.corrections import FAILED, PASSED, TAMPERED, Form, corrected_reward, decision
from practicum.verification.calibration.noise import Evidence, NoiseEstimate, estimate

N = 1000
noise = st.tuples(st.integers(0, N), st.integers(0, N)).filter(lambda counts: sum(counts) < N)
forms = st.sampled_from(["backward", "forward"])


def found(false_positives: int, false_negatives: int) -> NoiseEstimate:
    return estimate("t", "d", Evidence(Rate(false_positives, N), Rate(false_negatives, N)))


def valid(outcome: str, share: float = 0.5) -> Verdict:
    return Verdict("valid", outcome, default_reward(outcome, newly_passed=round(share * 100), total=100))  # type: ignore[arg-type]


def value(verdict: Verdict, form: Form, known: NoiseEstimate) -> float:
    corrected = corrected_reward(verdict, form, known)
    assert corrected is not None
    return corrected.value


@given(noise)
def test_backward_is_unbiased(counts: tuple[int, int]) -> None:
    """The mean of the corrected decision is the truth; and so is that of the reward where nothing is cut."""
    rho0, rho1 = counts[0] / N, counts[1] / N
    accepted, rejected = decision(True, "backward", rho0, rho1), decision(False, "backward", rho0, rho1)
    scale = 1 / (1 - rho0 - rho1)
    assert (1 - rho1) * accepted + rho1 * rejected == pytest.approx(1.0, abs=1e-9 * scale)
    assert rho0 * accepted + (1 - rho0) * rejected == pytest.approx(0.0, abs=1e-9 * scale)
    lost = corrected_reward(valid("failed"), "backward", found(*counts))
    assert lost is not None
    assume(not lost.clipped)
    won = value(valid("passed"), "backward", found(*counts))
    assert (1 - rho1) * won + rho1 * lost.value == pytest.approx(PASSED, abs=1e-9 * scale)
    assert rho0 * won + (1 - rho0) * lost.value == pytest.approx(FAILED, abs=1e-9 * scale)


@given(noise)
def test_forward_is_the_truth_up_to_scale(counts: tuple[int, int]) -> None:
    """The mean of the forward form is 1 for a right attempt, and lower by J for a wrong one."""
    rho0, rho1 = counts[0] / N, counts[1] / N
    accepted, rejected = decision(True, "forward", rho0, rho1), decision(False, "forward", rho0, rho1)
    assert (1 - rho1) * accepted + rho1 * rejected == pytest.approx(1.0)
    assert rho0 * accepted + (1 - rho0) * rejected == pytest.approx(1.0 - (1 - rho0 - rho1))


@given(noise, forms, st.floats(0.01, 0.99))
def test_order_is_kept(counts: tuple[int, int], form: Form, share: float) -> None:
    """Whatever the noise: passed beats partial, partial is no worse than failed, and nothing is below tampering."""
    known = found(*counts)
    won, partial = value(valid("passed"), form, known), value(valid("partial", share), form, known)
    lost, broken = value(valid("failed"), form, known), value(valid("build_failed"), form, known)
    assert won > partial >= lost >= broken >= value(valid("tampered"), form, known) == TAMPERED


@given(noise, forms)
def test_what_failed_validity_or_integrity_is_left_alone(counts: tuple[int, int], form: Form) -> None:
    """A verdict without a number gets none, and tampering keeps its own."""
    assert corrected_reward(Verdict("invalid", None, None), form, found(*counts)) is None
    assert corrected_reward(Verdict("unscorable", None, None), form, None) is None
    assert value(valid("tampered"), form, found(*counts)) == TAMPERED


def test_no_noise_changes_nothing() -> None:
    """With error rates of 0, and with the form `none`, every reward is as it was."""
    for outcome in ("passed", "partial", "failed", "build_failed", "tampered"):
        for form in ("none", "backward", "forward"):
            verdict = valid(outcome)
            assert value(verdict, form, found(0, 0)) == pytest.approx(verdict.reward)


def test_rates_without_meaning_are_refused() -> None:
    """Where J is not above 0, or no rates are known, there is no correction."""
    for known in (found(600, 400), None):
        with pytest.raises(ValueError, match="J above 0"):
            corrected_reward(valid("passed"), "backward", known)
