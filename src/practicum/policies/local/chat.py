"""Messages ⇄ ids by a model's own chat template.

Owns: `ChatRenderer`, `Bridge`, `bridge_of`.
Invariant: `extend` keeps every earlier id, or says None; no content of a message yields a control id, because the
template's words and the contents are encoded apart; a template runs in a sandbox and sees nothing but the messages.
Must not know: models, boxes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from practicum.errors import PolicyRefused
from practicum.policies.contract import Message
from practicum.policies.local.vocabulary import PretrainedTokenizer
from practicum.policies.speech import Speech
from practicum.records.trajectory import Action

_MARK = "\ue000{}\ue001"  # private use: no template writes it, and it stands for one content
_MARKED = re.compile("\ue000(\\d+)\ue001")
Chat = list[dict[str, str]]


class Template:
    """A chat template, compiled. Raises `PolicyRefused` where it cannot be, or fails on a conversation."""

    def __init__(self, text: str) -> None:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self._error = TemplateError
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
        environment.globals["raise_exception"] = self._refuse
        try:
            self._template = environment.from_string(text)
        except TemplateError as error:
            raise PolicyRefused(f"the chat template cannot be read: {error}") from error

    @staticmethod
    def _refuse(message: str) -> None:
        raise PolicyRefused(f"the chat template refuses the conversation: {message}")

    def render(self, chat: Chat, *, asks: bool = True, **more: Any) -> str:
        """The conversation as text, which with `asks` ends where the model is to speak."""
        try:
            return self._template.render(messages=chat, add_generation_prompt=asks, bos_token="", eos_token="", **more)
        except (self._error, TypeError, KeyError, IndexError, AttributeError) as error:
            raise PolicyRefused(f"the chat template fails on a conversation: {error}") from error


@dataclass(frozen=True, slots=True)
class Bridge:
    """How a template goes on after what the model said. `problem` says why it cannot, else `words` hold what stands
    between the end of the model's text and the first observation, between two observations, and after the last."""

    words: tuple[str, str, str] = ("", "", "")
    problem: str | None = None


def bridge_of(template: Template, observer: str) -> Bridge:
    """What `template` writes between turns, found by rendering; a problem where it rewrites what came before."""
    user, said, seen, more = (_MARK.format(i) for i in range(4))
    start: Chat = [{"role": "user", "content": user}]
    before = template.render(start)
    one: Chat = [*start, {"role": "assistant", "content": said}, {"role": observer, "content": seen}]
    two: Chat = [*one, {"role": "assistant", "content": more}, {"role": observer, "content": user}]
    first, second = template.render(one), template.render(two)
    if not first.startswith(before + said):
        return Bridge(problem="what stood before the model's turn is written otherwise once it has spoken")
    after = first[len(before + said) :]
    opening, found, closing = after.partition(seen)
    if not found:
        return Bridge(problem=f"it leaves out messages of the role {observer!r}")
    if second != first + more + after.replace(seen, user):
        return Bridge(problem="earlier turns are written otherwise once there are more of them")
    both = template.render([*one, {"role": observer, "content": more}])
    between = both.removeprefix(before + said + opening + seen).removesuffix(more + closing)
    return Bridge((opening, between, closing))


class ChatRenderer:
    """A `Renderer` by the template of `tokenizer`, for a model that acts by `speech`."""

    def __init__(self, tokenizer: PretrainedTokenizer, speech: Speech) -> None:
        self.tokenizer = tokenizer
        self.speech = speech
        self._template = Template(tokenizer.template)
        self.bridge = bridge_of(self._template, speech.observer)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        return self.tokenizer.stop_ids

    def start(self, messages: Sequence[Message]) -> list[int]:
        contents = [message.text for message in messages]
        roles: Mapping[str, str] = {"task": "user", "assistant": "assistant", "observation": self.speech.observer}
        chat: Chat = [{"role": roles[message.role], "content": _MARK.format(i)} for i, message in enumerate(messages)]
        if self.speech.system:
            chat.insert(0, {"role": "system", "content": _MARK.format(len(contents))})
            contents.append(self.speech.system)
        return self._ids(self._template.render(chat), contents)

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int] | None:
        if self.bridge.problem is not None:
            return None
        opening, between, closing = self.bridge.words
        fresh = self.tokenizer.encode_template(opening)
        if sampled and sampled[-1] in self.stop_ids and fresh[:1] == [sampled[-1]]:
            fresh = fresh[1:]  # the model closed its turn itself
        for number, message in enumerate(messages):
            fresh += self.tokenizer.encode_template(between) if number else []
            fresh += self.tokenizer.encode(message.text)
        return [*ids, *sampled, *fresh, *self.tokenizer.encode_template(closing)]

    def _ids(self, text: str, contents: Sequence[str]) -> list[int]:
        ids: list[int] = []
        for number, part in enumerate(_MARKED.split(text)):
            words = number % 2 == 0
            ids += self.tokenizer.encode_template(part) if words else self.tokenizer.encode(contents[int(part)])
        return ids

    def encode(self, text: str) -> list[int]:
        """Ids that a model would have sampled to say `text`, with the one that ends its turn."""
        return [*self.tokenizer.encode(text), self.stop_ids[0]]

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def parse(self, text: str) -> Action:
        return self.speech.read(text)
