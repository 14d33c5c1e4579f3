"""A renderer over plain bytes: one id a byte, and a few special ids for roles.

Owns: `ByteRenderer`.
Invariant: special ids are never produced from text, so no observation can forge a role or an end; text that
UTF-8 can carry survives `start` → `messages` unchanged; `extend` keeps the exact prefix.
Must not know: models, boxes. It needs no tokenizer, and so serves scripted policies and chat endpoints.

    <task> bytes <end>  <assistant> bytes <end>  <observation> bytes <end>  <assistant>
"""

from __future__ import annotations

from collections.abc import Sequence

from practicum.errors import PolicyRefused
from practicum.policies.contract import Message, Role
from practicum.policies.speech import TAGS, Speech
from practicum.records.trajectory import Action

TASK, ASSISTANT, OBSERVATION, END = 256, 257, 258, 259
_ROLE_IDS: dict[Role, int] = {"task": TASK, "assistant": ASSISTANT, "observation": OBSERVATION}
_ROLES: dict[int, Role] = {ident: role for role, ident in _ROLE_IDS.items()}


class ByteRenderer:
    """Renderer over UTF-8 bytes (ids 0–255) and `TASK`, `ASSISTANT`, `OBSERVATION`, `END`.

    What UTF-8 cannot carry becomes a replacement sign, in either direction; nothing here raises on text. Actions are
    read as `speech` reads them.
    """

    def __init__(self, speech: Speech = TAGS) -> None:
        self.speech = speech

    @property
    def stop_ids(self) -> tuple[int, ...]:
        return (END,)

    def encode(self, text: str) -> list[int]:
        """Ids of text that an assistant says, without the end."""
        return list(text.encode("utf-8", "replace"))

    def start(self, messages: Sequence[Message]) -> list[int]:
        return [ident for message in messages for ident in self._message(message)] + [ASSISTANT]

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int] | None:
        body = sampled[:-1] if sampled and sampled[-1] == END else sampled
        if any(not 0 <= ident < 256 for ident in body):
            # Kept as they are, these would read as a change of role in the next prompt.
            return None
        end = [] if len(body) < len(sampled) else [END]
        return [*ids, *sampled, *end, *self.start(messages)]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ident for ident in ids if 0 <= ident < 256).decode("utf-8", "replace")

    def parse(self, text: str) -> Action:
        return self.speech.read(text)

    def messages(self, ids: Sequence[int]) -> list[Message]:
        """The conversation that a prompt made by `start` or `extend` holds.

        Raises `PolicyRefused` where `ids` are not such a prompt.
        """
        if not ids or ids[-1] != ASSISTANT:
            raise PolicyRefused("the prompt does not end where the assistant is to speak")
        found: list[Message] = []
        role: Role | None = None
        body = bytearray()
        for position, ident in enumerate(ids[:-1]):
            if role is None and ident in _ROLES:
                role = _ROLES[ident]
            elif role is not None and ident == END:
                found.append(Message(role, body.decode("utf-8", "replace")))
                role = None
                body.clear()
            elif role is not None and 0 <= ident < 256:
                body.append(ident)
            else:
                raise PolicyRefused(f"id {ident} at {position} does not belong in a prompt of bytes")
        if role is not None:
            raise PolicyRefused("the last message of the prompt has no end")
        return found

    def _message(self, message: Message) -> list[int]:
        return [_ROLE_IDS[message.role], *self.encode(message.text), END]
