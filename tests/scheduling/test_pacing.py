"""Pacing by staleness."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.scheduling.pacing import StalenessGate


@given(st.integers(0, 8), st.integers(0, 1000), st.integers(0, 1000))
def test_a_batch_that_goes_is_never_too_old_when_trained(bound: int, batch: int, version: int) -> None:
    """Batch k is trained by the update from version k, so k − version is its age; the gate keeps that in bounds."""
    gate = StalenessGate(bound)
    assert gate.may_dispatch(batch, version) == (batch - version <= bound)
    assert gate.may_dispatch(batch, gate.needed_version(batch))
    assert gate.needed_version(batch) == 0 or not gate.may_dispatch(batch, gate.needed_version(batch) - 1)


@given(st.integers(0, 4), st.lists(st.booleans(), max_size=200))
def test_the_loop_never_stands_still(bound: int, choices: list[bool]) -> None:
    """In any interleaving of dispatching and updating, one of the two is always possible."""
    gate = StalenessGate(bound)
    dispatched = version = 0
    for prefer_dispatch in choices:
        can_dispatch, can_update = gate.may_dispatch(dispatched, version), version < dispatched
        assert can_dispatch or can_update
        if can_dispatch and (prefer_dispatch or not can_update):
            dispatched += 1
        else:
            version += 1
        assert dispatched - version <= bound + 1


def test_a_negative_bound_is_refused() -> None:
    """A bound under which nothing could ever be dispatched is an error at once."""
    with pytest.raises(ValueError, match="max_staleness"):
        StalenessGate(-1)
