"""The small tokenizer: lossless, and impossible to forge a turn boundary with."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from practicum.errors import PolicyRefused
from practicum.policies.contract import Message
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.tokenizer import ASSISTANT, OBSERVATION, PAD, TAGS, TASK, Tokenizer, split_pieces
from practicum.policies.protocol import format_action
from practicum.policies.scripted import script_policy
from practicum.records.trajectory import Action

CORPUS = ["def f(a, b):\n    return a + b\n", "if total >= limit:\n        total -= 1\n", "<bash>cat a.py</bash>"] * 2
TOKENIZER = Tokenizer.train(CORPUS, size=330)
CONTROL = frozenset(range(4 + len(TAGS)))

# Ordinary text, code of the corpus, tags and whatever else, in any order.
PARTS = st.one_of(st.text(), st.sampled_from([*CORPUS, *TAGS, "\0", "\ufffe", "é", "\U0001f600", "\r\n"]))
TEXTS = st.lists(PARTS, max_size=6).map("".join)


@given(TEXTS)
def test_plain_text_survives(text: str) -> None:
    """Any text that UTF-8 can carry, NUL and tags included, decodes to itself, and no id of it is a control id."""
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert CONTROL.isdisjoint(ids)
    assert all(0 <= ident < TOKENIZER.size for ident in ids)


@given(st.binary(max_size=40))
def test_any_bytes_survive(data: bytes) -> None:
    """Bytes that are not UTF-8, as escapes, come through as the same bytes."""
    text = data.decode("utf-8", "surrogateescape")
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text(st.characters(categories=["Cs", "L"])))
@example("a\ud800b")
def test_no_text_is_too_odd(text: str) -> None:
    """Lone surrogates, which stand for no byte, are never a reason to fail."""
    assert CONTROL.isdisjoint(TOKENIZER.encode(text))


def test_lone_surrogates_become_question_marks() -> None:
    """What cannot be carried shows as `?`, and its neighbours are kept."""
    assert TOKENIZER.decode(TOKENIZER.encode("a\ud800b\udfff")) == "a?b?"


@given(TEXTS)
def test_actions_survive(text: str) -> None:
    """An assistant's text decodes to itself, and its tags, and nothing else, are control ids."""
    ids = TOKENIZER.encode_action(text)
    assert TOKENIZER.decode(ids) == text
    control = [ident for ident in ids if ident in CONTROL]
    assert {PAD, TASK, ASSISTANT, OBSERVATION}.isdisjoint(control)
    assert len(control) == sum(text.count(tag) for tag in TAGS)


@given(st.lists(st.integers(0, TOKENIZER.size - 1), max_size=40))
def test_every_id_decodes(ids: list[int]) -> None:
    """Whatever a model samples has a text."""
    assert isinstance(TOKENIZER.decode(ids), str)


@given(TEXTS)
def test_pieces_are_the_text(text: str) -> None:
    """Cutting loses nothing."""
    assert "".join(split_pieces(text)) == text


def test_frequent_pieces_are_one_id() -> None:
    """What the training texts repeat costs one id; the rest costs its bytes."""
    assert len(TOKENIZER.encode("total")) == 1
    assert len(TOKENIZER.encode("é")) == 2


def test_training_is_reproducible_and_bounded() -> None:
    """The order of the texts does not matter, and the size is kept."""
    again = Tokenizer.train(reversed(CORPUS), size=330)
    assert again.pieces == TOKENIZER.pieces
    assert Tokenizer.train(CORPUS, size=270).size == 270
    assert Tokenizer.train(CORPUS, size=1).pieces == ()


def test_json_round_trip() -> None:
    """A tokenizer that was written and read gives the same ids, whatever its pieces hold."""
    odd = Tokenizer([*TOKENIZER.pieces, "\0", "é", '"'])
    again = Tokenizer.from_json(odd.to_json())
    assert again.pieces == odd.pieces


@pytest.mark.parametrize("text", ["{}", "[]", "", "{", json.dumps({"format": "practicum-tokenizer-1"})])
def test_other_json_is_refused(text: str) -> None:
    """A file that is no tokenizer is refused in the project's words."""
    with pytest.raises(PolicyRefused, match=r"tokenizer\.json"):
        Tokenizer.from_json(text)


def test_stop_ids_end_an_action() -> None:
    """Each action's text ends in a stop id, and holds no other."""
    for action in (
        Action("bash", {"command": "ls"}),
        Action("edit", {"path": "a", "old": "<", "new": ">"}),
        Action("submit"),
    ):
        ids = TOKENIZER.encode_action(format_action(action))
        assert ids[-1] in TOKENIZER.stop_ids
        assert not set(ids[:-1]) & set(TOKENIZER.stop_ids)


@given(TEXTS, TEXTS)
def test_observations_cannot_forge_a_turn(task: str, observation: str) -> None:
    """However a task or an observation reads, a conversation holds exactly the role marks of its messages."""
    renderer = LocalRenderer(TOKENIZER)
    start = renderer.start([Message("task", task)])
    said = renderer.encode("<bash>ls</bash>")
    longer = renderer.extend(start, said, [Message("observation", observation)])
    assert longer is not None
    assert longer[: len(start) + len(said)] == start + said
    marks = [ident for ident in longer if ident in CONTROL and ident <= OBSERVATION]
    assert marks == [TASK, ASSISTANT, OBSERVATION, ASSISTANT]
    assert longer == renderer.start(
        [Message("task", task), Message("assistant", "<bash>ls</bash>"), Message("observation", observation)]
    )


def test_a_script_can_drive_it() -> None:
    """A scripted policy speaks through the local renderer, and what it said parses to the action."""
    import asyncio

    from practicum.policies.contract import SamplingParams

    renderer = LocalRenderer(TOKENIZER)
    policy = script_policy(renderer, "cat a.py")
    with policy.session("s"):
        sampled = asyncio.run(policy.sample([TASK], SamplingParams(max_tokens=64), session="s"))
    assert renderer.parse(renderer.decode(sampled.ids)) == Action("bash", {"command": "cat a.py"})
    assert sampled.ids[-1] in renderer.stop_ids
