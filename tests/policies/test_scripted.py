"""Scripted policies say exactly what their script says, behind the contract of any policy."""

from __future__ import annotations

import asyncio

import pytest

from practicum.errors import PolicyRefused
from practicum.policies.contract import Policy, SamplingParams
from practicum.policies.scripted import SCRIPTED_VERSION, ScriptedPolicy, noop_policy, oracle_policy, script_policy
from practicum.policies.text import END, ByteRenderer

renderer = ByteRenderer()


def say(policy: Policy, turns: int, session: str = "s", max_tokens: int = 1000) -> list[str]:
    async def talk() -> list[str]:
        texts = []
        for _ in range(turns):
            sampled = await policy.sample([], SamplingParams(max_tokens), session=session)
            assert sampled.ids[-1] == END
            assert len(sampled.logprobs) == len(sampled.ids)
            assert set(sampled.logprobs) == {0.0}
            assert sampled.version == SCRIPTED_VERSION
            texts.append(renderer.decode(sampled.ids))
        return texts

    return asyncio.run(talk())


def test_the_shipped_scripts() -> None:
    """The no-op submits, the oracle runs the gold first, a script runs as one command."""
    assert say(noop_policy(renderer), 2) == ["<submit>", "<submit>"]
    assert say(oracle_policy(renderer), 2) == ["<bash>bash /solution/solve.sh</bash>", "<submit>"]
    assert say(script_policy(renderer, "a\nb\n"), 2) == ["<bash>a\nb\n</bash>", "<submit>"]


def test_turns_are_counted_by_session_and_anew_when_it_opens() -> None:
    """Two conversations do not disturb each other, and a repeated one starts at the beginning."""
    policy = ScriptedPolicy(renderer, lambda session, turn: f"{session}{turn}")
    assert say(policy, 2, "a") == ["a0", "a1"]
    assert say(policy, 1, "b") == ["b0"]
    with policy.session("a"):
        assert say(policy, 2, "a") == ["a0", "a1"]


def test_a_script_that_does_not_fit_is_refused() -> None:
    """Half a command is never run in place of the whole."""
    with pytest.raises(PolicyRefused, match="takes"):
        say(script_policy(renderer, "echo hello"), 1, max_tokens=5)


def test_a_script_that_the_protocol_cannot_carry_is_an_error() -> None:
    """A script file that contains a closing tag is refused when it is read."""
    with pytest.raises(ValueError, match="cannot carry"):
        script_policy(renderer, "echo '</bash>'")


def test_scripted_policies_are_not_trainable() -> None:
    """Their log-probabilities are not those of a distribution that a ratio could follow."""
    assert ScriptedPolicy.trainable is False
