"""Learning rates by step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.training.schedules import linear, warmup_cosine


@given(st.integers(1, 200), st.integers(0, 50), st.floats(1e-6, 1.0), st.data())
def test_warmup_cosine_stays_within_bounds(steps: int, warmup: int, peak: float, data: st.DataObject) -> None:
    """The rate is above 0, never above the peak, and after the rise it only falls."""
    step = data.draw(st.integers(0, steps))
    rate = warmup_cosine(step, steps, peak=peak, warmup=warmup)
    assert 0 < rate <= peak * (1 + 1e-12)
    if step >= warmup:
        assert warmup_cosine(step + 1, steps, peak=peak, warmup=warmup) <= rate


def test_warmup_cosine_by_hand() -> None:
    """It rises in equal parts, is halfway between peak and floor in the middle, and ends at the floor."""
    assert [warmup_cosine(s, 1_000_000, peak=1.0, warmup=4) for s in range(4)] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert warmup_cosine(50, 100, peak=2.0, warmup=0, floor=0.0) == pytest.approx(1.0)
    assert warmup_cosine(100, 100, peak=2.0, warmup=0, floor=0.1) == pytest.approx(0.2)


def test_linear_by_hand() -> None:
    """The first step has the first rate, the last the last, and those between are evenly spaced."""
    assert [linear(s, 5, first=1.0, last=0.0) for s in range(6)] == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0, 0.0])
    assert [linear(s, 5, first=1.0, last=1.0, warmup=2) for s in range(3)] == pytest.approx([0.5, 1.0, 1.0])
    assert linear(0, 1, first=1.0, last=0.5) == 1.0
