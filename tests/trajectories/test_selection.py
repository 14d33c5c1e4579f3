"""Which stored attempts may be imitated or told apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.verdict import Finding, Verdict
from practicum.trajectories.selection import pair_row, pairs, said, sft_row, successes


def attempt(name: str, task: str, text: str, *, passed: bool, fault: bool = False, tamper: bool = False) -> Trajectory:
    turns = tuple(
        Turn(i, (1,), (2,), (-1.0,), 3, "stop", said, Action("bash"), f"saw {i}", "a", "b")
        for i, said in enumerate((text, "<submit>"))
    )
    findings = (Finding("tests_touched", "check.py", "changed", "tamper"),) if tamper else ()
    verdict = Verdict(
        "valid", "passed" if passed else "failed", float(passed), findings=findings, verifier_version="v1"
    )
    broken = Fault("SandboxDied", "gone") if fault else None
    return Trajectory(name, f"group-{task}", task, f"digest-{task}", turns, "submitted", broken, None, verdict)


ATTEMPTS = st.lists(
    st.builds(
        attempt,
        st.uuids().map(str),
        st.sampled_from("abc"),
        st.sampled_from(["one", "two", "three"]),
        passed=st.booleans(),
        fault=st.booleans(),
        tamper=st.booleans(),
    ),
    max_size=24,
)


@given(ATTEMPTS)
def test_only_honest_judged_successes_are_imitated(attempts: list[Trajectory]) -> None:
    """A success to imitate was judged, has no fault and no finding of tampering, and says something new at its task."""
    found = successes(attempts)
    assert all(t.passed and t.fault is None and t.verdict and not t.verdict.findings for t in found)
    assert len({(t.task_id, said(t)) for t in found}) == len(found)


@given(ATTEMPTS, st.integers(1, 5))
def test_pairs_are_of_one_task_and_differ(attempts: list[Trajectory], most: int) -> None:
    """A pair is a success and a failure at one task that say different things; no task gives more than `most`."""
    found = pairs(attempts, most=most)
    for pair in found:
        assert pair.chosen.task_id == pair.rejected.task_id
        assert pair.chosen.passed
        assert not pair.rejected.passed
        assert pair.chosen.fault is None
        assert pair.rejected.fault is None
        assert said(pair.chosen) != said(pair.rejected)
    for task in "abc":
        assert sum(pair.chosen.task_id == task for pair in found) <= most
    assert pairs(attempts, most=most) == found


def test_every_attempt_is_paired_before_any_twice() -> None:
    """Three failures beside one success are three pairs, each with a failure of its own."""
    failures = [attempt(f"f{i}", "a", f"wrong {i}", passed=False) for i in range(3)]
    found = pairs([attempt("s", "a", "right", passed=True), *failures])
    assert sorted(pair.rejected.id for pair in found) == ["f0", "f1", "f2"]


def test_a_tampered_success_is_on_neither_side() -> None:
    """A pass that was tampered for is no success, and no failure to be told from one either."""
    found = pairs([attempt("s", "a", "cheat", passed=True, tamper=True), attempt("f", "a", "wrong", passed=False)])
    assert found == []


def test_rows_are_conversations() -> None:
    """A row holds what was asked, said and seen, ends with what was said, and names its origin."""
    right, wrong = attempt("s", "a", "right", passed=True), attempt("f", "a", "wrong", passed=False)
    row = sft_row(right, "do it")
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "user", "assistant"]
    assert [message["content"] for message in row["messages"]] == ["do it", "right", "saw 0", "<submit>"]
    assert (row["trajectory"], row["verifier"], row["policy_version"], row["reward"]) == ("s", "v1", 3, 1.0)
    (pair,) = pairs([right, wrong])
    both = pair_row(pair, "do it")
    assert both["prompt"] == [{"role": "user", "content": "do it"}]
    assert both["chosen"][0]["content"] == "right"
    assert both["rejected"][0]["content"] == "wrong"
    assert (both["chosen_trajectory"], both["rejected_trajectory"], both["task"]) == ("s", "f", "a")
