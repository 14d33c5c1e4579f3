"""Which tasks a batch holds."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from practicum.tasks.sampler import Outcome, choose

NAMES = [f"t{i}" for i in range(12)]
outcomes_of = st.lists(
    st.builds(Outcome, st.integers(0, 9), st.sampled_from(NAMES), st.sampled_from([0.0, 0.5, 1.0])), max_size=30
)


@given(outcomes=outcomes_of, batch=st.integers(0, 9), size=st.integers(1, 12), seed=st.integers(0, 3))
def test_a_batch_repeats_no_task(outcomes: list[Outcome], batch: int, size: int, seed: int) -> None:
    """As long as there are enough tasks, a batch holds each at most once."""
    chosen = choose(NAMES, outcomes, batch=batch, known_before=batch, size=size, seed=seed)
    assert len(chosen) == size == len(set(chosen))


@given(outcomes=outcomes_of, later=outcomes_of, batch=st.integers(0, 9), lag=st.integers(0, 2))
def test_later_outcomes_change_nothing(outcomes: list[Outcome], later: list[Outcome], batch: int, lag: int) -> None:
    """What an unbroken run could not know when it chose is not used by a resumed one either."""
    known = batch - lag
    more = outcomes + [outcome for outcome in later if outcome.batch >= known]
    first = choose(NAMES, outcomes, batch=batch, known_before=known, size=4, seed=1)
    assert choose(NAMES, more, batch=batch, known_before=known, size=4, seed=1) == first


def test_a_small_taskset_fills_a_batch() -> None:
    """With fewer tasks than places, tasks come round again."""
    assert Counter(choose(["a", "b"], [], batch=0, known_before=0, size=5, seed=0)).total() == 5


def test_solved_tasks_come_seldom_and_mixed_ones_often() -> None:
    """Over many batches, drawing follows what a task can still teach."""
    outcomes = [Outcome(0, "t0", 1.0), Outcome(0, "t1", 0.5), Outcome(0, "t2", 0.0), Outcome(1, "t3", 1.0)]
    drawn = Counter(
        name for batch in range(2, 800) for name in choose(NAMES, outcomes, batch=batch, known_before=2, size=3, seed=0)
    )
    assert 0 < drawn["t0"] < drawn["t2"] / 3
    assert drawn["t2"] < drawn["t1"]
    assert abs(drawn["t2"] - drawn["t4"]) < 60
