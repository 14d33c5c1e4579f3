"""The session: what was sampled is what is recorded, budgets end it, a policy that breaks its contract is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import PolicyError, PolicyRefused, StartRefused
from practicum.policies.contract import Message, Policy, Sampled, SamplingParams
from practicum.policies.scripted import ScriptedPolicy
from practicum.policies.text import END, OBSERVATION, ByteRenderer
from practicum.records.sample import samples_from
from practicum.records.trajectory import Trajectory, Turn
from practicum.rollouts.session import Budgets, Session
from practicum.scheduling.retry import Backoff

START = [Message("task", "fix it")]
ROOMY = Budgets(max_turns=100, max_tokens=1000, max_context=100_000)


@dataclass
class Recorded:
    """Replays `answers` one by one; an exception among them is raised."""

    answers: list[Sampled | Exception]
    asked: list[tuple[tuple[int, ...], SamplingParams]] = field(default_factory=list)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        self.asked.append((tuple(prompt_ids), params))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def session(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()


class Forgetful(ByteRenderer):
    """Can never keep a prefix."""

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int] | None:
        return None


class Rewriting(ByteRenderer):
    """Breaks the contract: tidies up what was sampled."""

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int] | None:
        return [*ids, *self.encode(self.decode(sampled).strip()), *self.start(messages)]


def open_session(policy: Policy, renderer: ByteRenderer | None = None, budgets: Budgets = ROOMY) -> Session:
    quick = Backoff(tries=3, first_s=0.0)
    return Session(
        policy, renderer or ByteRenderer(), START, name="s", budgets=budgets, seed=7, sample_s=0.2, backoff=quick
    )


def record(session: Session, observation: str = "ok") -> None:
    session.record(observation=observation, snapshot_after="b", timing={"act": 0.0})


def sampled(text: str, *, ended: bool = True) -> Sampled:
    ids = (*text.encode(), *([END] if ended else []))
    return Sampled(ids, (-0.5,) * len(ids), "stop" if ended else "length", 3)


def play(session: Session, observations: Sequence[str]) -> None:
    async def turns() -> None:
        for observation in observations:
            await session.sample("a")
            record(session, observation)

    asyncio.run(turns())


def test_turns_bind_ids_log_probabilities_version_text_and_snapshots() -> None:
    """A turn holds the exact prompt and sample, what came of it, and the workspace around it."""
    policy = Recorded([sampled("<bash>ls</bash>"), sampled("<submit>")])
    session = open_session(policy)
    play(session, ["a.py", ""])
    first, second = session.turns
    assert first.prompt_ids == policy.asked[0][0]
    assert second.prompt_ids == policy.asked[1][0]
    assert second.prompt_ids[: len(first.prompt_ids) + len(first.sampled_ids)] == first.prompt_ids + first.sampled_ids
    assert (first.text, first.action.tool, first.observation) == ("<bash>ls</bash>", "bash", "a.py")
    assert (first.policy_version, first.logprobs[0], first.snapshot_before, first.snapshot_after) == (3, -0.5, "a", "b")
    assert set(first.timing) == {"generate", "act"}
    assert policy.asked[0][1].seed != policy.asked[1][1].seed


answers = st.lists(st.lists(st.integers(0, 259), min_size=1, max_size=12), min_size=1, max_size=5)


@settings(deadline=None)
@given(answers, st.booleans(), st.data())
def test_trained_ids_are_the_sampled_ids(turns: list[list[int]], forgetful: bool, data: st.DataObject) -> None:
    """Whatever ids a policy says, role ids and broken UTF-8 too, the samples made of the trajectory mask exactly
    those ids, in order, with their own log-probabilities, whether or not prefixes could be kept."""
    replies: list[Sampled | Exception] = []
    for turn, ids in enumerate(turns):
        logprobs = tuple(-(turn + position / 100) for position in range(len(ids)))
        replies.append(Sampled(tuple(ids), logprobs, data.draw(st.sampled_from(["stop", "length"])), turn))
    said = [reply for reply in replies if isinstance(reply, Sampled)]
    expected = [pair for reply in said for pair in zip(reply.ids, reply.logprobs, strict=True)]
    session = open_session(Recorded(replies), Forgetful() if forgetful else None)
    play(session, [data.draw(st.text(max_size=5)) for _ in turns])
    trajectory = Trajectory("t", "g", "task", "digest", session.turns, "submitted")
    trained = [
        (ident, logprob)
        for sample in samples_from(trajectory, 1.0)
        for ident, mask, logprob in zip(sample.input_ids, sample.loss_mask, sample.behaviour_logprobs, strict=True)
        if mask
    ]
    assert trained == expected


def test_a_renderer_that_cannot_extend_starts_over() -> None:
    """The whole conversation is rendered afresh, and becomes a sample of its own."""
    odd = sampled("<bash>a</bash>")
    odd = Sampled((OBSERVATION, *odd.ids), (-0.5, *odd.logprobs), "stop", 3)
    policy = Recorded([odd, sampled("<submit>")])
    session = open_session(policy)
    play(session, ["seen", ""])
    assert ByteRenderer().messages(policy.asked[1][0]) == [
        *START,
        Message("assistant", "<bash>a</bash>"),
        Message("observation", "seen"),
    ]
    assert len(samples_from(Trajectory("t", "g", "k", "d", session.turns, "submitted"), 1.0)) == 2


def test_a_renderer_that_rewrites_what_was_sampled_is_refused() -> None:
    """Continuing on other ids than were sampled would make every ratio wrong."""
    with pytest.raises(PolicyRefused, match="did not keep"):
        play(open_session(Recorded([sampled(" <submit> ")]), Rewriting()), [""])


def test_the_number_of_turns_is_bounded() -> None:
    """After its last turn the session has reached its limit."""
    session = open_session(ScriptedPolicy(ByteRenderer(), lambda s, t: "x"), budgets=Budgets(2, 100, 1000))
    play(session, ["a"])
    assert session.limit() is None
    play(session, ["b"])
    assert session.limit() == "turn_limit"


def test_a_prompt_that_fills_the_context_ends_it() -> None:
    """No request is made for which there is no room, and the last ones ask for no more than there is."""
    budgets = Budgets(max_turns=10, max_tokens=50, max_context=60)
    policy = Recorded([sampled("abc"), sampled("abc")])
    session = open_session(policy, budgets=budgets)
    play(session, ["x" * 20])
    play(session, ["y" * 40])
    assert policy.asked[1][1].max_tokens == 60 - len(policy.asked[1][0]) < 50
    assert session.limit() == "context_limit"


def test_a_sample_cut_before_its_action_names_the_budget() -> None:
    """Cut in the middle of an action it is the turn's budget that ended it, or the context's; cut after a whole
    action it is that action."""
    policy = Recorded([sampled("<bash>ls", ended=False), sampled("<bash>ls</bash>", ended=False)])
    session = open_session(policy)
    play(session, ["", ""])
    first, second = session.turns
    assert (session.cut(first), first.action.tool) == ("token_limit", "invalid")
    assert (session.cut(second), second.action.tool) == (None, "bash")
    tight = open_session(Recorded([sampled("<bash>", ended=False)]), budgets=Budgets(5, 50, 20))
    assert tight.cut(asyncio.run(tight.sample())) == "context_limit"


def test_what_is_pending_is_not_sampled_again() -> None:
    """Until it is recorded, asking again gives the same turn without asking the policy."""
    policy = Recorded([sampled("<bash>ls</bash>"), sampled("<submit>")])
    session = open_session(policy)
    first = asyncio.run(session.sample("a"))
    assert (first.observation, first.snapshot_before, first.snapshot_after) == ("", "a", "")
    assert asyncio.run(session.sample("b")) is first is session.pending
    record(session)
    assert len(policy.asked) == 1
    assert session.turns[0].sampled_ids == first.sampled_ids
    with pytest.raises(ValueError, match="nothing was sampled"):
        record(session)


@settings(deadline=None)
@given(answers, st.integers(0, 5), st.booleans(), st.booleans(), st.data())
def test_a_session_that_goes_on_asks_what_an_unbroken_one_would(
    turns: list[list[int]], after: int, forgetful: bool, pending: bool, data: st.DataObject
) -> None:
    """From recorded turns on, prompts and seeds are the very same, whatever was said and seen before."""
    replies = [Sampled(tuple(ids), (-0.5,) * len(ids), "stop", turn) for turn, ids in enumerate(turns)]
    seen = [data.draw(st.text(max_size=5)) for _ in turns]
    renderer = Forgetful() if forgetful else None
    whole = Recorded(list(replies))
    unbroken = open_session(whole, renderer)
    play(unbroken, seen)
    after = min(after, len(turns) - 1)
    rest = Recorded(list(replies[after + pending :]))
    session = open_session(rest, renderer)
    said = replace(unbroken.turns[after], observation="", snapshot_after="")
    session.resume(unbroken.turns[:after], said if pending else None)
    play(session, seen[after:])
    assert rest.asked == whole.asked[after + pending :]
    assert untimed(session.turns) == untimed(unbroken.turns)


def untimed(turns: Sequence[Turn]) -> list[Turn]:
    return [replace(turn, timing={}) for turn in turns]


@pytest.mark.parametrize("change", [{"prompt_ids": (1, 2)}, {"text": "<bash>rm</bash>"}, {"observation": "other"}])
def test_turns_that_would_not_have_come_about_here_are_refused(change: dict[str, Any]) -> None:
    """Other ids before a turn, other words in it, or another answer to it: the episode does not go on."""
    session = open_session(Recorded([sampled("<bash>ls</bash>"), sampled("<bash>ls</bash>")]))
    play(session, ["a.py", "b.py"])
    altered = [replace(session.turns[0], **change), session.turns[1]]
    with pytest.raises(StartRefused):
        open_session(Recorded([])).resume(altered)


@pytest.mark.parametrize(
    "answer",
    [
        Sampled((), (), "stop", 0),
        Sampled((1, 2), (0.0,), "stop", 0),
        Sampled((1,), (float("nan"),), "stop", 0),
        Sampled((1,), (0.5,), "stop", 0),
        Sampled((1,) * 1001, (0.0,) * 1001, "stop", 0),
    ],
)
def test_an_answer_that_breaks_the_contract_is_refused(answer: Sampled) -> None:
    """Nothing, too much, or log-probabilities that are none never reach a record."""
    with pytest.raises(PolicyRefused):
        asyncio.run(open_session(Recorded([answer])).sample())


def test_a_policy_that_fails_is_asked_again_and_then_given_up() -> None:
    """Failures are retried within bounds; a refusal is not."""
    policy = Recorded([PolicyError("busy"), PolicyError("busy"), sampled("<submit>")])
    assert asyncio.run(open_session(policy).sample()).action.tool == "submit"
    assert len({params.seed for _, params in policy.asked}) == 1
    with pytest.raises(PolicyError, match="third"):
        asyncio.run(open_session(Recorded([PolicyError("1"), PolicyError("2"), PolicyError("third")])).sample())
    refused = Recorded([PolicyRefused("no"), sampled("<submit>")])
    with pytest.raises(PolicyRefused):
        asyncio.run(open_session(refused).sample())
    assert len(refused.asked) == 1


class Silent:
    """Never answers."""

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        yield


def test_a_policy_that_hangs_is_given_up() -> None:
    """Every wait has a deadline, and its end is an infrastructure fault."""
    with pytest.raises(PolicyError, match=r"within 0\.2 s"):
        asyncio.run(open_session(Silent()).sample())
