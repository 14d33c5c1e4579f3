"""Batched sampling from a local model, step by step: rows come and go while the others run on.

Owns: `Request`, `Generator`: the running rows, the key/value caches of sessions, the weights' version.
Invariant: every sampled id comes with its log-probability under exactly the weights whose version is stamped on it, and
weights change only while nothing runs; the caches are never the truth: a prompt is always fed from its ids. What is
sampled for a request, ids and log-probabilities, depends on its prompt, seed and parameters and on the weights alone,
bit for bit: not on which others run, when they began, or whether its beginning was computed anew or taken from a cache.
Must not know: training, boxes, text, who waits.

The last of these holds for one host and one number of threads (another may round otherwise), and only where its kernels
allow it: `Generator.invariant` says so, by trying. How it is done: `steady`.

A row that has ended stays in its place, unread, until a new one takes it or half of the rows have ended: moving
caches costs more than a few idle rows. What a new prompt shares with its session's cache, an equal prompt or a running
row is copied, not computed again; rows whose prompts begin alike read those keys together (`steady.kin`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from practicum.errors import PolicyError, PolicyRefused
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.local.model import Cache, Decoder
from practicum.policies.local.steady import ROWS, Kin, is_steady, kin

_SHARED = 8  # ids that two prompts must begin with for a copy to be worth it


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to continue, for one session; with `keep` its cache is kept for the session's next request."""

    session: str
    prompt: tuple[int, ...]
    params: SamplingParams
    keep: bool = True


@dataclass
class _Held:
    """What a session's cache holds: `ids` and their keys and values, without the rows of a `Cache`."""

    ids: tuple[int, ...]
    keys: Tensor
    values: Tensor


@dataclass
class _Row:
    """A request under way. `number` is what `begin` gave it; `uniform` are its draws; `done` once it has ended."""

    number: int
    request: Request
    uniform: npt.NDArray[np.float64]
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    done: bool = False


