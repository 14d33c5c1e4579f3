"""A policy behind an OpenAI-compatible chat endpoint, for evaluation only.

Owns: `ChatPolicy`: ids → messages → one HTTP request → text → ids, with retries.
Invariant: the only errors are `PolicyError` (no answer: the attempt is masked) and `PolicyRefused` (an answer
that cannot be used); every wait ends by the deadline; the key never appears in a message.
Must not know: boxes, tasks, training.

Ids here are bytes (`ByteRenderer`), so a prompt decodes to the exact messages again, and budgets count bytes.
A chat endpoint does not return the ids and log-probabilities it sampled, so `trainable` is False.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import httpx

from practicum.errors import ConfigError, PolicyError, PolicyRefused
from practicum.policies.contract import Role, Sampled, SamplingParams
from practicum.policies.protocol import SYSTEM_PROMPT
from practicum.policies.text import END, ByteRenderer

CHAT_VERSION = -1
MAX_REPLY_BYTES = 8_000_000
_CHAT_ROLES: dict[Role, str] = {"task": "user", "assistant": "assistant", "observation": "user"}
_RETRIED = frozenset({408, 409, 425, 429})


class ChatPolicy:
    """Samples from `url` (`…/v1`, or the full `…/chat/completions`) as `model`.

    `api_key_env` names the environment variable that holds the bearer token. One `sample` takes at most
    `deadline_s` seconds, tries included; tries are `first_delay_s`, then twice as long, … apart, with jitter.
    Use as an async context manager. Raises `ConfigError` where the address or the key cannot be used.
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
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"policy address {url!r} is not an http address", fix="write e.g. http://host:8000/v1")
        self._key = _read_key(api_key_env) if api_key_env is not None else ""
        path = url.rstrip("/")
        try:
            self._url = httpx.URL(path if path.endswith("/chat/completions") else f"{path}/chat/completions")
        except httpx.InvalidURL as error:
            raise ConfigError(f"policy address {url!r} cannot be used: {error}") from error
        self._model = model
        self._deadline_s = deadline_s
        self._tries = tries
        self._first_delay_s = first_delay_s
        self._max_reply_tokens = max_reply_tokens
        self._system_prompt = system_prompt
        self._renderer = ByteRenderer()
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        # A proxy of the environment is meant for the world outside, never for a server on this host.
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        self._client = httpx.AsyncClient(headers=headers, timeout=deadline_s, trust_env=not local)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """One reply. It is cut at `params.max_tokens` bytes (`stop_reason` "length"); log-probabilities are 0.0."""
        body = self._request(prompt_ids, params)
        problem = "it was never reached"
        jitter = random.Random(f"{session}:{params.seed}")
        try:
            async with asyncio.timeout(self._deadline_s):
                for attempt in range(self._tries):
                    if attempt:
                        await asyncio.sleep(self._first_delay_s * 2 ** (attempt - 1) * (0.5 + jitter.random()))
                    try:
                        text, finished = await self._ask(body)
                    except _Unanswered as unanswered:
                        problem = unanswered.problem
                        continue
                    return self._sampled(text, finished, params.max_tokens)
        except TimeoutError:
            raise PolicyError(f"the policy did not answer within {self._deadline_s:g} s ({problem})") from None
        raise PolicyError(f"the policy did not answer in {self._tries} tries: {problem}")

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

    async def _ask(self, body: dict[str, Any]) -> tuple[str, bool]:
        """One request: the reply's text, and whether the model ended it. Raises `_Unanswered`, `PolicyRefused`."""
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                data = bytearray()
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > MAX_REPLY_BYTES:
                        raise PolicyRefused(f"the policy's reply is larger than {MAX_REPLY_BYTES} bytes")
                status = response.status_code
        except httpx.DecodingError as error:
            raise PolicyRefused(f"the policy's reply cannot be decoded: {error}") from error
        except httpx.TransportError as error:
            raise _Unanswered(f"{type(error).__name__} {error}".strip()) from error
        if status >= 500 or status in _RETRIED:
            raise _Unanswered(f"status {status}")
        if status != 200:
            raise PolicyRefused(f"the policy refused with status {status}: {self._without_key(_excerpt(data))}")
        return _read_reply(bytes(data))

    def _without_key(self, text: str) -> str:
        # Some servers quote the key that they refuse.
        return text.replace(self._key, "[key]") if self._key else text

    def _sampled(self, text: str, finished: bool, max_tokens: int) -> Sampled:
        ids = [*self._renderer.encode(text), *([END] if finished else [])]
        cut = tuple(ids[:max_tokens])
        whole = finished and len(cut) == len(ids)
        return Sampled(cut, (0.0,) * len(cut), "stop" if whole else "length", CHAT_VERSION)


def _read_key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"environment variable {variable} is not set", fix=f"export {variable}=…")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"environment variable {variable} holds characters that no HTTP header can carry")
    return key


class _Unanswered(Exception):
    """This try brought no answer; another may."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def _read_reply(data: bytes) -> tuple[str, bool]:
    try:
        reply = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PolicyRefused(f"the policy's reply is not JSON: {_excerpt(data)}") from error
    try:
        choice = reply["choices"][0]
        text, finish = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise PolicyRefused(f"the policy's reply is not a chat completion: {_excerpt(data)}") from error
    if text is None:
        text = ""  # what a reasoning model that spent all its tokens thinking answers
    if not isinstance(text, str):
        raise PolicyRefused(f"the policy's reply has content that is not text: {_excerpt(data)}")
    return text, finish != "length"


def _excerpt(data: bytes | bytearray) -> str:
    return bytes(data[:200]).decode("utf-8", "replace")
