"""Messages ⇄ ids for the local engine's own models.

Owns: the turn layout: role mark, text, …, `ASSISTANT` mark, then the policy speaks until a closing tag.
Invariant: `extend` keeps every earlier id as it was; observation text never yields a control id.
Must not know: models, boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from practicum.policies.contract import Message
from practicum.policies.local.tokenizer import ASSISTANT, OBSERVATION, TASK, Tokenizer
from practicum.policies.protocol import parse_action
from practicum.records.trajectory import Action


class LocalRenderer:
    """A `Renderer` over a `Tokenizer`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @property
    def stop_ids(self) -> tuple[int, ...]:
        return self.tokenizer.stop_ids

    def start(self, messages: Sequence[Message]) -> list[int]:
        return [*(i for message in messages for i in self.message_ids(message)), ASSISTANT]

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int] | None:
        fresh = (i for message in messages for i in self.message_ids(message))
        return [*ids, *sampled, *fresh, ASSISTANT]

    def message_ids(self, message: Message) -> list[int]:
        """Ids of one message, its role mark first; only an assistant's tags become control ids."""
        if message.role == "assistant":
            return [ASSISTANT, *self.tokenizer.encode_action(message.text)]
        return [TASK if message.role == "task" else OBSERVATION, *self.tokenizer.encode(message.text)]

    def encode(self, text: str) -> list[int]:
        """Ids that a model would have sampled to say `text`."""
        return self.tokenizer.encode_action(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def parse(self, text: str) -> Action:
        return parse_action(text)
