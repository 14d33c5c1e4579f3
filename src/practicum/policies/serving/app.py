"""The server's answers: who may ask, how many at a time, for how long, and what comes back.

Owns: `Limits`, `Service`: the routes, the places, the conversations whose caches are kept.
Invariant: every request is answered, by a sample that is stamped with the version of the weights that made it or by an
error that says why; a client that went away, or a deadline that passed, frees the engine; weights that do not fit never
reach it.
Must not know: sockets, signals, where weights lie.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from practicum.errors import PolicyRefused, PracticumError
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.local.engine import LocalEngine
from practicum.policies.serving.requests import Chat, Completion, Load, Refused, read_chat, read_completion, read_load
from practicum.policies.serving.words import Words, answer_of, prompt_of

_log = logging.getLogger(__name__)
_GONE = 499  # as nginx logs it; nobody reads it
_RETRY_AFTER_S = 1
Weights = Callable[[Load], Mapping[str, Any]]
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Limits:
    """`queue`: requests at a time, waiting ones included. `deadline_s`: the longest that one may take, in seconds.

    `kept`: conversations whose caches are kept between their requests.
    """

    queue: int = 256
    deadline_s: float = 600.0
    kept: int = 32


class Service:
    """`engine`'s model under the name `name`.

    `weights` fetches what a `Load` names, and raises `PracticumError`; None: this server keeps its weights. With a
    `key`, all but `/health` need it as a bearer token.
    """

    def __init__(
        self,
        engine: LocalEngine,
        words: Words,
        name: str,
        *,
        weights: Weights | None = None,
        limits: Limits | None = None,
        key: str | None = None,
    ) -> None:
        self.engine = engine
        self.name = name
        self._words = words
        self._weights = weights
        self._limits = limits or Limits()
        self._key = key
        self._busy: set[str] = set()
        self._asked = 0  # requests that have a place now
        self._kept: OrderedDict[str, AbstractContextManager[None]] = OrderedDict()
        self._numbers = itertools.count(1)
        self._since = int(time.time())
        self._loading = asyncio.Lock()

    def app(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route("/health", self._guarded(self._health, open_to_all=True), methods=["GET"]),
            Route("/v1/models", self._guarded(self._models), methods=["GET"]),
            Route("/v1/completions", self._guarded(self._completion), methods=["POST"]),
            Route("/v1/chat/completions", self._guarded(self._chat), methods=["POST"]),
            Route("/v1/load", self._guarded(self._load), methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _guarded(
        self, answer: Callable[[Request], Awaitable[Mapping[str, Any]]], *, open_to_all: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """`answer`, with every error as a document."""

        async def guarded(request: Request) -> Response:
            try:
                if not open_to_all:
                    self._authorise(request)
                return _json(await answer(request))
            except Refused as refused:
                problem = refused
            except PolicyRefused as error:
                problem = Refused(error.message)
            except PracticumError as error:
                _log.error("%s", error)
                problem = Refused(error.message, status=500)
            except ClientDisconnect:
                return Response(status_code=_GONE)
            except asyncio.CancelledError:  # only the end of the server does that
                problem = Refused("the server is ending", status=503)
            headers = {"Retry-After": str(problem.retry_after_s)} if problem.retry_after_s else None
            return _json(problem.document(), problem.status, headers)

        return guarded

    def _authorise(self, request: Request) -> None:
        given = request.headers.get("Authorization", "").encode()
        if self._key is not None and not hmac.compare_digest(given, f"Bearer {self._key}".encode()):
            raise Refused("the key is missing or wrong", status=401)

    async def _health(self, _request: Request) -> Mapping[str, Any]:
        return {"status": "ok", "weight_version": self.engine.generator.version, "requests": self._asked}

    async def _models(self, _request: Request) -> Mapping[str, Any]:
        generator = self.engine.generator
        one = {
            "id": self.name,
            "object": "model",
            "created": self._since,
            "owned_by": "practicum",
            "max_model_len": generator.model.shape.context,
            "weight_version": generator.version,
        }
        return {"object": "list", "data": [one]}

    async def _completion(self, request: Request) -> Mapping[str, Any]:
        return await self._in_place(request, lambda data: self._answer(read_completion(data)))

    async def _chat(self, request: Request) -> Mapping[str, Any]:
        return await self._in_place(request, lambda data: self._answer(read_chat(data)))

    async def _load(self, request: Request) -> Mapping[str, Any]:
        # Not counted: new weights are not to wait for a queue that may never be empty.
        return await self._in_time(request, lambda data: self._take(read_load(data)))

    async def _in_place(self, request: Request, work: Callable[[bytes], Awaitable[Done]]) -> Done:
        """`_in_time`, in one of the places."""
        if self._asked >= self._limits.queue:
            raise Refused(
                f"{self._asked} requests are being answered; try again later",
                status=429, retry_after_s=_RETRY_AFTER_S,
            )  # fmt: skip
        self._asked += 1
        try:
            return await self._in_time(request, work)
        finally:
            self._asked -= 1

    async def _in_time(self, request: Request, work: Callable[[bytes], Awaitable[Done]]) -> Done:
        """What `work` makes of the request's body, by the deadline, while the client is there."""
        try:
            async with asyncio.timeout(self._limits.deadline_s):
                data = await self._body(request)
                return await _while_there(request, work(data))
        except TimeoutError:
            raise Refused(f"not done within {self._limits.deadline_s:g} s", status=504) from None

    async def _body(self, request: Request) -> bytes:
        # A page that a browser shows may send other types to any address without asking first.
        if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused("the content type is application/json", status=415)
        most = 65_536 + 64 * self.engine.generator.model.shape.context
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > most:
                raise Refused(f"the request is larger than {most} bytes", status=413)
        return bytes(data)

    async def _answer(self, asked: Completion | Chat) -> Mapping[str, Any]:
        wanted = asked.wanted
        if wanted.model not in (None, "default", self.name):
            raise Refused(f"there is no model {wanted.model!r}; this is {self.name!r}", status=404, param="model")
        prompt = prompt_of(self._words, asked)
        own = self._words.stop_ids if wanted.own_stops else ()
        room = self.engine.generator.model.shape.context - len(prompt)
        params = SamplingParams(
            max_tokens=room if wanted.max_tokens is None else wanted.max_tokens,
            temperature=wanted.temperature,
            stop_ids=tuple(dict.fromkeys((*wanted.stop_ids, *own))),
            seed=secrets.randbits(31) if wanted.seed is None else wanted.seed,
        )
        number = next(self._numbers)
        with self._session(wanted.session, number) as session:
            sampled: Sampled = await self.engine.sample(prompt, params, session=session)
        return answer_of(self._words, asked, prompt, sampled, model=self.name, number=number)

    @contextmanager
    def _session(self, wanted: str | None, number: int) -> Iterator[str]:
        """The engine's name for the conversation; its cache is kept where `wanted` names it and it is not in use."""
        name = f"kept:{wanted}"
        if wanted is None or name in self._busy or not self._limits.kept:
            yield f"once:{number}"
            return
        self._busy.add(name)
        try:
            if name not in self._kept:
                self._kept[name] = self.engine.session(name)
                self._kept[name].__enter__()
            self._kept.move_to_end(name)
            yield name
        finally:
            self._busy.discard(name)
            for old in [each for each in self._kept if each not in self._busy][: -self._limits.kept]:
                self._kept.pop(old).__exit__(None, None, None)

    async def _take(self, load: Load) -> Mapping[str, Any]:
        if self._weights is None:
            raise Refused("this server keeps the weights that it began with", status=403)
        async with self._loading:
            state = await asyncio.to_thread(self._fitting, load)
            await self.engine.load(dict(state), load.version)
        return {"version": load.version}

    def _fitting(self, load: Load) -> Mapping[str, Any]:
        """The weights, once they are known to be of this model: the engine's own could not be had back otherwise."""
        assert self._weights is not None
        state = self._weights(load)
        here = self.engine.generator.model.state_dict()
        if {name: value.shape for name, value in state.items()} != {name: value.shape for name, value in here.items()}:
            raise PolicyRefused(f"the weights of version {load.version} are of another model")
        broken = sorted(name for name, value in state.items() if not bool(value.isfinite().all()))
        if broken:
            raise PolicyRefused(f"version {load.version} has weights that are not finite: {broken[0]}")
        return state


def _json(document: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    # Escaped to ASCII: what a client wrote, and is quoted, may hold what UTF-8 cannot.
    return Response(json.dumps(document, allow_nan=False), status, headers, "application/json")


async def _while_there(request: Request, work: Awaitable[Done]) -> Done:
    """What `work` comes to. Raises `ClientDisconnect`, and ends `work`, where nobody waits for it any more."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())  # the body has been read, so what comes next is the end
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)
