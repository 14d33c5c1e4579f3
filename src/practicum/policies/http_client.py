"""One HTTP server that is asked for JSON: address, key, deadline, tries.

Owns: `Endpoint`, `Unanswered`, `as_object`.
Invariant: the only errors are `PolicyError` (no answer) and `PolicyRefused` (an answer that cannot be used), and
`ConfigError` before the first request; every wait ends by the deadline; the key never appears in a message.
Must not know: what is asked, what is read from an answer.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from practicum.errors import ConfigError, PolicyError, PolicyRefused

MAX_REPLY_BYTES = 8_000_000
_RETRIED = frozenset({408, 409, 425, 429})
Found = TypeVar("Found")


class Unanswered(Exception):
    """This try brought no answer; another may, after at least `after_s` seconds."""

    def __init__(self, problem: str, after_s: float = 0.0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.after_s = after_s


class Endpoint:
    """The server at `url`; requests name a path below it, or none.

    `api_key_env` names the environment variable that holds the bearer token. One request takes at most `deadline_s`
    seconds, tries included; tries are `first_delay_s`, then twice as long, … apart, with jitter, and no sooner than
    the server says. Raises `ConfigError` where the address or the key cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key_env: str | None = None,
        deadline_s: float = 120.0,
        tries: int = 5,
        first_delay_s: float = 0.5,
    ) -> None:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise ConfigError(f"policy address {url!r} cannot be used: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"policy address {url!r} is not an http address", fix="write e.g. http://host:8000/v1")
        self._key = _read_key(api_key_env) if api_key_env is not None else ""
        try:
            self.url = str(httpx.URL(url.rstrip("/")))
        except httpx.InvalidURL as error:
            raise ConfigError(f"policy address {url!r} cannot be used: {error}") from error
        self._deadline_s = deadline_s
        self._tries = tries
        self._first_delay_s = first_delay_s
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        # A proxy of the environment is meant for the world outside, never for a server on this host.
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        # The deadline alone bounds the wait for a connection of the pool, which may be as large as the work needs.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx.AsyncClient(headers=headers, timeout=deadline_s, trust_env=not local, limits=limits)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def ask(
        self, path: str, body: Mapping[str, Any] | None, read: Callable[[bytes], Found], *, jitter: str = ""
    ) -> Found:
        """What `read` makes of the answer to `body` (None: a GET).

        `read` raises `PolicyRefused`, or `Unanswered` where the answer says that it is none. `jitter` seeds the waits.
        """
        problem = "it was never reached"
        source = random.Random(jitter)
        try:
            async with asyncio.timeout(self._deadline_s):
                wait_s = 0.0
                for attempt in range(self._tries):
                    if attempt:
                        backoff = self._first_delay_s * 2 ** (attempt - 1) * (0.5 + source.random())
                        await asyncio.sleep(max(backoff, wait_s))
                    try:
                        return read(await self._once(path, body))
                    except Unanswered as unanswered:
                        problem, wait_s = unanswered.problem, unanswered.after_s
        except TimeoutError:
            raise PolicyError(f"the policy did not answer within {self._deadline_s:g} s ({problem})") from None
        raise PolicyError(f"the policy did not answer in {self._tries} tries: {problem}")

    async def _once(self, path: str, body: Mapping[str, Any] | None) -> bytes:
        """One request: the bytes of a good answer. Raises `Unanswered`, `PolicyRefused`."""
        method = "GET" if body is None else "POST"
        try:
            async with self._client.stream(method, f"{self.url}{path}", json=body) as response:
                data = bytearray()
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > MAX_REPLY_BYTES:
                        raise PolicyRefused(f"the policy's reply is larger than {MAX_REPLY_BYTES} bytes")
                status = response.status_code
                after_s = _seconds(response.headers.get("Retry-After"))
        except httpx.DecodingError as error:
            raise PolicyRefused(f"the policy's reply cannot be decoded: {error}") from error
        except httpx.TransportError as error:
            raise Unanswered(f"{type(error).__name__} {error}".strip()) from error
        if status >= 500 or status in _RETRIED:
            raise Unanswered(f"status {status}", after_s)
        if status != 200:
            raise PolicyRefused(f"the policy refused with status {status}: {self._without_key(excerpt(data))}")
        return bytes(data)

    def _without_key(self, text: str) -> str:
        # Some servers quote the key that they refuse.
        return text.replace(self._key, "[key]") if self._key else text


def as_object(data: bytes) -> dict[str, Any]:
    """The JSON object that `data` is. Raises `PolicyRefused`."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PolicyRefused(f"the policy's reply is not JSON: {excerpt(data)}") from error
    if not isinstance(found, dict):
        raise PolicyRefused(f"the policy's reply is not a JSON object: {excerpt(data)}")
    return found


def excerpt(data: bytes | bytearray) -> str:
    """The beginning of a reply, for a message."""
    return bytes(data[:200]).decode("utf-8", "replace")


def _seconds(text: str | None) -> float:
    """A `Retry-After` in seconds; one that is a date, or nonsense, says nothing."""
    try:
        found = float(text) if text is not None else 0.0
    except ValueError:
        return 0.0
    return found if math.isfinite(found) and found > 0 else 0.0


def _read_key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"environment variable {variable} is not set", fix=f"export {variable}=…")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"environment variable {variable} holds characters that no HTTP header can carry")
    return key
