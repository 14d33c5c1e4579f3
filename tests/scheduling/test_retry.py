"""Delays between tries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.scheduling.retry import Backoff

backoffs = st.builds(
    Backoff,
    tries=st.integers(1, 12),
    first_s=st.floats(0, 10),
    factor=st.floats(1, 4),
    longest_s=st.floats(0, 30),
    jitter=st.floats(0, 1),
)


@given(backoffs, st.integers())
def test_delays_are_bounded_and_repeatable(backoff: Backoff, seed: int) -> None:
    """As many delays as there are further tries, each within its bounds, the same for the same seed."""
    delays = list(backoff.delays(seed))
    assert len(delays) == backoff.tries - 1
    assert delays == list(backoff.delays(seed))
    for index, delay in enumerate(delays):
        ceiling = min(backoff.longest_s, backoff.first_s * backoff.factor**index)
        assert ceiling * (1 - backoff.jitter) - 1e-9 <= delay <= ceiling + 1e-9


def test_those_who_failed_together_do_not_return_together() -> None:
    """Different seeds give different delays."""
    assert len({tuple(Backoff().delays(seed)) for seed in range(20)}) == 20


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"factor": 0.5}, {"jitter": 2.0}, {"first_s": -1.0}])
def test_what_is_no_backoff_is_refused(wrong: dict[str, float]) -> None:
    """A backoff that could not end, or would wait negative times, is an error at once."""
    with pytest.raises(ValueError, match="is not a backoff"):
        Backoff(**wrong)  # type: ignore[arg-type]
