"""Batched sampling from a local model, token ids in and out.

Owns: the key/value caches of open sessions, weight versions, batch formation.
Invariant: every sampled id comes with its log-probability under exactly the weights whose version is stamped on
it; the caches are never the truth: a prompt is always fed from its ids.
Must not know: training, boxes, text.

Batches form by barrier: requests wait until every open session has one pending (or has closed), so the batch
composition, and with it every sampled id, depends on seeds alone. `gather_s` bounds the wait when it is not
infinite: then a batch starts once the oldest request has waited that long, faster but not reproducible.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from practicum.errors import PolicyError, PolicyRefused
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.local.model import Cache, Decoder


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to continue, for one session."""

    session: str
    prompt: tuple[int, ...]
    params: SamplingParams


@dataclass
class _Held:
    """What a session's cache holds: `ids` and their keys and values, each [layers, heads, T, head width]."""

    ids: tuple[int, ...]
    keys: Tensor
    values: Tensor


class Generator:
    """Synchronous batched generation with prefix reuse within a session and between equal prompts."""

    def __init__(self, model: Decoder, *, version: int = 0) -> None:
        self.model = model
        self.version = version
        self._held: dict[str, _Held] = {}

    def load(self, state: dict[str, Tensor], version: int) -> None:
        """Take new weights; every cache computed under the old ones is dropped."""
        self.model.load_state_dict(state, strict=True)
        self.version = version
        self._held.clear()

    def forget(self, session: str) -> None:
        self._held.pop(session, None)

    def check(self, request: Request) -> None:
        """Raises `PolicyRefused` for an empty prompt, one that leaves no room in the context, or an unknown id."""
        shape, prompt, most = self.model.shape, request.prompt, request.params.max_tokens
        if most < 1 or not prompt or len(prompt) + most > shape.context:
            raise PolicyRefused(f"{len(prompt)} prompt and {most} new tokens do not fit a context of {shape.context}")
        if max(prompt) >= shape.vocabulary or min(prompt) < 0:
            raise PolicyRefused("the prompt holds an id outside the vocabulary")

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Sampled]:
        """Continue all `requests` (in any number); results in the same order.

        Raises `PolicyRefused` where `check` does, `PolicyError` if the logits are not finite.
        """
        for request in requests:
            self.check(request)
        unique = list(dict.fromkeys(request.prompt for request in requests))
        where = {prompt: i for i, prompt in enumerate(unique)}
        rows = torch.tensor([where[request.prompt] for request in requests])
        # A row that has ended is still fed until the longest ends, hence the room for the most tokens of all.
        room = max(len(r.prompt) for r in requests) + max(r.params.max_tokens for r in requests)
        small, hidden = self._prefill(unique, requests, room)
        cache = Cache(small.keys[:, rows], small.values[:, rows], small.lengths[rows])
        return self._decode(requests, cache, hidden[rows])

    def _prefill(self, unique: list[tuple[int, ...]], requests: Sequence[Request], room: int) -> tuple[Cache, Tensor]:
        shape = self.model.shape
        size = (shape.layers, len(unique), shape.heads, room, shape.width // shape.heads)
        cache = Cache(torch.zeros(size), torch.zeros(size), torch.zeros(len(unique), dtype=torch.long))
        by_prompt: dict[tuple[int, ...], _Held] = {}
        for request in requests:
            held = self._held.get(request.session)
            if held is not None and request.prompt not in by_prompt:
                by_prompt[request.prompt] = held
        fresh: list[list[int]] = []
        for i, prompt in enumerate(unique):
            held = by_prompt.get(prompt)
            kept = 0
            if held is not None:
                # The last prompt token is always fed, since its hidden state starts the decoding.
                kept = min(_common(prompt, held.ids), len(prompt) - 1)
                cache.keys[:, i, :, :kept] = held.keys[:, :, :kept]
                cache.values[:, i, :, :kept] = held.values[:, :, :kept]
            cache.lengths[i] = kept
            fresh.append(list(prompt[kept:]))
        counts = torch.tensor([len(row) for row in fresh])
        longest = int(counts.max())
        # Padding writes past a row's end, so the buffers need that much slack.
        slack = max(0, int((cache.lengths + longest).max()) - room)
        if slack:
            pad = torch.zeros((*size[:3], slack, size[4]))
            cache = Cache(torch.cat((cache.keys, pad), 3), torch.cat((cache.values, pad), 3), cache.lengths)
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in fresh])
        return cache, self.model.step(ids, cache, counts)

    def _decode(self, requests: Sequence[Request], cache: Cache, hidden: Tensor) -> list[Sampled]:
        limits = [request.params.max_tokens for request in requests]
        uniform = _uniforms(requests, max(limits))
        temperature = torch.tensor([request.params.temperature for request in requests], dtype=torch.float32)
        out: list[list[int]] = [[] for _ in requests]
        logprobs: list[list[float]] = [[] for _ in requests]
        stopped = [False] * len(requests)
        for step in range(max(limits)):
            chosen, logprob = _choose(self.model.logits(hidden), temperature, uniform[:, step])
            ids, lps = chosen.tolist(), logprob.tolist()
            for i, request in enumerate(requests):
                if stopped[i] or len(out[i]) >= limits[i]:
                    continue
                if not math.isfinite(lps[i]):
                    raise PolicyError("the model's logits are not finite", fix="go back to the last good checkpoint")
                out[i].append(ids[i])
                logprobs[i].append(lps[i])
                stopped[i] = ids[i] in request.params.stop_ids
            if all(s or len(o) >= limit for s, o, limit in zip(stopped, out, limits, strict=True)):
                break
            hidden = self.model.step(chosen[:, None], cache, torch.ones_like(chosen))
        self._keep(requests, out, cache)
        return [
            Sampled(tuple(o), tuple(lp), "stop" if s else "length", self.version)
            for o, lp, s in zip(out, logprobs, stopped, strict=True)
        ]

    def _keep(self, requests: Sequence[Request], out: list[list[int]], cache: Cache) -> None:
        for i, request in enumerate(requests):
            # The last sampled id has not been fed, so the cache holds one token less than the conversation.
            ids = request.prompt + tuple(out[i][:-1])
            keys, values = cache.keys[:, i, :, : len(ids)].clone(), cache.values[:, i, :, : len(ids)].clone()
            self._held[request.session] = _Held(ids, keys, values)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    length = min(len(a), len(b))
    return next((i for i in range(length) if a[i] != b[i]), length)