class Generator:
    """Synchronous batched generation: `begin` requests, `step` until they have ended; or `generate`, which does both.

    At most `max_rows` run at a time. The model is its own from here on: it lays the weights out for sampling.
    """

    def __init__(self, model: Decoder, *, version: int = 0, max_rows: int = 1024) -> None:
        model.lay_out()
        self.model = model
        self.version = version
        self.max_rows = max_rows
        self._held: dict[str, _Held] = {}
        self._rows: list[_Row] = []
        self._cache: Cache | None = None
        self._hidden = torch.zeros(0)
        self._numbers = 0

    @property
    def running(self) -> int:
        """Rows that have not ended."""
        return sum(not row.done for row in self._rows)

    @cached_property
    def invariant(self) -> bool:
        """Whether this host can keep the invariant bit for bit; tried once, on its kernels and the model's shapes."""
        shape = self.model.shape
        return is_steady(self.model.weights, shape.heads, shape.key_heads, shape.head_width)

    @property
    def room(self) -> int:
        """How many more requests can begin."""
        return self.max_rows - self.running

    def load(self, state: dict[str, Tensor], version: int) -> None:
        """Take new weights; every cache computed under the old ones is dropped. Nothing may be running."""
        if self.running:
            raise RuntimeError("weights cannot change while rows are running")
        self.model.load_state_dict(state, strict=True)
        self.version = version
        self.reset()

    def reset(self) -> None:
        """Forget all rows and caches."""
        self._held.clear()
        self._rows.clear()
        self._cache = None

    def forget(self, session: str) -> None:
        self._held.pop(session, None)

    def cancel(self, number: int) -> None:
        """Nobody waits for this request any more: its row is free."""
        for row in self._rows:
            row.done |= row.number == number

    def check(self, request: Request) -> None:
        """Raises `PolicyRefused` for an empty prompt, one that leaves no room in the context, or an unknown id."""
        shape, prompt, most = self.model.shape, request.prompt, request.params.max_tokens
        if most < 1 or not prompt or len(prompt) + most > shape.context:
            raise PolicyRefused(f"{len(prompt)} prompt and {most} new tokens do not fit a context of {shape.context}")
        if max(prompt) >= shape.vocabulary or min(prompt) < 0:
            raise PolicyRefused("the prompt holds an id outside the vocabulary")

    def generate(self, requests: Sequence[Request]) -> list[Sampled]:
        """Continue all `requests` (in any number); results in the same order.

        Raises `PolicyRefused` where `check` does, `PolicyError` if the logits are not finite.
        """
        for request in requests:
            self.check(request)
        found: dict[int, Sampled] = {}
        numbers: list[int] = []
        try:
            while len(found) < len(requests):
                numbers += self.begin(requests[len(numbers) : len(numbers) + self.room])
                found |= self.step()
        except PolicyError:
            self.reset()
            raise
        return [found[number] for number in numbers]

    @torch.inference_mode()
    def begin(self, requests: Sequence[Request]) -> list[int]:
        """Feed the prompts of checked `requests`, at most `room` of them; their numbers, in order."""
        if not requests:
            return []
        numbers = list(range(self._numbers, self._numbers + len(requests)))
        self._numbers += len(requests)
        fresh = [
            _Row(number, request, np.random.default_rng(request.params.seed).random(request.params.max_tokens))
            for number, request in zip(numbers, requests, strict=True)
        ]
        unique = list(dict.fromkeys(request.prompt for request in requests))
        where = {prompt: i for i, prompt in enumerate(unique)}
        order = torch.tensor([where[request.prompt] for request in requests])
        room = max(len(r.prompt) + r.params.max_tokens for r in requests)
        small, hidden = self._prefill(unique, requests, room)
        if self._cache is None or not self.running:
            self._cache = Cache(small.keys[:, order], small.values[:, order], small.lengths[order])
            self._rows, self._hidden = fresh, hidden[order]
            self._cache.alike = self._kin()
            return numbers
        self._make_place(len(fresh), small.values.shape[3])
        places = [i for i, row in enumerate(self._rows) if row.done][: len(fresh)]
        for place, row, source in zip(places, fresh, order.tolist(), strict=True):
            length = int(small.lengths[source])
            self._rows[place] = row
            self._cache.keys[:, place, ..., :length] = small.keys[:, source, ..., :length]
            self._cache.values[:, place, :, :length] = small.values[:, source, :, :length]
            self._cache.lengths[place] = length
        self._hidden[places] = hidden[order]
        self._cache.alike = self._kin()
        return numbers

    @torch.inference_mode()
    def step(self) -> dict[int, Sampled]:
        """Sample one id for every running row; what has ended with it, by number. Raises `PolicyError`."""
        if self._cache is None or not self.running:
            return {}
        live = [i for i, row in enumerate(self._rows) if not row.done]
        rows = [self._rows[i] for i in live]
        temperature = torch.tensor([row.request.params.temperature for row in rows], dtype=torch.float32)
        uniform = torch.tensor([row.uniform[len(row.ids)] for row in rows], dtype=torch.float64)
        hidden = F.pad(self._hidden[live], (0, 0, 0, -len(live) % ROWS))
        chosen, logprob = _choose(self.model.steady_logits(hidden)[: len(live)], temperature, uniform)
        ended: dict[int, Sampled] = {}
        for i, row, ident, value in zip(live, rows, chosen.tolist(), logprob.tolist(), strict=True):
            if not math.isfinite(value):
                raise PolicyError("the model's logits are not finite", fix="go back to the last good checkpoint")
            row.ids.append(ident)
            row.logprobs.append(value)
            stopped = ident in row.request.params.stop_ids
            row.done = stopped or len(row.ids) >= row.request.params.max_tokens
            if row.done:
                reason = "stop" if stopped else "length"
                ended[row.number] = Sampled(tuple(row.ids), tuple(row.logprobs), reason, self.version)  # type: ignore[arg-type]
                self._keep(i, row)
        if self.running:
            self._shrink()
            fed = torch.tensor([0 if row.done else row.ids[-1] for row in self._rows])
            counts = torch.tensor([int(not row.done) for row in self._rows])
            self._hidden = self.model.step(fed[:, None], self._cache, counts)
        return ended

    def _prefill(self, unique: list[tuple[int, ...]], requests: Sequence[Request], room: int) -> tuple[Cache, Tensor]:
        cache = self.model.empty_cache(len(unique), room)
        donors = {r.prompt: self._held[r.session] for r in reversed(requests) if r.session in self._held}
        fresh: list[list[int]] = []
        for i, prompt in enumerate(unique):
            held = donors.get(prompt) or self._running_donor(prompt)
            kept = 0
            if held is not None:
                # The last prompt token is always fed, since its hidden state starts the decoding.
                kept = min(_common(prompt, held.ids), len(prompt) - 1)
                cache.keys[:, i, ..., :kept] = held.keys[..., :kept]
                cache.values[:, i, :, :kept] = held.values[:, :, :kept]
            cache.lengths[i] = kept
            fresh.append(list(prompt[kept:]))
        counts = torch.tensor([len(row) for row in fresh])
        longest = int(counts.max())
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in fresh])
        return cache, self.model.step(ids, cache, counts)

    def _running_donor(self, prompt: tuple[int, ...]) -> _Held | None:
        """The running row whose prompt begins most like `prompt`, if enough alike."""
        if self._cache is None:
            return None
        shared = [(_common(prompt, row.request.prompt), -i) for i, row in enumerate(self._rows) if not row.done]
        most, place = max(shared, default=(0, 0))
        if most < _SHARED:
            return None
        return _Held(self._rows[-place].request.prompt, self._cache.keys[:, -place], self._cache.values[:, -place])

    def _make_place(self, count: int, room: int) -> None:
        """Buffers for `count` new rows of up to `room` positions; what is new is idle until it is filled."""
        assert self._cache is not None
        more = max(0, count - sum(row.done for row in self._rows))
        there = self._cache.values.shape[3]  # grows by half at least: each time all that is there is copied
        self._cache = _grown(self._cache, more, max(room - there, there // 2) if room > there else 0)
        idle = self._rows[0].request
        self._rows += [_Row(-1, idle, np.zeros(0), done=True) for _ in range(more)]
        self._hidden = torch.cat([self._hidden, self._hidden.new_zeros(more, self._hidden.shape[1])])

    def _shrink(self) -> None:
        """Leave out the rows that have ended once they are half of all."""
        live = [i for i, row in enumerate(self._rows) if not row.done]
        if 2 * len(live) > len(self._rows) or self._cache is None:
            return
        cache = self._cache
        self._cache = Cache(cache.keys[:, live], cache.values[:, live], cache.lengths[live])
        self._rows = [self._rows[i] for i in live]
        self._cache.alike = self._kin()

    def _kin(self) -> Kin | None:
        # What ends later may stay in its group: its place in the cache is not touched before the next call.
        return kin([None if row.done else row.request.prompt for row in self._rows])

    def _keep(self, place: int, row: _Row) -> None:
        if not row.request.keep or self._cache is None:
            return
        # The last sampled id has not been fed, so the cache holds one token less than the conversation.
        ids = row.request.prompt + tuple(row.ids[:-1])
        keys, values = self._cache.keys[:, place, ..., : len(ids)], self._cache.values[:, place, :, : len(ids)]
        self._held[row.request.session] = _Held(ids, keys.clone(), values.clone())


def _grown(cache: Cache, rows: int, positions: int) -> Cache:
    """`cache` with room for so many more rows and positions."""
    if not rows and not positions:
        return cache
    lengths = torch.cat([cache.lengths, cache.lengths.new_zeros(rows)])
    keys = F.pad(cache.keys, (0, positions, 0, 0, 0, 0, 0, rows))
    return Cache(keys, F.pad(cache.values, (0, 0, 0, positions, 0, 0, 0, rows)), lengths)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    return next((i for i in range(length) if a[i] != b[i]), length)


def _choose(logits: Tensor, temperature: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """One id a row [B] by inverse transform, and its log-probability [B] under the distribution sampled from."""
    greedy = temperature == 0
    scaled = logits / torch.where(greedy, torch.ones_like(temperature), temperature)[:, None]
    logprobs = scaled.log_softmax(-1)
    cumulative = scaled.softmax(-1).double().cumsum(-1)
    drawn = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None]).squeeze(-1)
    chosen = torch.where(greedy, logits.argmax(-1), drawn.clamp(max=logits.shape[-1] - 1))
    return chosen, logprobs.gather(-1, chosen[:, None]).squeeze(-1)
