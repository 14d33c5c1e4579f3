"""Where the time went."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.scheduling.identity import STATES, Account, Clock, Effective

states = st.sampled_from(sorted(STATES | {"wait_box", "wait_permit"}))
steps = st.floats(0, 1e4)


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(states, steps), max_size=40))
def test_a_worker_is_always_somewhere(path: list[tuple[str, float]]) -> None:
    """Seconds by state are those spent there, sum to all that passed, and the shares sum to 1."""
    time, expected = Time(), dict[str, float]()
    clock = Clock(time)
    for state, seconds in path:
        expected[clock.state] = expected.get(clock.state, 0.0)
        clock.enter(state)
        time.now += seconds
        expected[state] = expected.get(state, 0.0) + seconds
    account = clock.account()
    assert account.total_s == pytest.approx(time.now - 100, rel=1e-9)
    for state, seconds in expected.items():
        assert account.seconds[state] == pytest.approx(seconds, rel=1e-9, abs=1e-9)
    if account.total_s:
        assert sum(account.shares().values()) == pytest.approx(1, abs=1e-12)
        assert json.loads(json.dumps(account.to_json()))["shares"] == account.shares()


def test_blocks_within_blocks() -> None:
    """After a block the worker is again where it was, also when the block raised; no second is counted twice."""
    time = Time()
    clock = Clock(time)

    def fail() -> None:
        with clock.during("update"):
            time.now += 2
            with clock.during("weight_sync"):
                time.now += 3
            time.now += 4
            raise ArithmeticError

    time.now += 1
    with pytest.raises(ArithmeticError):
        fail()
    time.now += 5
    assert clock.account().seconds == {"idle": 6.0, "update": 6.0, "weight_sync": 3.0}


def test_a_state_that_is_none_changes_nothing() -> None:
    """Unknown states are refused by name before any time is booked; negative time is, too."""
    time = Time()
    clock = Clock(time)
    for unknown in ("sleep", "wait_"):
        with pytest.raises(ValueError, match="is no state of a worker"):
            clock.enter(unknown)
    time.now += 1
    assert clock.account().seconds == {"idle": 1.0}
    with pytest.raises(ValueError, match="runs backwards"):
        Account({"act": -1.0})


def test_workers_together() -> None:
    """Merged accounts hold the seconds of all."""
    both = Account({"act": 1.0, "idle": 2.0}).merge([Account({"act": 3.0}), Account({"verify": 4.0})])
    assert both.seconds == {"act": 4.0, "idle": 2.0, "verify": 4.0}
    assert both.shares() == {"act": 0.4, "idle": 0.2, "verify": 0.4}
    assert Account().shares() == {}


def test_the_effective_share() -> None:
    """What ended in training, of all, and why the rest did not."""
    tokens = Effective()
    assert tokens.share is None
    tokens.add(600)
    tokens.add(300, lost="masked")
    tokens.add(100, lost="retry")
    assert tokens.to_json() == {"trained": 600, "lost": {"masked": 300, "retry": 100}, "share": 0.6}
    with pytest.raises(ValueError, match="negative"):
        tokens.add(-1)