def _uniforms(requests: Sequence[Request], steps: int) -> Tensor:
    """Uniform numbers [B, steps], each row from its own request's seed."""
    return torch.from_numpy(np.stack([np.random.default_rng(r.params.seed).random(steps) for r in requests]))


def _choose(logits: Tensor, temperature: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """One id a row [B] by inverse transform, and its log-probability [B] under the distribution sampled from."""
    greedy = temperature == 0
    scaled = logits / torch.where(greedy, torch.ones_like(temperature), temperature)[:, None]
    logprobs = scaled.log_softmax(-1)
    cumulative = logprobs.double().exp().cumsum(-1)
    drawn = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None]).squeeze(-1)
    chosen = torch.where(greedy, logits.argmax(-1), drawn.clamp(max=logits.shape[-1] - 1))
    return chosen, logprobs.gather(-1, chosen[:, None]).squeeze(-1)


@dataclass
class _Pending:
    request: Request
    result: asyncio.Future[Sampled]


@dataclass
class LocalEngine:
    """A `Policy` over a `Generator`; sessions are opened so that batches can form."""

    generator: Generator
    gather_s: float = math.inf
    _open: set[str] = field(default_factory=set)
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """While open, batches wait for this session's next request."""
        self._open.add(name)
        try:
            yield
        finally:
            self._open.discard(name)
            self.generator.forget(name)
            self._maybe_run()

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """Raises `PolicyRefused` if the prompt cannot be continued or the session's last request is unanswered,
        `PolicyError` if the model is broken."""
        request = Request(session, tuple(prompt_ids), params)
        if session in self._pending and not self._pending[session].result.done():
            raise PolicyRefused(f"session {session!r} asks again before it was answered")
        # Checked alone, so that one bad request cannot fail the batch it would have joined.
        self.generator.check(request)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sampled] = loop.create_future()
        self._pending[session] = _Pending(request, future)
        if math.isfinite(self.gather_s) and self._timer is None:
            self._timer = loop.call_later(self.gather_s, self._run)
        # Later in this pass of the loop, so that requests made together are seen together.
        loop.call_soon(self._maybe_run)
        return await future

    def _maybe_run(self) -> None:
        if self._pending and self._open <= self._pending.keys():
            self._run()

    def _run(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = [self._pending[name] for name in sorted(self._pending) if not self._pending[name].result.done()]
        self._pending.clear()
        if not batch:
            return
        try:
            results = self.generator.generate([pending.request for pending in batch])
        except Exception as error:  # noqa: BLE001  whatever it is, it belongs to those who wait, here is nobody
            for pending in batch:
                pending.result.set_exception(error)
            return
        for pending, sampled in zip(batch, results, strict=True):
            pending.result.set_result(sampled)
