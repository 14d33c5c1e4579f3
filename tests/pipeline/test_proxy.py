"""When a learnt model of rewards is no longer to be believed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from practicum.pipeline.proxy import Look, over_optimised

LOOKS = st.lists(st.tuples(st.floats(0, 1), st.floats(-3, 3)), max_size=8).map(
    lambda rows: [Look(update, gold, proxy) for update, (gold, proxy) in enumerate(rows)]
)


def looks(*rows: tuple[float, float]) -> list[Look]:
    return [Look(update, gold, proxy) for update, (gold, proxy) in enumerate(rows)]


def test_success_falls_while_opinion_rises() -> None:
    """Two looks in a row below the best with a higher opinion end the run; one of them does not."""
    rising = looks((0.4, 0.0), (0.6, 1.0), (0.5, 1.5), (0.4, 2.0))
    assert over_optimised(rising, fall=0.0, patience=2)
    assert not over_optimised(rising[:3], fall=0.0, patience=2)


def test_both_fall_or_both_rise() -> None:
    """A policy that gets worse in both eyes, or better in both, has not learnt to please the model."""
    assert not over_optimised(looks((0.6, 1.0), (0.5, 0.9), (0.4, 0.8)), fall=0.0, patience=2)
    assert not over_optimised(looks((0.4, 0.0), (0.5, 1.0), (0.6, 2.0)), fall=0.0, patience=2)


def test_a_small_fall_is_let_pass() -> None:
    """What falls by no more than `fall` has not fallen."""
    small = looks((0.60, 0.0), (0.58, 1.0), (0.57, 2.0))
    assert over_optimised(small, fall=0.0, patience=2)
    assert not over_optimised(small, fall=0.05, patience=2)


@given(LOOKS, st.integers(1, 3))
def test_the_best_look_is_never_the_end(found: list[Look], patience: int) -> None:
    """Where the last look is the best by execution, learning goes on."""
    if found and found[-1].gold == max(look.gold for look in found):
        assert not over_optimised(found, fall=0.0, patience=patience)
