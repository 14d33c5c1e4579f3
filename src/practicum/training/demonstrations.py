"""Demonstrations as training samples for the warm start.

Owns: conversations taken from trajectories, renaming them, and turning them into weighted samples.
Invariant: a renaming is applied to a whole conversation or not at all; words are only replaced as whole words.
Must not know: how demonstrations were made, models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from practicum.errors import TrainerError
from practicum.policies.contract import Message, Renderer
from practicum.records.sample import Sample
from practicum.records.trajectory import Trajectory


class MessageEncoder(Protocol):
    """What a renderer must offer here: the ids of one message, its role mark first."""

    def message_ids(self, message: Message) -> list[int]: ...


class SpokenRenderer(Renderer, Protocol):
    """A renderer that also gives the ids which a model would have sampled to say a text."""

    def encode(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One conversation, and the renamings under which it stays a sound one."""

    messages: tuple[Message, ...]
    renamings: tuple[Mapping[str, str], ...] = ()


def demonstration_of(
    trajectory: Trajectory, instruction: str, renamings: Sequence[Mapping[str, str]] = ()
) -> Demonstration:
    """The conversation that `trajectory` records."""
    messages = [Message("task", instruction)]
    for turn in trajectory.turns:
        messages += [Message("assistant", turn.text), Message("observation", turn.observation)]
    return Demonstration(tuple(messages), tuple(renamings))


def renamed(demonstration: Demonstration, renaming: Mapping[str, str]) -> Demonstration:
    """The same conversation about a project whose words are called otherwise."""
    if not renaming:
        return demonstration
    words = re.compile(r"\b(" + "|".join(re.escape(word) for word in renaming) + r")\b")
    messages = (
        Message(message.role, words.sub(lambda match: renaming[match.group(1)], message.text))
        for message in demonstration.messages
    )
    return Demonstration(tuple(messages))


def warm_start_sample(demonstration: Demonstration, encoder: MessageEncoder, *, prompt_weight: float) -> Sample:
    """One sample over the whole conversation: the assistant's tokens weigh 1, all others `prompt_weight`.

    The weight stands in `advantages`, which is what `losses.cross_entropy` multiplies by. The first token has
    nothing before it to be predicted from and weighs 0.
    """
    ids: list[int] = []
    weights: list[float] = []
    for message in demonstration.messages:
        fresh = encoder.message_ids(message)
        spoken = 1.0 if message.role == "assistant" else prompt_weight
        ids += fresh
        weights += [prompt_weight] + [spoken] * (len(fresh) - 1)  # the role mark is never the assistant's own
    weights[0] = 0.0
    mask = tuple(int(weight > 0) for weight in weights)
    return Sample(tuple(ids), mask, (0.0,) * len(ids), tuple(weights), 0)


def spoken_sample(demonstration: Demonstration, renderer: SpokenRenderer, *, prompt_weight: float) -> Sample:
    """`warm_start_sample` for a model whose template says what stands between turns.

    The ids are those that a session would have had in which the model said the same. Raises `TrainerError` where the
    template rewrites earlier turns, so that there is no one row.
    """
    first, *rest = demonstration.messages
    ids = renderer.start([first])
    weights = [0.0, *[prompt_weight] * (len(ids) - 1)]
    for said, seen in zip(rest[0::2], rest[1::2], strict=True):
        sampled = renderer.encode(said.text)
        extended = renderer.extend(ids, sampled, [seen])
        if extended is None:
            raise TrainerError("the model's chat template rewrites earlier turns: a demonstration is not one row")
        weights += [1.0] * len(sampled) + [prompt_weight] * (len(extended) - len(ids) - len(sampled))
        ids = extended
    mask = tuple(int(weight > 0) for weight in weights)
    return Sample(tuple(ids), mask, (0.0,) * len(ids), tuple(weights), 0)
