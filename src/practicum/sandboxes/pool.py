"""Boxes kept warm: created in advance, leased, reset, leased again.

Owns: `Pool` (a `SandboxProvider`), `open_pool`.
Invariant: a leased box is as one that was just created: it was reset and answered before; one that could not be
brought there is destroyed and never leased again. No more boxes exist than `capacity`, and no more are being created
than `creating`, whatever the demand; one box serves one lease at a time.
Must not know: how boxes are made.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from practicum.errors import CreateFailed, SandboxError, StoreError, UnsupportedControl
from practicum.records.tree import Tree
from practicum.sandboxes.contract import (
    BoxSpec,
    Capability,
    Sandbox,
    SandboxProvider,
    Snapshot,
    SnapshotId,
    SnapshotStore,
)
from practicum.sandboxes.lease import Leased, shape_of


@dataclass(slots=True)
class PoolCounts:
    """What happened so far. `quarantined` counts reasons."""

    leases: int = 0
    warm: int = 0  # leases that found a box waiting
    created: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Warm:
    """A box that waits, and how to end it."""

    box: Sandbox
    life: AsyncExitStack
    readonly: Mapping[str, Tree]
    leases: int = 0
    waits: int = 0  # number of the wait that it is in


class Pool:
    """A `SandboxProvider` whose boxes are leased. Made by `open_pool`."""

    def __init__(self, inner: SandboxProvider, capacity: int, creating: int, most_leases: int) -> None:
        self._inner = inner
        self._capacity = capacity
        self._creating = asyncio.Semaphore(creating)
        self._most_leases = most_leases
        self._changed = asyncio.Condition()
        self._idle: defaultdict[str, deque[_Warm]] = defaultdict(deque)
        self._returning: set[asyncio.Task[None]] = set()
        self._resetting: Counter[str] = Counter()  # boxes on their way back
        self._expecting: Counter[str] = Counter()  # who waits for one of those
        self._numbers, self._waits = itertools.count(), itertools.count()
        self._ids: set[str] = set()
        self._forks: Counter[str] = Counter()  # leases that began at a snapshot
        self._released: set[str] = set()
        self._leases: set[Leased] = set()  # those that have not ended
        self.alive = 0  # boxes that exist or are being created
        self.counts = PoolCounts()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._inner.capabilities

    @property
    def snapshots(self) -> SnapshotStore:
        return self._inner.snapshots

    @property
    def idle(self) -> int:
        """How many boxes wait."""
        return sum(len(waiting) for waiting in self._idle.values())

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._lease(spec)

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._lease_fork(snapshot, spec)

    def release(self, snapshot: Snapshot) -> None:
        self._released.add(snapshot.id)
        for leased in self._leases:
            leased.taken.discard(snapshot.id)
        self._forget(snapshot)

    def _forget(self, snapshot: Snapshot) -> None:
        """Let the snapshot go when it was released and no lease could still be reset to it."""
        if snapshot.id in self._released and not self._forks[snapshot.id]:
            self._released.discard(snapshot.id)
            self._inner.release(snapshot)

    def _shape(self, spec: BoxSpec) -> str:
        return shape_of(spec, supplied="copy-on-write" in self._inner.capabilities)

    async def warm(self, spec: BoxSpec, count: int) -> None:
        """Have up to `count` boxes of this shape waiting, as far as there is room without waiting for it."""
        shape = self._shape(spec)
        wanted = min(count - len(self._idle[shape]), self._capacity - self.alive)
        self.alive += max(wanted, 0)

        async def one() -> None:
            await self._put(shape, await self._new(spec))

        for failed in await asyncio.gather(*(one() for _ in range(wanted)), return_exceptions=True):
            if failed is not None:
                raise failed

    async def close(self) -> None:
        """End all boxes; leases must have ended."""
        await asyncio.gather(*self._returning)
        for waiting in self._idle.values():
            while waiting:
                await self._destroy(waiting.popleft())

    # --- boxes --------------------------------------------------------------------------------------------

    async def _new(self, spec: BoxSpec) -> _Warm:
        """A box that has been counted already; where it cannot be made it counts no more."""
        name = f"warm-{next(self._numbers)}"
        life = AsyncExitStack()
        try:
            async with self._creating:
                box = await life.enter_async_context(self._inner.create(replace(spec, create_id=name, files={})))
        except BaseException:
            await self._gone()
            raise
        self.counts.created += 1
        return _Warm(box, life, spec.readonly)

    async def _gone(self) -> None:
        async with self._changed:
            self.alive -= 1
            self._changed.notify_all()

    async def _put(self, shape: str, warm: _Warm) -> None:
        async with self._changed:
            warm.waits = next(self._waits)
            self._idle[shape].append(warm)
            self._changed.notify_all()

    async def _destroy(self, warm: _Warm, reason: str = "") -> None:
        if reason:
            self.counts.quarantined[reason] += 1
        try:
            await warm.life.aclose()
        finally:
            await self._gone()

    async def _take(self, shape: str) -> _Warm | None:
        """A waiting box of this shape, or None where there is room to create one; waits for either."""
        async with self._changed:
            while True:
                if self._idle[shape]:
                    return self._idle[shape].pop()
                if self._resetting[shape] > self._expecting[shape]:  # which takes far less than making another
                    self._expecting[shape] += 1
                    try:
                        await self._changed.wait()
                    finally:
                        self._expecting[shape] -= 1
                    continue
                if self.alive < self._capacity:
                    self.alive += 1
                    return None
                waiting = [boxes for boxes in self._idle.values() if boxes]
                if other := min(waiting, key=lambda boxes: boxes[0].waits, default=None):  # unasked for longest
                    evicted = other.popleft()
                    break
                await self._changed.wait()
        try:
            await evicted.life.aclose()
        except BaseException:
            await self._gone()
            raise
        return None  # its place is ours

    async def _healthy(self, spec: BoxSpec) -> _Warm:
        shape = self._shape(spec)
        while True:
            warm = await self._take(shape)
            if warm is None:
                return await self._new(spec)
            try:
                status = await warm.box.status()
            except SandboxError as error:
                await self._destroy(warm, type(error).__name__)
                continue
            except asyncio.CancelledError:  # it has nothing to do with the box
                await self._put(shape, warm)
                raise
            if status.state != "idle" or status.running:
                await self._destroy(warm, f"waiting in state {status.state}")
                continue
            self.counts.warm += 1
            return warm

    @asynccontextmanager
    async def _lease(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        if spec.keep:
            raise UnsupportedControl("what changes in a leased box cannot be kept on the host")
        if spec.create_id in self._ids:
            raise CreateFailed(f"there is a living box for create_id {spec.create_id!r} already")
        self._ids.add(spec.create_id)
        try:
            warm = await self._healthy(spec)
        except BaseException:
            self._ids.discard(spec.create_id)
            raise
        warm.leases += 1
        self.counts.leases += 1
        other = {place: tree for place, tree in spec.readonly.items() if tree != warm.readonly[place]}
        leased = Leased(warm.box, spec, other)
        self._leases.add(leased)
        try:
            await leased.begin()
            yield leased
        finally:
            leased.end()
            self._ids.discard(spec.create_id)
            # On its own: the caller need not wait for it, and cannot cancel it.
            task = asyncio.create_task(self._return(self._shape(spec), warm, leased))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    @asynccontextmanager
    async def _lease_fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        if isinstance(snapshot, str):
            try:
                tree = self.snapshots.get(snapshot)
            except StoreError as error:
                raise CreateFailed(f"cannot fork: {error.message}") from error
            async with self._lease(replace(spec, files=tree)) as box:
                yield box
            return
        if snapshot.id in self._released:
            raise CreateFailed(f"cannot fork: snapshot {snapshot.id} was released")
        self._forks[snapshot.id] += 1
        try:
            async with self._lease(replace(spec, files={})) as box:
                assert isinstance(box, Leased)
                await box.restore(snapshot)
                box.start_at(snapshot)
                yield box
        finally:
            self._forks[snapshot.id] -= 1
            self._forget(snapshot)

    async def _return(self, shape: str, warm: _Warm, leased: Leased) -> None:
        self._leases.discard(leased)
        spoiled = leased.unfit(self._inner.capabilities)
        if spoiled or warm.leases >= self._most_leases:
            await self._destroy(warm, spoiled)
            return
        self._resetting[shape] += 1
        try:
            await warm.box.reset()
        except Exception as error:  # noqa: BLE001  whatever it is, the box's place must not be lost
            await self._destroy(warm, type(error).__name__)
        else:
            await self._put(shape, warm)
        finally:
            self._resetting[shape] -= 1


@asynccontextmanager
async def open_pool(
    inner: SandboxProvider, *, capacity: int, creating: int = 2, most_leases: int = 1000
) -> AsyncIterator[Pool]:
    """Lease the boxes of `inner`, at most `capacity` at a time, each at most `most_leases` times.

    At most `creating` are created at once: more than there are processors only lengthens the queue.
    """
    for name, value in (("capacity", capacity), ("creating", creating), ("most_leases", most_leases)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1")
    if "reset" not in inner.capabilities:
        raise UnsupportedControl(f"boxes of {inner.name} cannot be reset, so they cannot be leased twice")
    pool = Pool(inner, capacity, creating, most_leases)
    try:
        yield pool
    finally:
        await pool.close()
