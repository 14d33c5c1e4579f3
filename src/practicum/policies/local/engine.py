"""The local engine: a `Policy` over a `Generator`, for many conversations at a time.

Owns: `LocalEngine`: who waits for what, and when requests begin.
Invariant: every request is answered once, by a sample or by an error; new weights are taken only while nothing runs.
Must not know: training, boxes, text.

By barrier (the default), requests wait until every open session has one pending (or has closed). `continuous`, a
request begins as soon as there is a row for it, beside those that run: more tokens a second. Either way a request is
answered the same, bit for bit, whenever it came (`Generator`'s invariant, where the host can keep it).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.local.generator import Generator, Request


@dataclass
class _Pending:
    request: Request
    result: asyncio.Future[Sampled]


@dataclass
class LocalEngine:
    """A `Policy`; sessions are opened so that batches can form, and caches are kept."""

    generator: Generator
    continuous: bool = False
    _open: set[str] = field(default_factory=set)
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _running: dict[int, _Pending] = field(default_factory=dict)
    _worker: asyncio.Task[None] | None = None
    _held_up: asyncio.Lock = field(default_factory=asyncio.Lock)

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """While open, its cache is kept, and a barrier waits for its next request."""
        self._open.add(name)
        try:
            yield
        finally:
            self._open.discard(name)
            if not self._is_running(name):  # else its row is still read; what it leaves is dropped with the answer
                self.generator.forget(name)
            self._maybe_run()

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """Raises `PolicyRefused` if the prompt cannot be continued or the session's last request is unanswered,
        `PolicyError` if the model is broken."""
        request = Request(session, tuple(prompt_ids), params, keep=session in self._open)
        waiting = self._pending.get(session)
        if (waiting is not None and not waiting.result.done()) or self._is_running(session):
            raise PolicyRefused(f"session {session!r} asks again before it was answered")
        # Checked alone, so that one bad request cannot fail the batch it would have joined.
        self.generator.check(request)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sampled] = loop.create_future()
        self._pending[session] = _Pending(request, future)
        if self.continuous:
            if self._worker is None or self._worker.done():
                self._worker = loop.create_task(self._work())
        else:
            # Later in this pass of the loop, so that requests made together are seen together.
            loop.call_soon(self._maybe_run)
        return await future

    async def load(self, state: dict[str, Tensor], version: int) -> None:
        """Take new weights once what runs has ended; what has not begun waits, and begins under the new ones."""
        async with self._held_up:
            while self._running:
                await asyncio.wait([pending.result for pending in self._running.values()])
                await asyncio.sleep(0)
            self.generator.load(state, version)

    def _is_running(self, session: str) -> bool:
        return any(p.request.session == session and not p.result.done() for p in self._running.values())

    def _maybe_run(self) -> None:
        if not self.continuous and self._pending and self._open <= self._pending.keys():
            self._run()

    def _run(self) -> None:
        """Answer all that is pending, as one batch."""
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

    async def _work(self) -> None:
        """Begin what is pending and step what runs, in a thread, until there is neither."""
        while self._pending or self._running:
            try:
                await self._advance()
            except Exception as error:  # noqa: BLE001  the same
                self.generator.reset()
                for pending in self._running.values():
                    if not pending.result.done():
                        pending.result.set_exception(error)
                self._running.clear()

    async def _advance(self) -> None:
        for number, pending in list(self._running.items()):
            if pending.result.done():  # given up
                self.generator.cancel(number)
                del self._running[number]
        fresh: list[_Pending] = []
        if not self._held_up.locked():
            for name in list(self._pending)[: self.generator.room]:
                pending = self._pending.pop(name)
                if not pending.result.done():
                    fresh.append(pending)
        elif not self._running:
            await asyncio.sleep(0.001)  # new weights are being put in place
            return
        if fresh:
            requests = [pending.request for pending in fresh]
            # Registered by hand, so that an error in between reaches those who have just begun.
            self._running |= {-1 - i: pending for i, pending in enumerate(fresh)}
            numbers = await asyncio.to_thread(self.generator.begin, requests)
            for i, number in enumerate(numbers):
                self._running[number] = self._running.pop(-1 - i)
        ended = await asyncio.to_thread(self.generator.step)
        for number, sampled in ended.items():
            pending = self._running.pop(number)
            if not pending.result.done():
                pending.result.set_result(sampled)
            if pending.request.session not in self._open:
                self.generator.forget(pending.request.session)
