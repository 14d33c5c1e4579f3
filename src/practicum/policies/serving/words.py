"""Texts and chats ⇄ ids for the model that is served, and answers as OpenAI's clients read them.

Owns: `Words`, `prompt_of`, `answer_of`.
Invariant: no text of a client yields a control id; what is answered is what was sampled.
Must not know: connections, engines.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from practicum.policies.contract import Message, Role, Sampled
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.vocabulary import PretrainedTokenizer
from practicum.policies.serving.requests import Chat, Completion, Refused, Said
from practicum.policies.speech import FENCE

_ROLES: dict[str, Role] = {"user": "task", "assistant": "assistant", "tool": "observation"}


class Words(Protocol):
    """A tokenizer: of a pretrained model, or of one's own."""

    @property
    def stop_ids(self) -> tuple[int, ...]: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Iterable[int]) -> str: ...


def prompt_of(words: Words, asked: Completion | Chat) -> tuple[int, ...]:
    """The ids to continue. Raises `Refused`, and `PolicyRefused` where the chat template fails."""
    if isinstance(asked, Completion):
        return asked.prompt if isinstance(asked.prompt, tuple) else tuple(words.encode(asked.prompt))
    if not isinstance(words, PretrainedTokenizer):
        raise Refused("this model has no chat template: ask for /v1/completions with token ids", param="messages")
    return tuple(_chat_ids(words, asked.messages))


def _chat_ids(words: PretrainedTokenizer, messages: Sequence[Said]) -> list[int]:
    system = messages[0].content if messages[0].role == "system" else ""
    observer = "tool" if any(each.role == "tool" for each in messages) else "user"
    renderer = ChatRenderer(words, replace(FENCE, system=system, observer=observer))
    told = messages[1:] if system else messages
    return renderer.start([Message(_ROLES[each.role], each.content) for each in told])


def answer_of(
    words: Words, asked: Completion | Chat, prompt: Sequence[int], sampled: Sampled, *, model: str, number: int
) -> dict[str, Any]:
    """The document that answers `asked`; the log-probabilities are those after the temperature, and it says so."""
    wanted = asked.wanted
    text = words.decode(sampled.ids)
    stopped = sampled.stop_reason == "stop"
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": sampled.stop_reason,
        "stop_reason": sampled.ids[-1] if stopped else None,
        "logprobs": None,
    }
    pieces = [words.decode([ident]) for ident in sampled.ids] if wanted.logprobs else []
    if isinstance(asked, Completion):
        choice["text"] = text
        if wanted.logprobs:
            choice["logprobs"] = {"tokens": pieces, "token_logprobs": list(sampled.logprobs)}
    else:
        choice["message"] = {"role": "assistant", "content": text}
        if wanted.logprobs:
            each = zip(pieces, sampled.logprobs, strict=True)
            content = [{"token": piece, "logprob": value, "top_logprobs": []} for piece, value in each]
            choice["logprobs"] = {"content": content}
    if wanted.return_ids:
        choice |= {"prompt_token_ids": list(prompt), "token_ids": list(sampled.ids)}
    kind = "text_completion" if isinstance(asked, Completion) else "chat.completion"
    return {
        "id": f"{'cmpl' if isinstance(asked, Completion) else 'chatcmpl'}-{number}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(sampled.ids),
            "total_tokens": len(prompt) + len(sampled.ids),
        },
        "weight_version": sampled.version,
        "logprobs_mode": "processed_logprobs",
    }
