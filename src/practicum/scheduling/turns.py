"""Turns at one thing that can be in one form at a time: a model under one version of its weights.

Owns: `Turns`.
Invariant: whoever holds a turn under a version finds that version loaded until the turn is given back. Those who go
with the flow take whatever version is newest; they are asked to park when somebody needs a version to itself, and it
waits until they have. First come, first served, but for those who want the version that is loaded now.
Must not know: what is loaded, what is done in a turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from practicum.errors import WaitTimedOut

Load = Callable[[int], Awaitable[None]]


class Turns:
    """`load(version)` puts a version in place. Nobody waits longer than `wait_s` seconds."""

    def __init__(self, load: Load, *, wait_s: float = 6 * 3600.0) -> None:
        self._load = load
        self._wait_s = wait_s
        self._loading = asyncio.Lock()
        self._loaded: int | None = None
        self._version: int | None = None
        self._holders = 0
        self._flowing = 0
        self._waiting: deque[tuple[int | None, asyncio.Future[None]]] = deque()
        self.newest = 0
        self.park = asyncio.Event()

    @asynccontextmanager
    async def under(self, version: int) -> AsyncIterator[None]:
        """A turn under exactly `version`. Raises `WaitTimedOut`, and what `load` raises."""
        await self._enter(version)
        try:
            await self._put(version)
            yield
        finally:
            self._holders -= 1
            self._admit()

    @asynccontextmanager
    async def flow(self) -> AsyncIterator[asyncio.Event]:
        """A turn under the newest version there is, which may change meanwhile; to be given back once `park` is set."""
        await self._enter(None)
        try:
            await self.renew()
            yield self.park
        finally:
            self._flowing -= 1
            self._admit()

    async def renew(self) -> None:
        """Load the newest version, where those in the flow are under an older one."""
        if self._flowing:
            await self._put(self.newest)

    async def _put(self, version: int) -> None:
        async with self._loading:
            if self._loaded != version:
                await self._load(version)
                self._loaded = version

    def _may_enter(self, version: int | None) -> bool:
        if version is None:
            return not self._holders and not self._waiting
        if self._flowing:
            return False
        return self._version == version if self._holders else not self._waiting

    def _count(self, version: int | None) -> None:
        if version is None:
            self._flowing += 1
        else:
            self._holders += 1
            self._version = version

    async def _enter(self, version: int | None) -> None:
        if self._may_enter(version):
            self._count(version)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((version, place))
        if version is not None:
            self.park.set()
        try:
            async with asyncio.timeout(self._wait_s):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():  # it was let in meanwhile
                self._holders -= version is not None
                self._flowing -= version is None
            self._admit()
            if isinstance(error, TimeoutError):
                raise WaitTimedOut(f"no turn under version {version} within {self._wait_s:g} s") from None
            raise

    def _admit(self) -> None:
        """Let in who may go now: all of the first one's kind, up to the first of another."""
        while self._waiting:
            version, place = self._waiting[0]
            if place.cancelled():
                self._waiting.popleft()
                continue
            free = not self._holders and (version is None or not self._flowing)
            if not (free or (version is not None and self._holders and self._version == version)):
                break
            self._waiting.popleft()
            self._count(version)
            place.set_result(None)
        if not any(version is not None and not place.cancelled() for version, place in self._waiting):
            self.park.clear()
