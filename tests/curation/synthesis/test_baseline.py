"""Which tests are chosen, by what they reach and take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.projects.steadiness import Survey
from practicum.curation.projects.suiterun import SuiteRun
from practicum.curation.synthesis.baseline import Baseline, baseline_of

IDS = [f"t.py::test_{letter}[{case}]" for letter in "abc" for case in range(4)]


def baseline(seconds: dict[str, float]) -> Baseline:
    return Baseline(frozenset(seconds), {}, 0.0, seconds, {})


@given(
    st.dictionaries(st.sampled_from(IDS), st.floats(0, 2), min_size=1), st.floats(0, 3), st.integers(1, 12)
)  # fmt: skip
def test_chosen_tests_keep_to_their_time(seconds: dict[str, float], budget: float, most: int) -> None:
    """At least one test is chosen, at most as many as allowed, and more than one only within the time."""
    ids = sorted(seconds)
    for choose in (baseline(seconds).within, baseline(seconds).spread):
        chosen = choose(ids, budget, most)
        assert 1 <= len(chosen) <= most
        assert set(chosen) <= set(ids)
        assert len(chosen) == 1 or sum(seconds[name] for name in chosen) <= budget + 1e-9


def test_functions_have_turns() -> None:
    """No function has two cases among the chosen tests while another has none."""
    chosen = baseline(dict.fromkeys(IDS, 0.01)).spread(IDS, 1.0, 4)
    assert {name.partition("[")[0] for name in chosen} == {"t.py::test_a", "t.py::test_b", "t.py::test_c"}


def test_noise_decides_little() -> None:
    """Tests whose times differ by less than a hundredth of a second come by name."""
    assert baseline({"b": 0.0012, "a": 0.0034, "c": 0.5}).fastest_first(["c", "b", "a"]) == ("a", "b", "c")


def test_reach_is_of_steady_tests() -> None:
    """Lines are known by the steady tests that ran them; what others ran counts as not covered."""
    covered = {"t::a": {"m.py": frozenset({1, 2})}, "t::b": {"m.py": frozenset({2, 3})}, "": {"m.py": frozenset({9})}}
    run = SuiteRun({"t::a": "passed", "t::b": "failed"}, {"t::a": 0.1}, {}, covered, seconds_all=0.5)
    found = baseline_of(Survey(("t::a",), {"t::b": "failed"}, {"t::a": 0.1}, (run, run, run)))
    assert found.reaching({"m.py": [2, 3]}) == ("t::a",)
    assert not found.covers("m.py", 3)
    assert not found.covers("m.py", 9)
    assert round(found.overhead_s, 3) == 0.4
