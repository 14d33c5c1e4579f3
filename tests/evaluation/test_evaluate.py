"""From trajectories to rates: what was not judged is never a failure."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.evaluation.evaluate import compare, pass_at, summarise
from practicum.evaluation.statistics import mcnemar_exact, wilson
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Verdict

End = Literal["passed", "failed", "tampered", "invalid", "unscorable", "fault", "cancelled"]


def attempt(task: str, end: End, digest: str = "d") -> Trajectory:
    verdict: Verdict | None = None
    fault: Fault | None = None
    if end == "passed":
        verdict = Verdict("valid", "passed", 1.0)
    elif end in ("failed", "tampered"):
        verdict = Verdict("valid", "failed" if end == "failed" else "tampered", -1.0)
    elif end in ("invalid", "unscorable"):
        verdict = Verdict("invalid" if end == "invalid" else "unscorable", None, None, reason="x")
    if end in ("unscorable", "fault", "cancelled"):
        fault = Fault("VerifierError", "x")
    stop: Literal["cancelled", "submitted"] = "cancelled" if end == "cancelled" else "submitted"
    return Trajectory("id", "g", task, digest, (), stop, fault, None, verdict)


def test_the_summary_has_exactly_the_promised_keys() -> None:
    """`practicum eval --json` prints this and scripts read it."""
    result = summarise([attempt("a", "passed"), attempt("b", "failed"), attempt("c", "fault"), attempt("d", "invalid")])
    low, high = wilson(1, 2)
    assert json.loads(json.dumps(result.to_json())) == {
        "tasks": 4,
        "samples": 2,
        "passed": 1,
        "rate": 0.5,
        "low": low,
        "high": high,
        "unscorable": 1,
        "invalid": 1,
    }


ends = st.sampled_from(["passed", "failed", "tampered", "invalid", "unscorable", "fault", "cancelled"])


@given(st.lists(st.tuples(st.sampled_from("abc"), ends)))
def test_every_attempt_is_counted_once(rows: list[tuple[str, End]]) -> None:
    """Judged, unscorable and invalid attempts add up to all, and the rate is over the judged alone."""
    result = summarise([attempt(task, end) for task, end in rows])
    assert result.samples + result.unscorable + result.invalid == len(rows)
    assert result.samples == sum(end in ("passed", "failed", "tampered") for _, end in rows)
    assert result.passed == sum(end == "passed" for _, end in rows)
    assert result.low <= result.rate <= result.high
    if result.samples:
        assert result.rate == result.passed / result.samples


def test_nothing_judged_says_nothing() -> None:
    """A run in which every box died is not a run that failed every task."""
    result = summarise([attempt("a", "fault")] * 3)
    assert (result.samples, result.low, result.high, result.unscorable) == (0, 0.0, 1.0, 3)
    assert {result.to_json()[name] for name in ("rate", "low", "high")} == {None}


def test_a_comparison_pairs_by_task() -> None:
    """Only tasks judged on both sides count, in any order; a changed task is another task."""
    before = [attempt(name, "failed") for name in "abcdefgh"]
    after = [attempt(name, "passed") for name in "hgfedcb"] + [attempt("a", "fault"), attempt("h", "passed", "other")]
    difference = compare(before, after)
    assert (difference.n, difference.difference, difference.gained, difference.lost) == (7, 1.0, 7, 0)
    assert difference.unpaired == 2
    assert difference.p_value == pytest.approx(mcnemar_exact(7, 0))
    assert 0 < difference.low < 1 == difference.high


def test_a_comparison_of_a_policy_with_itself_finds_nothing() -> None:
    """No difference, an interval around zero, p = 1."""
    rows = [attempt(str(i), "passed" if i % 3 else "failed") for i in range(30)]
    difference = compare(rows, rows)
    assert (difference.difference, difference.p_value) == (0.0, 1.0)
    assert difference.low < 0 < difference.high


def test_repeated_samples_are_averaged_by_task() -> None:
    """A task with four samples weighs as much as one with two."""
    before = [attempt("a", "failed")] * 4 + [attempt("b", "failed")] * 2
    after = [attempt("a", "passed")] * 4 + [attempt("b", "passed"), attempt("b", "failed")]
    difference = compare(before, after)
    assert (difference.after, difference.difference, difference.gained) == (0.75, 0.75, 2)
    assert difference.p_value == 0.5


def test_comparing_what_has_nothing_in_common_is_an_error() -> None:
    """An empty comparison is not a zero difference."""
    with pytest.raises(ValueError, match="both sides"):
        compare([attempt("a", "passed")], [attempt("b", "passed")])


def test_pass_at_k_is_a_mean_over_tasks() -> None:
    """Unjudged attempts are left out, and a task with too few judged ones is an error."""
    rows = [attempt("a", "passed"), attempt("a", "failed"), attempt("a", "fault"), *[attempt("b", "failed")] * 2]
    assert pass_at(rows, 1) == 0.25
    assert pass_at(rows, 2) == 0.5
    with pytest.raises(ValueError, match="pass@3"):
        pass_at(rows, 3)
