"""Estimates of noise, and who may train on them."""

from __future__ import annotations

import json

import pytest

from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.noise import Evidence, estimate, read_estimate, use_problem
from practicum.verification.calibration.posterior import Rulings, posterior


def trials(false_positives: int, false_negatives: int, n: int) -> Evidence:
    return Evidence(Rate(false_positives, n), Rate(false_negatives, n), Rate(0, 1), Rate(0, 1))


def test_lower_bound_of_youden() -> None:
    """J's lower bound takes both rates at their upper bounds, rises with clean trials and falls with errors."""
    bounds = [estimate("t", "d", trials(0, 0, n)).youden_low for n in (1, 5, 20, 100)]
    assert bounds == sorted(bounds)
    assert bounds[0] < 0 < bounds[-1] < 1
    clean, flaky = estimate("t", "d", trials(0, 0, 20)), estimate("t", "d", trials(0, 5, 20))
    assert clean.youden == 1.0
    assert flaky.youden == 0.75
    assert flaky.youden_low < clean.youden_low


def test_a_noisy_task_is_refused_with_its_numbers() -> None:
    """A task trains only where J's lower bound is above the threshold; a refusal gives rates and trials."""
    assert use_problem(estimate("t", "d", trials(0, 0, 20)), min_youden=0.2) is None
    why = use_problem(estimate("t", "d", trials(2, 9, 20)), min_youden=0.2)
    assert why is not None
    assert "false positives 10.0%" in why
    assert "false negatives 45.0%" in why
    assert "20 trials" in why
    unknown = use_problem(None, min_youden=0.2)
    assert unknown is not None
    assert "never measured" in unknown


def test_estimates_survive_being_written() -> None:
    """An estimate reads back equal from its JSON, with and without rulings."""
    for rulings in (Rulings(), Rulings(3, 1, 2, 0)):
        evidence = Evidence(Rate(1, 9), Rate(0, 9), Rate(1, 2), Rate(0, 1), 2, 30, 20, rulings)
        found = estimate("t", "d", evidence)
        assert read_estimate(json.loads(json.dumps(found.to_json()))) == found


def test_rulings_move_the_estimate_the_right_way() -> None:
    """Accepted attempts ruled wrong raise the false-positive rate, confirmed ones lower it; rejected ones alike."""

    def rates(rulings: Rulings) -> tuple[float, float]:
        found = posterior(Rate(), Rate(), rulings, passed=40, failed=60)
        return found.false_positive.value, found.false_negative.value

    bad, good = rates(Rulings(passed_right=2, passed_wrong=8)), rates(Rulings(passed_right=10))
    assert bad[0] > good[0] + 0.1
    bad, good = rates(Rulings(failed_right=2, failed_wrong=8)), rates(Rulings(failed_right=10))
    assert bad[1] > good[1] + 0.1


def test_rulings_on_a_chosen_sample_are_not_taken_for_the_rate() -> None:
    """Ruling on accepted attempts only, all of them wrong, does not make every wrong attempt accepted."""
    found = posterior(Rate(), Rate(), Rulings(passed_wrong=2, failed_right=20), passed=2, failed=200)
    assert found.false_positive.high < 0.1
    many = posterior(Rate(), Rate(), Rulings(passed_wrong=20, failed_right=20), passed=100, failed=100)
    assert many.false_positive.low > 0.3


def test_the_posterior_finds_the_truth() -> None:
    """With many rulings, the bounds hold the rates that the counts were made from, and are narrow."""
    rho0, rho1, share, n = 0.1, 0.2, 0.5, 2000
    passed_right, passed_wrong = round(n * share * (1 - rho1)), round(n * (1 - share) * rho0)
    failed_right, failed_wrong = round(n * (1 - share) * (1 - rho0)), round(n * share * rho1)
    rulings = Rulings(passed_right, passed_wrong, failed_right, failed_wrong)
    found = posterior(Rate(), Rate(), rulings, passed=passed_right + passed_wrong, failed=failed_right + failed_wrong)
    for bounded, truth in ((found.false_positive, rho0), (found.false_negative, rho1)):
        assert bounded.low <= truth <= bounded.high
        assert bounded.value == pytest.approx(truth, abs=0.01)
    assert found.youden.low <= 1 - rho0 - rho1
