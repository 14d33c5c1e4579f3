"""A policy behind an OpenAI-compatible chat endpoint, for evaluation only.

Owns: `ChatPolicy`: ids → messages → one HTTP request → text → ids.
Invariant: the only errors are `PolicyError` (no answer: the attempt is masked) and `PolicyRefused` (an answer
that cannot be used).
Must not know: boxes, tasks, training.

Ids here are bytes (`ByteRenderer`), so a prompt decodes to the exact messages again, and budgets count bytes.
A chat endpoint does not return the ids and log-probabilities it sampled, so `trainable` is False; `http_tokens`
has the policy for servers that do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, ClassVar, Self

from practicum.errors import PolicyRefused
from practicum.policies.contract import Role, Sampled, SamplingParams
from practicum.policies.http_client import Endpoint, as_object, excerpt
from practicum.policies.protocol import SYSTEM_PROMPT
from practicum.policies.text import END, ByteRenderer

CHAT_VERSION = -1
_CHAT_ROLES: dict[Role, str] = {"task": "user", "assistant": "assistant", "observation": "user"}
_PATH = "/chat/completions"


class ChatPolicy:
    """Samples from `url` (`…/v1`, or the full `…/chat/completions`) as `model`.

    `system_prompt` tells the model how it is to act (empty: it is told nothing). The key, the deadline and the tries
    are those of `Endpoint`. Use as an async context manager. Raises `ConfigError` where the address or the key cannot
    be used.
    """

    trainable: ClassVar[bool] = False

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        deadline_s: float = 120.0,
        tries: int = 5,
        first_delay_s: float = 0.5,
        max_reply_tokens: int = 4096,
        system_prompt: str = SYSTEM_PROMPT,
    ) -> None:
        self._endpoint = Endpoint(
            url.rstrip("/").removesuffix(_PATH),
            api_key_env=api_key_env, deadline_s=deadline_s, tries=tries, first_delay_s=first_delay_s,
        )  # fmt: skip
        self._model = model
        self._max_reply_tokens = max_reply_tokens
        self._system_prompt = system_prompt
        self._renderer = ByteRenderer()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """One reply. It is cut at `params.max_tokens` bytes (`stop_reason` "length"); log-probabilities are 0.0."""
        body = self._request(prompt_ids, params)
        text, finished = await self._endpoint.ask(_PATH, body, _read_reply, jitter=f"{session}:{params.seed}")
        return self._sampled(text, finished, params.max_tokens)

    def session(self, name: str) -> AbstractContextManager[None]:
        """Nothing is held for a conversation: each request carries all of it."""
        return nullcontext()

    def _request(self, prompt_ids: Sequence[int], params: SamplingParams) -> dict[str, Any]:
        messages = [{"role": "system", "content": self._system_prompt}] if self._system_prompt else []
        for message in self._renderer.messages(prompt_ids):
            messages.append({"role": _CHAT_ROLES[message.role], "content": message.text})
        return {
            "model": self._model,
            "messages": messages,
            # Endpoints refuse to promise more tokens than their context holds; ours are bytes.
            "max_tokens": min(self._max_reply_tokens, params.max_tokens),
            "temperature": params.temperature,
            "seed": params.seed,
        }

    def _sampled(self, text: str, finished: bool, max_tokens: int) -> Sampled:
        ids = [*self._renderer.encode(text), *([END] if finished else [])]
        cut = tuple(ids[:max_tokens])
        whole = finished and len(cut) == len(ids)
        return Sampled(cut, (0.0,) * len(cut), "stop" if whole else "length", CHAT_VERSION)


def _read_reply(data: bytes) -> tuple[str, bool]:
    """The reply's text, and whether the model ended it."""
    reply = as_object(data)
    try:
        choice = reply["choices"][0]
        text, finish = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise PolicyRefused(f"the policy's reply is not a chat completion: {excerpt(data)}") from error
    if text is None:
        text = ""  # what a reasoning model that spent all its tokens thinking answers
    if not isinstance(text, str):
        raise PolicyRefused(f"the policy's reply has content that is not text: {excerpt(data)}")
    return text, finish != "length"
