"""Exactly once."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.scheduling.emission import Emission, Emissions, ReportedTwice


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_every_unit_leaves_once_whatever_dies(seed: int) -> None:
    """With faults, cancellations, repeats and restarts, the consumer gets each dispatched unit exactly once."""
    source = random.Random(f"emit-{seed}")
    ledger, written = Emissions(), list[Emission]()
    consumed: dict[int, str] = {}  # by number: what is sent again after a restart is the same
    dispatched: list[str] = []

    def send(emission: Emission) -> None:
        assert consumed.setdefault(emission.sequence, emission.unit) == emission.unit

    for number in range(80):
        what = source.random()
        if what < 0.45 or not ledger.open:
            ledger.dispatch(f"u{number}")
            dispatched.append(f"u{number}")
        elif what < 0.9:
            unit = source.choice(ledger.open)
            emission = ledger.end(unit) if what < 0.7 else ledger.cancel(unit, "died")
            written.append(emission)
            if source.random() < 0.7:  # else the process dies between writing and sending
                send(emission)
            with pytest.raises(ReportedTwice, match=unit):
                ledger.end(unit)
        else:
            on_their_way = ledger.open
            source.shuffle(written)  # files need not come back in order
            ledger = Emissions(written)
            for emission in written:
                send(emission)
            for unit in on_their_way:
                ledger.dispatch(unit)  # taken up again
    written += ledger.cancel_rest("the run ended")
    for emission in written:
        send(emission)
    assert sorted(consumed.values()) == sorted(dispatched)
    assert sorted(emission.sequence for emission in written) == list(range(len(dispatched)))
    assert (ledger.open, ledger.left) == ((), len(dispatched))


def test_states_are_terminal() -> None:
    """A unit is on its way, then has left for good; unknown units and second reports are errors."""
    ledger = Emissions()
    ledger.dispatch("a")
    ledger.dispatch("b")
    assert ledger.of("a") is None
    assert ledger.end("a") == Emission("a", "ended", 0) == ledger.of("a")
    assert ledger.cancel_rest("stopped") == (Emission("b", "cancelled", 1, "stopped"),)
    with pytest.raises(ReportedTwice, match="b was reported twice: cancelled as number 1, now ended"):
        ledger.end("b")
    with pytest.raises(ReportedTwice, match="a was dispatched twice"):
        ledger.dispatch("a")
    with pytest.raises(KeyError):
        ledger.end("never")
    with pytest.raises(KeyError):
        ledger.of("never")


def test_a_record_with_a_gap_is_refused() -> None:
    """What was written before a restart is whole, or nobody knows what is missing."""
    with pytest.raises(ReportedTwice, match="number 1 comes next"):
        Emissions([Emission("a", "ended", 0), Emission("b", "ended", 2)])
    with pytest.raises(ReportedTwice):
        Emissions([Emission("a", "ended", 0), Emission("a", "ended", 1)])


def test_what_left_long_ago_takes_no_memory() -> None:
    """Only the latest are remembered; an older one still cannot be reported again, and numbers go on, also resumed."""
    ledger = Emissions(keep=2)
    for unit in "abcd":
        ledger.dispatch(unit)
        ledger.end(unit)
    with pytest.raises(KeyError):
        ledger.end("a")
    with pytest.raises(KeyError):
        ledger.of("b")
    latest = [ledger.of("c"), ledger.of("d")]
    assert latest == [Emission("c", "ended", 2), Emission("d", "ended", 3)]
    resumed = Emissions([emission for emission in latest if emission is not None])
    resumed.dispatch("e")
    assert (resumed.cancel("e", "stopped").sequence, resumed.left) == (4, 5)
