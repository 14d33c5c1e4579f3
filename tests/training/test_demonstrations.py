"""Demonstrations as samples."""

from __future__ import annotations

from practicum.policies.contract import Message
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.tokenizer import ASSISTANT, OBSERVATION, TASK, Tokenizer
from practicum.records.trajectory import Action, Trajectory, Turn
from practicum.training.demonstrations import Demonstration, demonstration_of, renamed, warm_start_sample

RENDERER = LocalRenderer(Tokenizer.train(["fix total in core.py", "<bash>cat core.py</bash>", "ok"] * 2, size=300))
SHOWN = Demonstration(
    (
        Message("task", "fix total in core.py"),
        Message("assistant", "<bash>cat core.py</bash>"),
        Message("observation", "def total(totals): core total_ core.total"),
        Message("assistant", "<submit>"),
    )
)


def test_the_conversation_of_a_trajectory() -> None:
    """What was said and seen is taken over in order, the instruction first."""
    turns = tuple(
        Turn(i, (1,), (2,), (0.0,), -1, "stop", text, Action("submit"), seen, "", "")
        for i, (text, seen) in enumerate([("<bash>ls</bash>", "a.py"), ("<submit>", "")])
    )
    found = demonstration_of(Trajectory("t", "g", "x", "d", turns, "submitted"), "do it", [{"a": "b"}])
    assert [(message.role, message.text) for message in found.messages] == [
        ("task", "do it"),
        ("assistant", "<bash>ls</bash>"),
        ("observation", "a.py"),
        ("assistant", "<submit>"),
        ("observation", ""),
    ]
    assert found.renamings == ({"a": "b"},)


def test_renaming_whole_words_everywhere_at_once() -> None:
    """Whole words are exchanged in every message, all at the same time; parts of words are left alone."""
    other = renamed(SHOWN, {"total": "core", "core": "total"})
    assert [message.text for message in other.messages] == [
        "fix core in total.py",
        "<bash>cat total.py</bash>",
        "def core(totals): total total_ total.core",
        "<submit>",
    ]
    assert renamed(SHOWN, {}) == SHOWN


def test_a_sample_is_the_conversation() -> None:
    """The ids are those a policy would have been shown and would have sampled, in full."""
    sample = warm_start_sample(SHOWN, RENDERER, prompt_weight=0.25)
    assert list(sample.input_ids) == RENDERER.start(SHOWN.messages)[:-1]
    assert len(sample.input_ids) == len(sample.loss_mask) == len(sample.advantages) == len(sample.behaviour_logprobs)


def test_weights() -> None:
    """What the assistant says weighs 1, all else `prompt_weight`, role marks too; the first token cannot train."""
    sample = warm_start_sample(SHOWN, RENDERER, prompt_weight=0.25)
    speaker = TASK
    for place, (ident, weight, mask) in enumerate(
        zip(sample.input_ids, sample.advantages, sample.loss_mask, strict=True)
    ):
        mark = ident in (TASK, ASSISTANT, OBSERVATION)
        speaker = ident if mark else speaker
        expected = 0.0 if place == 0 else 1.0 if speaker == ASSISTANT and not mark else 0.25
        assert (weight, mask) == (expected, int(expected > 0))


def test_without_prompt_weight_only_the_assistant_trains() -> None:
    """At weight 0 the other tokens are masked out, not merely light."""
    sample = warm_start_sample(SHOWN, RENDERER, prompt_weight=0.0)
    spoken = [len(RENDERER.encode(message.text)) for message in SHOWN.messages if message.role == "assistant"]
    assert sum(sample.loss_mask) == sum(spoken) == sum(sample.advantages)
