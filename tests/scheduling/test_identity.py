"""Where the time went."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.scheduling.identity import STATES, Account, Clock, Crowd, Effective

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
    clock, crowd = Clock(time), Crowd(time)
    crowd.join("a", "act")
    for refused in (lambda: clock.enter("sleep"), lambda: crowd.enter("a", "wait_"), lambda: crowd.join("b", "x")):
        with pytest.raises(ValueError, match="is no state of a worker"):
            refused()
    time.now += 1
    assert (clock.account().seconds, crowd.leave("a").seconds, len(crowd)) == ({"idle": 1.0}, {"act": 1.0}, 0)
    with pytest.raises(ValueError, match="runs backwards"):
        Account({"act": -1.0})


def test_workers_together() -> None:
    """Merged accounts hold the seconds of all."""
    both = Account({"act": 1.0, "idle": 2.0}).merge([Account({"act": 3.0}), Account({"verify": 4.0})])
    assert both.seconds == {"act": 4.0, "idle": 2.0, "verify": 4.0}
    assert both.shares() == {"act": 0.4, "idle": 0.2, "verify": 0.4}
    assert Account().shares() == {}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_overlapping_episodes_sum_to_the_worker(seed: int) -> None:
    """Against a loop over small steps: each second is divided among who is there, or idle, and all sums agree."""
    source, time = random.Random(f"crowd-{seed}"), Time()
    crowd = Crowd(time)
    there: dict[str, str] = {}
    names = iter(range(1000))
    worker: dict[str, float] = {}
    episodes: dict[str, float] = {}
    for _ in range(60):
        what = source.random()
        if what < 0.3 or not there:
            name, state = str(next(names)), source.choice(["lease", "act"])
            crowd.join(name, state)
            there[name] = state
        elif what < 0.75:
            name = source.choice(sorted(there))
            there[name] = source.choice(["act", "generate", "wait_verify"])
            crowd.enter(name, there[name])
        else:
            name = source.choice(sorted(there))
            crowd.leave(name)
            del there[name]
        step = source.choice([0.0, 0.5, 3.0])
        time.now += step
        for state in there.values():
            episodes[state] = episodes.get(state, 0.0) + step
            worker[state] = worker.get(state, 0.0) + step / len(there)
        if not there:
            worker["idle"] = worker.get("idle", 0.0) + step
    for account, expected in ((crowd.worker(), worker), (crowd.episodes(), episodes)):
        for state, seconds in expected.items():
            assert account.seconds.get(state, 0.0) == pytest.approx(seconds, abs=1e-9)
    assert crowd.worker().total_s == pytest.approx(time.now - 100)
    if time.now > 100:
        assert sum(crowd.worker().shares().values()) == pytest.approx(1, abs=1e-12)


def test_what_was_thrown_away_is_retry() -> None:
    """An attempt that begins anew leaves its seconds as `retry`; what comes after is counted as what it is."""
    time = Time()
    crowd = Crowd(time)
    crowd.join("a", "act")
    time.now += 4
    crowd.waste("a")
    time.now += 1
    crowd.enter("a", "verify")
    time.now += 2
    with pytest.raises(ValueError, match="a is there already"):
        crowd.join("a", "act")
    assert crowd.episodes().seconds == {"act": 1.0, "retry": 4.0, "verify": 2.0}
    assert crowd.leave("a").seconds == {"retry": 4.0, "act": 1.0, "verify": 2.0}
    with pytest.raises(KeyError):
        crowd.leave("a")


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
