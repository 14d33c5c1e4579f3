"""Circuit breakers: when they open, how they try again, and that they are never stuck."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from practicum.scheduling.breaker import Breaker, BreakerRule, Breakers

RULE = BreakerRule(window_s=10, failures=3, share=0.5, cool_s=4, factor=2, longest_s=12, probe_s=6)


class BreakerMachine(RuleBasedStateMachine):
    """Uses that come back late, never, or after the breaker has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = Breaker("host-1", RULE)
        self.tickets: list[tuple[int, str]] = []  # and the state in which it was given
        self.results: list[tuple[float, bool]] = []  # that count, since it was last closed
        self.seen = 0

    @rule(seconds=st.sampled_from([0.5, 2.0, 7.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def admit(self) -> None:
        before = self.breaker.state
        ticket = self.breaker.admit(self.now)
        if before == "closed":
            assert ticket is not None
        if self.breaker.state == "open":
            assert ticket is None
            assert self.now < self.breaker.until_s
        if ticket is not None:
            self.tickets.append((ticket, self.breaker.state))

    @rule(which=st.integers(0, 100), how=st.sampled_from(["succeeded", "failed", "gave_up"]))
    def answer(self, which: int, how: str) -> None:
        if not self.tickets:
            return
        ticket, given_in = self.tickets.pop(which % len(self.tickets))
        before, notices = self.breaker.state, len(self.breaker.notices)
        if how == "gave_up":
            self.breaker.gave_up(ticket)
            assert self.breaker.state == before
            return
        if how == "succeeded":
            self.breaker.succeeded(ticket, self.now)
        else:
            self.breaker.failed(ticket, self.now, "connection refused")
        changed = self.breaker.state != before
        assert changed == (len(self.breaker.notices) > notices)
        if before == "open":
            assert not changed
        if before == "half-open" and changed:
            assert given_in == "half-open"
            assert self.breaker.state == ("closed" if how == "succeeded" else "open")
        if before == "closed" and changed:
            assert (how, self.breaker.state) == ("failed", "open")

    @invariant()
    def changes_follow_the_rule(self) -> None:
        for notice in self.breaker.notices[self.seen :]:
            allowed = {"closed": {"open"}, "open": {"half-open"}, "half-open": {"closed", "open"}}
            assert notice.after in allowed[notice.before]
            assert notice.reason
            if notice.after == "open":
                cool = min(RULE.longest_s, RULE.cool_s * RULE.factor ** (self.breaker.opened - 1))
                assert self.breaker.until_s == notice.at_s + cool
        self.seen = len(self.breaker.notices)

    def teardown(self) -> None:
        """Whatever happened: after a while of peace one may try, and when that succeeds, all may."""
        for _ in range(2):
            self.now += max(RULE.longest_s, RULE.probe_s)
            ticket = self.breaker.admit(self.now)
            if ticket is not None:
                break
        assert ticket is not None
        self.breaker.succeeded(ticket, self.now)
        assert self.breaker.state == "closed"


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def state_of(breaker: Breaker) -> str:
    """Asked anew each time: a call in between may have changed it."""
    return breaker.state


def use(breaker: Breaker, now: float, *, failed: int = 0, succeeded: int = 0) -> None:
    for _ in range(succeeded):
        ticket = breaker.admit(now)
        assert ticket is not None
        breaker.succeeded(ticket, now)
    for _ in range(failed):
        ticket = breaker.admit(now)
        assert ticket is not None
        breaker.failed(ticket, now, "died")


def test_many_and_most_must_fail() -> None:
    """Few failures, or many among very many uses, or many long ago, leave it closed."""
    breaker = Breaker("k", RULE)
    use(breaker, 0, failed=2)
    assert state_of(breaker) == "closed"
    use(breaker, 20, succeeded=9, failed=3)
    assert state_of(breaker) == "closed"
    use(breaker, 40, failed=3)
    assert state_of(breaker) == "open"
    assert breaker.notices[-1].reason == "3 of 3 failed within 10 s: died; left alone for 4 s"


def test_cool_downs_grow_until_a_probe_succeeds() -> None:
    """Each failed probe doubles the time up to the longest; a success begins anew."""
    breaker, now = Breaker("k", RULE), 0.0
    use(breaker, now, failed=3)
    for cool in (4.0, 8.0, 12.0, 12.0):
        assert breaker.until_s - now == cool
        assert breaker.admit(now + cool - 0.1) is None
        now += cool
        use(breaker, now, failed=1)
    now = breaker.until_s
    use(breaker, now, succeeded=1)
    use(breaker, now, failed=3)
    assert breaker.until_s - now == 4


def test_a_closed_breaker_begins_with_a_clean_sheet() -> None:
    """What failed before the probe succeeded does not count towards opening again."""
    breaker = Breaker("k", RULE)
    use(breaker, 0, failed=3)
    use(breaker, 4, succeeded=1)
    use(breaker, 5, failed=2)
    assert state_of(breaker) == "closed"


def test_one_probe_at_a_time_and_none_for_ever() -> None:
    """While a probe is out nobody else may go; one that hangs counts as failed, and its answer comes too late."""
    breaker = Breaker("k", RULE)
    use(breaker, 0, failed=3)
    probe = breaker.admit(4)
    assert probe is not None
    assert breaker.admit(5) is None
    assert breaker.admit(10) is None
    assert (breaker.state, breaker.until_s) == ("open", 18)
    breaker.succeeded(probe, 11)
    assert state_of(breaker) == "open"
    given_up = breaker.admit(18)
    assert given_up is not None
    breaker.gave_up(given_up)
    assert breaker.admit(18) is not None


def test_answers_from_before_say_nothing_of_now() -> None:
    """A use that began before the breaker opened neither closes it nor opens it again."""
    breaker = Breaker("k", RULE)
    old = breaker.admit(0)
    assert old is not None
    use(breaker, 0, failed=3)
    probe = breaker.admit(4)
    assert probe is not None
    breaker.failed(old, 4)
    assert state_of(breaker) == "half-open"
    breaker.succeeded(probe, 4)
    breaker.failed(old, 5)
    assert state_of(breaker) == "closed"


def test_keys_do_not_know_each_other() -> None:
    """Only the key that fails is left alone; others are chosen in its place; each change is told once, in order."""
    breakers = Breakers(RULE)
    use(breakers.of("engine-1"), 1, failed=3)
    assert breakers.not_closed() == {"engine-1": "open"}
    assert breakers.choose(("engine-1", "engine-2"), 2) == ("engine-2", 0)
    use(breakers.of("engine-2"), 2, failed=3)
    assert breakers.choose(("engine-1", "engine-2"), 2) is None
    assert [(notice.key, notice.after) for notice in breakers.drain()] == [("engine-1", "open"), ("engine-2", "open")]
    assert breakers.drain() == ()
    assert breakers.choose(("engine-1", "engine-2"), 5.5) is not None
    assert [(notice.key, notice.after) for notice in breakers.drain()] == [("engine-1", "half-open")]


@pytest.mark.parametrize(
    "wrong", [{"failures": 0}, {"share": 0.0}, {"factor": 0.5}, {"cool_s": 0.0}, {"longest_s": 1.0}, {"probe_s": 0.0}]
)
def test_what_is_no_rule_is_refused(wrong: dict[str, float]) -> None:
    """A rule under which a breaker would always or never open is an error at once."""
    with pytest.raises(ValueError, match="is no rule of a breaker"):
        BreakerRule(**wrong)  # type: ignore[arg-type]
