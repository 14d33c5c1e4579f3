"""Adaptive concurrency: bounds, growth on fresh calm signals only, a fall in overload, recovery."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from practicum.scheduling.concurrency import Bounds, Concurrency, Decision, Signals

CALM = Signals(in_use=0, cache_use=0.3, engine_running=10, engine_queue=0, cpu_pressure=0.1, verify_backlog=0.5)
OVERLOADS: dict[str, dict[str, float]] = {
    "cache": {"cache_use": 0.95},
    "preemption": {"preemptions": 2},
    "creation": {"create_p95_s": 30.0},
    "failed creation": {"create_failed": 0.5},
    "load": {"load_per_core": 40.0},
    "memory": {"memory_pressure": 0.5},
    "io": {"io_pressure": 0.9},
    "pids": {"pids_free": 0.01},
    "disk": {"disk_free": 0.01},
    "no-op": {"noop_p95_s": 5.0},
    "verification": {"verify_backlog": 9.0},
    "queue": {"engine_running": 10, "engine_queue": 40},
}
overloads = st.sampled_from(sorted(OVERLOADS))
share = st.none() | st.floats(0, 1)
any_signals = st.builds(
    Signals,
    in_use=st.integers(0, 300),
    ended=st.integers(0, 300),
    age_s=st.floats(0, 30),
    engine_running=st.none() | st.integers(0, 100),
    engine_queue=st.none() | st.integers(0, 100),
    cache_use=share,
    preemptions=st.none() | st.integers(0, 2),
    create_p95_s=st.none() | st.floats(0, 20),
    create_failed=share,
    cpu_pressure=share,
    memory_pressure=share,
    verify_backlog=st.none() | st.floats(0, 10),
)


def signals(**given_ones: float) -> Signals:
    return replace(CALM, **given_ones)  # type: ignore[arg-type]


class ConcurrencyMachine(RuleBasedStateMachine):
    """Any samples in any order."""

    @initialize(lowest=st.integers(1, 5), more=st.integers(0, 200), cap=st.integers(0, 300))
    def begin(self, lowest: int, more: int, cap: int) -> None:
        self.bounds = Bounds(lowest=lowest, highest=lowest + more)
        self.machine = Concurrency(self.bounds, cap=cap)
        self.machine.decide(signals(create_p95_s=0.5, noop_p95_s=0.01))  # so that it knows what is usual

    def judge(self, sample: Signals, decision: Decision) -> None:
        assert decision.cap == self.machine.cap
        assert decision.reason
        assert 0 <= decision.park <= sample.in_use
        if decision.change == "grew":
            assert sample.age_s <= self.bounds.stale_s
            assert sample.in_use >= 0.9 * decision.before
            assert decision.cap <= max(decision.before + 1, decision.before * 1.25 + 1)
            assert not sample.preemptions
            assert (sample.cache_use or 0) < 0.6

    @rule(sample=any_signals)
    def anything(self, sample: Signals) -> None:
        self.judge(sample, self.machine.decide(sample))

    @rule(how=overloads, stuck=st.booleans())
    def overload(self, how: str, stuck: bool) -> None:
        """Samples of one overload, while what is in flight leaves at once or not at all."""
        in_use = self.machine.cap + 10
        for _ in range(3):
            fallen = 0
            for _ in range(self.bounds.patience):
                decision = self.machine.decide(signals(in_use=in_use, ended=500, **OVERLOADS[how]))
                assert decision.change != "grew"
                fallen += decision.change == "fell"
                if not stuck:
                    in_use = min(in_use, decision.cap)
            assert fallen or self.machine.cap == self.bounds.lowest

    @rule()
    def stale(self) -> None:
        decision = self.machine.decide(signals(in_use=self.machine.cap, ended=1000, age_s=16))
        assert decision.change == "kept"

    @rule()
    def nothing_measured(self) -> None:
        decision = self.machine.decide(Signals(in_use=self.machine.cap, ended=1000))
        assert decision.change == "kept"

    @invariant()
    def within_bounds(self) -> None:
        if hasattr(self, "bounds"):
            assert self.bounds.lowest <= self.machine.cap <= self.bounds.highest

    def teardown(self) -> None:
        """With calm signals and all permits in use it is back at the highest."""
        if not hasattr(self, "bounds"):
            return
        for _ in range(150):
            cap = self.machine.cap
            self.machine.decide(signals(in_use=cap, ended=cap))
        assert self.machine.cap == self.bounds.highest


TestConcurrency = ConcurrencyMachine.TestCase
TestConcurrency.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize("how", sorted(OVERLOADS))
def test_each_signal_alone_brings_the_cap_down(how: str) -> None:
    """One signal in overload is enough, within `patience` samples, and the reason says which."""
    machine = Concurrency(Bounds(highest=200), cap=100)
    machine.decide(signals(create_p95_s=0.5, noop_p95_s=0.01))
    decisions = [machine.decide(signals(in_use=100, **OVERLOADS[how])) for _ in range(machine.bounds.patience)]
    fell = next(decision for decision in decisions if decision.change == "fell")
    words = {"queue": "queued", "creation": "create", "no-op": "do nothing", "verification": "verifier", "io": "disk"}
    words |= {
        "failed creation": "could not be created",
        "preemption": "preempted",
        "load": "core",
        "pids": "process id",
    }
    assert words.get(how, how) in fell.reason
    assert 50 <= fell.cap < 100


def test_growth_slows_at_the_level_of_the_last_overload() -> None:
    """By a quarter per turnover up to where it was too much, by a twentieth from there on."""
    machine = Concurrency(Bounds(highest=1000), cap=100)
    machine.decide(signals(in_use=100, preemptions=1))
    assert (machine.cap, machine.ceiling) == (80, 100)
    caps = []
    for _ in range(4):
        machine.decide(signals(in_use=machine.cap, ended=machine.cap))
        caps.append(machine.cap)
    assert caps == [100, 105, 110, 115]


def test_busy_cores_are_no_overload() -> None:
    """A host that is never idle takes no more, and loses nothing: many tasks for each core are too much."""
    machine = Concurrency(Bounds(), cap=100)
    assert machine.decide(signals(in_use=100, ended=100, cpu_pressure=1.0, load_per_core=3.0)).change == "kept"
    assert machine.decide(signals(in_use=100, ended=100, cpu_pressure=0.5, load_per_core=3.0)).change == "grew"


def test_growth_waits_for_a_turnover() -> None:
    """As many must have ended as are allowed before more are, so that each step shows its effect first."""
    machine = Concurrency(Bounds(highest=1000), cap=10)
    decisions = [machine.decide(signals(in_use=10, ended=4)) for _ in range(4)]
    assert [decision.cap for decision in decisions] == [10, 10, 13, 13]
    assert decisions[0].reason == "4 of 10 ended since the cap last changed"
    assert machine.decide(signals(in_use=5, ended=50)).reason == "5 of 13 are used"


def test_one_overload_is_not_answered_twice() -> None:
    """While what was cut is still leaving, the cap stays; when it has left and nothing is better, it falls again."""
    machine = Concurrency(Bounds(), cap=100)
    caps = [machine.decide(signals(in_use=in_use, preemptions=1)).cap for in_use in (100, 95, 90, 80)]
    assert caps == [80, 80, 80, 64]


def test_a_nearly_full_cache_is_drained_without_loss() -> None:
    """From 80 % on who leaves is not replaced, until 70 %; above 90 % the youngest are to give way."""
    machine = Concurrency(Bounds(), cap=100)
    first = machine.decide(signals(in_use=100, cache_use=0.85))
    assert (first.cap, first.park) == (95, 0)
    assert machine.decide(signals(in_use=95, cache_use=0.75)).cap == 90
    assert machine.decide(signals(in_use=90, cache_use=0.65, ended=200)).change == "kept"
    overfull = machine.decide(signals(in_use=90, cache_use=1.0))
    assert overfull.park == 18


def test_a_queue_that_comes_again_halves() -> None:
    """A long queue for six samples takes a tenth off; when six more do not help, half."""
    machine = Concurrency(Bounds(), cap=100)
    caps = [machine.decide(signals(in_use=machine.cap, engine_running=10, engine_queue=6)).cap for _ in range(12)]
    assert caps == [100] * 5 + [90] * 6 + [45]


def test_slow_is_what_is_slower_than_usual() -> None:
    """A plant whose boxes take 20 s is not overloaded by that; one where they took 3 s is; 1 s never is too much."""
    always, lately, quick = (Concurrency(Bounds(), cap=100) for _ in range(3))
    assert always.decide(signals(in_use=100, ended=100, create_p95_s=20.0)).change == "grew"
    assert always.decide(signals(in_use=125, ended=200, create_p95_s=39.0)).change == "grew"
    assert always.decide(signals(in_use=157, ended=200, create_p95_s=41.0)).change == "kept"
    lately.decide(signals(in_use=100, create_p95_s=3.0))
    assert lately.decide(signals(in_use=100, create_p95_s=20.0)).cap == 90
    quick.decide(signals(in_use=100, create_p95_s=0.01))
    assert quick.decide(signals(in_use=100, ended=200, create_p95_s=1.0)).change == "grew"
    assert quick.decide(signals(in_use=125, create_p95_s=2.5)).change == "fell"


@given(st.integers(-3, 5), st.integers(-3, 5))
def test_bounds_that_are_none_are_refused(lowest: int, highest: int) -> None:
    """1 ≤ lowest ≤ highest, or an error at once."""
    if 1 <= lowest <= highest:
        assert Concurrency(Bounds(lowest=lowest, highest=highest), cap=99).cap == highest
    else:
        with pytest.raises(ValueError, match="1 ≤ lowest ≤ highest"):
            Bounds(lowest=lowest, highest=highest)
