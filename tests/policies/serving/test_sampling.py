"""The client for training against the real server: what comes over HTTP is what the engine samples."""

from __future__ import annotations

import asyncio
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from practicum.errors import PolicyError, PolicyRefused
from practicum.policies.contract import Message, Policy, Sampled, SamplingParams
from practicum.policies.http import ChatPolicy
from practicum.policies.http_tokens import TokenPolicy
from practicum.policies.http_weights import load_served_version
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.tiny import tiny_tokenizer
from practicum.policies.serving.app import Limits
from practicum.policies.serving.requests import Load
from practicum.policies.speech import TAGS
from practicum.policies.text import ByteRenderer
from practicum.records.trajectory import Turn
from practicum.rollouts.session import Budgets, Session

if TYPE_CHECKING:
    from policies.serving.conftest import Bench, Served

WORDS = tiny_tokenizer()
TAGS_WITHOUT_SYSTEM = replace(TAGS, system="")
LONG = SamplingParams(4000, seed=1)  # seconds of work


async def ask(policy: Policy, count: int = 12) -> list[Sampled]:
    """Different prompts, seeds, temperatures and lengths at the same time."""

    async def one(i: int) -> Sampled:
        prompt = WORDS.encode(f"the theme of {i % 4}")
        params = SamplingParams(5 + 3 * i, (1.0, 0.0, 0.7)[i % 3], (5, *WORDS.stop_ids, *range(40, 50)), seed=100 + i)
        with policy.session(f"s{i}"):
            return await policy.sample(prompt, params, session=f"s{i}")

    return await asyncio.gather(*(one(i) for i in range(count)))


async def over_http(served: Served, count: int = 12) -> list[Sampled]:
    async with TokenPolicy(served.url, first_delay_s=0.01) as policy:
        return await ask(policy, count)


async def until(served: Served, *, busy: bool) -> None:
    """Wait until the engine works, or until it does not."""
    async with asyncio.timeout(30):
        while (served.generator.running > 0) != busy:  # noqa: ASYNC110  another thread's
            await asyncio.sleep(0.001)


def same(ours: list[Sampled], theirs: list[Sampled]) -> bool:
    """Equal ids and ends; log-probabilities within 1e-4."""
    return [(s.ids, s.stop_reason) for s in ours] == [(s.ids, s.stop_reason) for s in theirs] and all(
        math.isclose(a, b, abs_tol=1e-4)
        for one, other in zip(ours, theirs, strict=True)
        for a, b in zip(one.logprobs, other.logprobs, strict=True)
    )


def test_over_http_is_as_at_home(bench: Bench) -> None:
    """The same seeds give the same ids, ends and log-probabilities through the server as by the engine itself."""
    here = asyncio.run(ask(bench.engine(bench.model())))
    there = asyncio.run(over_http(bench.serve()))
    assert {sampled.stop_reason for sampled in here} == {"stop", "length"}
    assert same(here, there)
    assert {sampled.version for sampled in there} == {0}


def converse(policy: Policy, name: str) -> tuple[Turn, ...]:
    async def run() -> tuple[Turn, ...]:
        renderer = ChatRenderer(WORDS, TAGS_WITHOUT_SYSTEM)
        session = Session(policy, renderer, [Message("task", "say ä")], name=name, budgets=Budgets(4, 24, 512), seed=7)
        with policy.session(name):
            for turn in range(4):
                await session.sample("a")
                session.record(observation=f"no {turn}", snapshot_after="b", timing={})
        if isinstance(policy, TokenPolicy):
            await policy.aclose()
        return session.turns

    return asyncio.run(run())


def test_a_conversation_keeps_its_prefix(bench: Bench) -> None:
    """Each prompt of several turns begins with the last prompt and the ids sampled there, which the server then does
    not compute again; and the turns are those of the local engine."""
    model = bench.model()
    served = bench.serve(model)
    turns = converse(TokenPolicy(served.url), "talk")
    for before, after in itertools.pairwise(turns):
        prefix = (*before.prompt_ids, *before.sampled_ids)
        assert after.prompt_ids[: len(prefix)] == prefix
    # All but the last id of a sample is fed when it was sampled; of each prompt only what is new.
    everything = len(turns[-1].prompt_ids) + len(turns[-1].sampled_ids)
    assert model.fed < everything + len(turns)
    at_home = converse(bench.engine(bench.model()), "talk")
    assert [turn.sampled_ids for turn in turns] == [turn.sampled_ids for turn in at_home]


def test_no_more_conversations_are_kept_than_allowed(bench: Bench) -> None:
    """The caches of the conversations that were quiet longest are dropped."""
    served = bench.serve(limits=Limits(kept=2))
    asyncio.run(over_http(served))
    assert len(served.service.engine._open) <= 2
    assert len(served.generator._held) <= 2


