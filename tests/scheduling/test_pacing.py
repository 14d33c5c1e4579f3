"""Pacing by staleness."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from practicum.errors import ConfigError
from practicum.scheduling.pacing import Pace


@given(st.integers(0, 8), st.integers(0, 1000), st.integers(0, 1000))
def test_a_batch_that_goes_is_never_too_old_when_trained(bound: int, batch: int, version: int) -> None:
    """Batch k is trained by the update from version k, so k − version is its age; the pace keeps that in bounds."""
    pace = Pace(1, bound)
    assert pace.may_dispatch(batch, version) == (batch - version <= bound)
    assert pace.may_dispatch(batch, pace.needed_version(batch))
    assert pace.needed_version(batch) == 0 or not pace.may_dispatch(batch, pace.needed_version(batch) - 1)


@given(st.integers(0, 4), st.lists(st.booleans(), max_size=200))
def test_the_loop_never_stands_still(bound: int, choices: list[bool]) -> None:
    """In any interleaving of dispatching and updating, one of the two is always possible."""
    pace = Pace(1, bound)
    dispatched = version = 0
    for prefer_dispatch in choices:
        can_dispatch, can_update = pace.may_dispatch(dispatched, version), version < dispatched
        assert can_dispatch or can_update
        if can_dispatch and (prefer_dispatch or not can_update):
            dispatched += 1
        else:
            version += 1
        assert dispatched - version <= bound + 1


def test_a_negative_bound_is_refused() -> None:
    """A bound under which nothing could ever be dispatched is an error at once."""
    with pytest.raises(ValueError, match="max_staleness"):
        Pace(1, -1)


class PaceMachine(RuleBasedStateMachine):
    """Groups that are dispatched, end in any order, and are trained, as the pace says."""

    @initialize(per_update=st.integers(1, 5), max_staleness=st.integers(0, 4))
    def begin(self, per_update: int, max_staleness: int) -> None:
        self.pace = Pace(per_update, max_staleness)
        self.version = self.dispatched = 0
        self.born: dict[str, int] = {}  # of those that are not trained
        self.ready: list[str] = []

    @property
    def running(self) -> list[str]:
        return sorted(self.born.keys() - set(self.ready))

    @precondition(lambda self: self.pace.may_dispatch(self.dispatched, self.version))
    @rule(most=st.integers(1, 30))
    def dispatch(self, most: int) -> None:
        for _ in range(min(most, self.pace.room(self.dispatched, self.version))):
            assert self.pace.needed_version(self.dispatched) <= self.version
            self.born[f"g{self.dispatched:05}"] = self.version
            self.dispatched += 1

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 1000))
    def end(self, which: int) -> None:
        self.ready.append(self.running[which % len(self.running)])

    @precondition(lambda self: self.running)
    @rule(seed=st.integers(0, 1000))
    def all_end(self, seed: int) -> None:
        running = self.running
        random.Random(f"ends-{seed}").shuffle(running)
        self.ready += running

    @rule()
    def update(self) -> None:
        chosen = self.pace.choose(self.version, self.ready, self.born)
        if chosen is None:
            return
        assert len(chosen) == len(set(chosen)) == self.pace.per_update
        for name in chosen:
            self.ready.remove(name)
            assert self.version - self.born.pop(name) <= self.pace.max_staleness
        self.version += 1

    @rule(lost=st.sets(st.integers(0, 40)))
    def die_and_resume(self, lost: set[int]) -> None:
        """Some groups in flight are not taken up again; those that are count as dispatched."""
        for number, name in enumerate(sorted(self.born)):
            if number in lost:
                del self.born[name]
        self.ready = [name for name in self.ready if name in self.born]
        names = sorted(self.born)
        self.dispatched = self.pace.resumed(self.version, len(names))
        # New names, as the count of dispatched groups went back.
        renamed = {old: f"g{self.version * self.pace.per_update + number:05}" for number, old in enumerate(names)}
        self.born = {renamed[old]: self.born[old] for old in names}
        self.ready = [renamed[old] for old in self.ready]

    @invariant()
    def nothing_is_lost_or_late(self) -> None:
        if not hasattr(self, "pace"):
            return
        assert self.dispatched == self.version * self.pace.per_update + len(self.born)
        assert len(self.pace.due(self.version, self.born)) <= self.pace.per_update
        assert not self.pace.overdue(self.version, self.born)
        # Whatever was done so far, there is a way on.
        assert (
            self.running
            or self.pace.may_dispatch(self.dispatched, self.version)
            or self.pace.choose(self.version, self.ready, self.born)
        )


TestPace = PaceMachine.TestCase
TestPace.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 500))
def test_room_and_versions_say_the_same(per_update: int, max_staleness: int, number: int) -> None:
    """A group may go exactly from its needed version on, and room counts the groups that may."""
    pace = Pace(per_update, max_staleness)
    needed = pace.needed_version(number)
    assert pace.may_dispatch(number, needed)
    assert needed == 0 or not pace.may_dispatch(number, needed - 1)
    assert pace.room(number, needed) > 0
    for version in (0, needed, needed + 3):
        last = number + pace.room(number, version)
        assert not pace.may_dispatch(last, version)


@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 1000))
def test_in_order_the_due_ones_are_the_batch(per_update: int, max_staleness: int, seed: int) -> None:
    """Groups that are sampled by the lowest version that allows them are trained in order, batch by batch."""
    pace, source = Pace(per_update, max_staleness), random.Random(f"order-{seed}")
    names = [f"g{number:03}" for number in range(per_update * 6)]
    for version in range(6):
        open_ones = names[version * per_update : (version + max_staleness + 1) * per_update]
        born = {name: pace.needed_version(names.index(name)) for name in open_ones}
        ready = list(open_ones)
        source.shuffle(ready)
        chosen = pace.choose(version, ready, born)
        assert chosen is not None
        if version >= max_staleness:
            assert sorted(chosen) == names[version * per_update : (version + 1) * per_update]


def test_a_due_group_is_waited_for() -> None:
    """While a group that must be in the update has not ended, there is none, however many others have."""
    pace = Pace(2, 1)
    born = {"a": 0, "b": 0, "c": 1, "d": 1}
    assert pace.due(1, born) == {"a", "b"}
    assert pace.choose(1, ["c", "b", "d"], born) is None
    assert pace.choose(1, ["c", "b", "d", "a"], born) == ("b", "a")
    assert pace.choose(0, ["b"], {"a": 0, "b": 0}) is None
    assert pace.choose(0, ["c", "b", "d"], dict.fromkeys("abcd", 0)) == ("c", "b")


def test_a_resume_under_a_lower_bound_is_refused() -> None:
    """Groups that are too old for the bound are named by number and age, with what to do."""
    with pytest.raises(ConfigError, match="2 versions old, with 1 allowed") as caught:
        Pace(2, 1).choose(2, ["a"], {"a": 0})
    assert caught.value.fix is not None
    assert "max_staleness" in caught.value.fix
    with pytest.raises(ConfigError, match="3 groups must be trained by the update from version 1, which takes 2"):
        Pace(2, 1).choose(1, ["a"], {"a": 0, "b": 0, "c": 0})


@pytest.mark.parametrize("wrong", [(0, 1), (1, -1)])
def test_a_pace_at_which_nothing_moves_is_refused(wrong: tuple[int, int]) -> None:
    """Updates of no group, or a negative bound, are an error at once."""
    with pytest.raises(ValueError, match=r"per_update|max_staleness"):
        Pace(*wrong)
