"""The byte renderer: lossless, exact on extension, and no text forges a role."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import PolicyRefused
from practicum.policies.contract import Message
from practicum.policies.text import ASSISTANT, END, OBSERVATION, ByteRenderer

renderer = ByteRenderer()
utf8 = st.text(st.characters(exclude_categories=["Cs"]))
messages = st.lists(st.builds(Message, st.sampled_from(["task", "assistant", "observation"]), utf8), max_size=5)


@given(messages)
def test_messages_come_back_unchanged(conversation: list[Message]) -> None:
    """Any conversation survives the way through ids, so an HTTP policy is sent what was meant."""
    assert renderer.messages(renderer.start(conversation)) == conversation


@given(messages, utf8, st.booleans(), utf8)
def test_extension_keeps_every_id(conversation: list[Message], said: str, ended: bool, seen: str) -> None:
    """The next prompt starts with the last prompt and the sample, and reads as the whole conversation."""
    ids = renderer.start(conversation)
    sampled = [*renderer.encode(said), *([END] if ended else [])]
    extended = renderer.extend(ids, sampled, [Message("observation", seen)])
    assert extended is not None
    assert extended[: len(ids) + len(sampled)] == ids + sampled
    assert renderer.messages(extended) == [*conversation, Message("assistant", said), Message("observation", seen)]


@given(st.text())
def test_text_never_yields_a_special_id(text: str) -> None:
    """Observation text cannot forge a role or an end, even text that UTF-8 cannot carry."""
    assert all(0 <= ident < 256 for ident in renderer.encode(text))


@given(st.lists(st.integers(0, 300)))
def test_any_ids_decode(ids: list[int]) -> None:
    """Sampled ids always decode to text that can be stored."""
    renderer.decode(ids).encode()


def test_a_sample_that_holds_a_role_cannot_be_extended() -> None:
    """A role in the middle of a sample would read as another speaker's words, so the session starts over."""
    assert renderer.extend([ASSISTANT], [OBSERVATION, 65, END], []) is None


@pytest.mark.parametrize("ids", [[], [65], [ASSISTANT, 65], [65, ASSISTANT], [ASSISTANT, END], [256, 65, ASSISTANT]])
def test_ids_that_are_no_prompt_are_refused(ids: list[int]) -> None:
    """A prompt that is not one is an error, never a guess at what was meant."""
    with pytest.raises(PolicyRefused):
        renderer.messages([*ids])