def test_new_weights_in_the_middle(bench: Bench) -> None:
    """What began under the old weights is stamped with their version, what begins after the hand-over with the new one,
    and each is what the engine samples with those weights."""
    states = {n: bench.model(seed=n).state_dict() for n in (1, 2)}
    served = bench.serve(bench.model(seed=1), weights=lambda load: states[load.version])

    async def both() -> tuple[list[Sampled], list[Sampled]]:
        early = asyncio.create_task(over_http(served))
        await until(served, busy=True)
        await load_served_version(served.url, 2)
        return await early, await over_http(served)

    old, new = asyncio.run(both())
    assert {s.version for s in new} == {2}
    assert 0 in {s.version for s in old}
    by_version = {
        0: asyncio.run(ask(bench.engine(bench.model(seed=1)))),
        2: asyncio.run(ask(bench.engine(bench.model(seed=2)))),
    }
    assert not same(by_version[0], by_version[2])
    assert same(new, by_version[2])
    assert same(old, [by_version[sampled.version][i] for i, sampled in enumerate(old)])


@pytest.mark.parametrize("fault", ["nan", "shape", "missing"])
def test_bad_weights_change_nothing(bench: Bench, fault: str) -> None:
    """Weights that are of another model or not finite are refused, and the server goes on with what it had."""
    state = {name: value.clone() for name, value in bench.model(seed=2).state_dict().items()}
    first = next(iter(state))
    if fault == "nan":
        state[first].view(-1)[0] = math.nan
    elif fault == "shape":
        state[first] = state[first][:-1]
    else:
        del state[first]
    served = bench.serve(weights=lambda load: state)
    before = asyncio.run(over_http(served))
    with pytest.raises(PolicyRefused, match="not finite" if fault == "nan" else "another model"):
        asyncio.run(load_served_version(served.url, 2))
    after = asyncio.run(over_http(served))
    assert same(before, after)
    assert {sampled.version for sampled in after} == {0}


def test_weights_that_cannot_be_read(bench: Bench) -> None:
    """Why the weights cannot be had reaches the one who handed them over."""

    def weights(load: Load) -> dict[str, object]:
        raise PolicyRefused(f"version {load.version} is damaged")

    served = bench.serve(weights=weights)
    with pytest.raises(PolicyRefused, match="version 3 is damaged"):
        asyncio.run(load_served_version(served.url, 3))
    with pytest.raises(PolicyRefused, match="keeps the weights"):
        asyncio.run(load_served_version(bench.serve().url, 1))


def test_a_client_that_goes_away_frees_the_engine(bench: Bench) -> None:
    """A sample that nobody waits for any more is given up."""
    served = bench.serve(bench.model(context=4096))

    async def run() -> None:
        async with TokenPolicy(served.url) as policy:
            asked = asyncio.create_task(policy.sample([1, 2, 3], LONG, session="s"))
            await until(served, busy=True)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            await until(served, busy=False)
            assert len((await policy.sample([1, 2, 3], SamplingParams(3), session="s")).ids) == 3

    asyncio.run(run())


def test_a_client_waits_for_its_turn(bench: Bench) -> None:
    """A server without a free place says so, and is asked again; one that never has a place has not answered."""
    served = bench.serve(bench.model(context=4096), limits=Limits(queue=1))

    async def run() -> None:
        async with TokenPolicy(served.url, tries=2) as hasty, TokenPolicy(served.url, first_delay_s=0.01) as patient:
            await hasty.describe(), await patient.describe()
            asked = asyncio.create_task(hasty.sample([1, 2, 3], LONG, session="s"))
            await until(served, busy=True)
            with pytest.raises(PolicyError, match="2 tries: status 429"):
                await hasty.sample([1], SamplingParams(3), session="t")
            late = asyncio.create_task(patient.sample([1], SamplingParams(3), session="t"))
            await asyncio.sleep(0.1)
            asked.cancel()
            assert len((await late).ids) == 3

    asyncio.run(run())


def test_a_request_that_takes_too_long(bench: Bench) -> None:
    """At the deadline the client is told, and the engine is free."""
    served = bench.serve(bench.model(context=4096), limits=Limits(deadline_s=0.3))

    async def run() -> None:
        async with TokenPolicy(served.url, tries=1) as policy:
            with pytest.raises(PolicyError, match="status 504"):
                await policy.sample([1, 2, 3], LONG, session="s")
            await until(served, busy=False)

    asyncio.run(run())


def test_a_model_that_breaks_is_told(bench: Bench) -> None:
    """Logits that are no numbers are the server's fault, not an answer."""
    model = bench.model()
    served = bench.serve(model)
    for parameter in model.parameters():
        parameter.data.fill_(math.nan)

    async def run() -> None:
        async with TokenPolicy(served.url, tries=1) as policy:
            with pytest.raises(PolicyError, match="status 500"):
                await policy.sample([1], SamplingParams(3), session="s")

    asyncio.run(run())


def test_evaluation_by_texts(bench: Bench) -> None:
    """The client for any server gets text from the same server."""
    served = bench.serve()
    renderer = ByteRenderer()

    async def run() -> Sampled:
        async with ChatPolicy(served.url, "default", system_prompt="be brief", max_reply_tokens=20) as policy:
            prompt = renderer.start([Message("task", "fix it"), Message("assistant", "x"), Message("observation", "é")])
            return await policy.sample(prompt, SamplingParams(1000, seed=3), session="s")

    assert asyncio.run(run()).ids
