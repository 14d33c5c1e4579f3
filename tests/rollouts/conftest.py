"""A small real task, real boxes and a real judge, with a provider in between that watches and can be unlucky."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from practicum.errors import CreateFailed, SandboxDied
from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.tree import File, Tree
from practicum.sandboxes.contract import (
    BoxSpec,
    BoxStatus,
    Capability,
    CommandResult,
    Listing,
    Sandbox,
    SandboxProvider,
    Snapshot,
    SnapshotId,
    SnapshotStore,
)
from practicum.sandboxes.provider import open_provider

CASES = b'{"id": "two", "args": [1, 1], "expected": 2}\n{"id": "six", "args": [2, 4], "expected": 6}\n'
T = TypeVar("T")


@dataclass
class Luck:
    """What goes wrong, and what was seen.

    Creations fail while `failing` > 0. A box dies before it can tell what a command did: while `dying` > 0, and at the
    command whose number is `dying_at`.
    """

    failing: int = 0
    dying: int = 0
    dying_at: int = 0
    ran: int = 0
    created: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    open: int = 0
    most_open: int = 0


class UnluckyBox:
    """A real box whose commands may find it dead."""

    def __init__(self, inner: Sandbox, luck: Luck) -> None:
        self._inner = inner
        self._luck = luck

    @property
    def id(self) -> str:
        return self._inner.id

    async def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        action: str | None = None,
    ) -> CommandResult:
        result = await self._inner.run(command, timeout_s=timeout_s, stdin=stdin, env=env, cwd=cwd, action=action)
        self._luck.ran += 1
        if self._luck.dying > 0 or self._luck.ran == self._luck.dying_at:
            self._luck.dying -= 1
            await self._inner.close()
            raise SandboxDied("the host pulled the plug")
        return result

    async def run_warm(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> CommandResult:
        return await self._inner.run_warm(arguments, timeout_s=timeout_s, stdin=stdin)

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        return await self._inner.read(path, max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._inner.write(path, data, mode=mode)

    async def upload(self, path: str, tree: Tree) -> None:
        await self._inner.upload(path, tree)

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        return await self._inner.list_tree(path, max_bytes=max_bytes)

    async def save(self) -> SnapshotId:
        return await self._inner.save()

    async def snapshot(self) -> Snapshot:
        return await self._inner.snapshot()

    async def supply(self, readonly: Mapping[str, Tree]) -> None:
        await self._inner.supply(readonly)

    async def restore(self, snapshot: Snapshot) -> None:
        await self._inner.restore(snapshot)

    async def reset(self) -> None:
        await self._inner.reset()

    async def quiet(self) -> None:
        await self._inner.quiet()

    async def status(self) -> BoxStatus:
        return await self._inner.status()

    async def close(self) -> None:
        await self._inner.close()


class UnluckyProvider:
    """A real provider that counts its boxes and fails as `luck` says."""

    def __init__(self, inner: SandboxProvider, luck: Luck) -> None:
        self._inner = inner
        self.luck = luck

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._inner.capabilities

    @property
    def snapshots(self) -> SnapshotStore:
        return self._inner.snapshots

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._watched(spec, self._inner.create(spec))

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._watched(spec, self._inner.fork(snapshot, spec))

    def release(self, snapshot: Snapshot) -> None:
        self._inner.release(snapshot)

    @asynccontextmanager
    async def _watched(self, spec: BoxSpec, box: AbstractAsyncContextManager[Sandbox]) -> AsyncIterator[Sandbox]:
        luck = self.luck
        luck.created.append(spec.create_id)
        if luck.failing > 0:
            luck.failing -= 1
            raise CreateFailed("no room")
        async with box as inner:
            luck.open += 1
            luck.events.append("box")
            luck.opened.set()
            luck.most_open = max(luck.most_open, luck.open)
            try:
                yield UnluckyBox(inner, luck)
            finally:
                luck.open -= 1
        luck.events.append("box gone")


WithBoxes = Callable[[Callable[[UnluckyProvider], Awaitable[T]]], T]


@pytest.fixture
def task() -> Task:
    """`calc.add` subtracts; the gold puts that right."""
    return Task(
        id="calc",
        instruction="add(a, b) in calc.py must return the sum of its arguments.",
        files={"calc.py": File(b"def add(a, b):\n    return a - b\n"), "run.sh": File(b"echo hi\n", 0o755)},
        verification=Verification(
            runner="plain",
            tests={"cases.jsonl": File(CASES)},
            fail_to_pass=("two", "six"),
            plain=PlainCheck(entry="calc:add", cases="cases.jsonl"),
        ),
        editable=("*.py",),
        limits=Limits(command_s=2.0, episode_s=20.0),
        solution={"solve.sh": File(b"sed -i 's/a - b/a + b/' calc.py\n", 0o755)},
    )


@pytest.fixture
def luck() -> Luck:
    return Luck()


@pytest.fixture
def with_boxes(luck: Luck) -> WithBoxes[T]:
    """Runs a coroutine with a provider of real boxes; none of them is open at its end."""

    def run(body: Callable[[UnluckyProvider], Awaitable[T]]) -> T:
        async def inside() -> T:
            async with open_provider(limits_by="cgroup-or-rlimit") as provider:
                result = await body(UnluckyProvider(provider, luck))
                assert luck.open == 0
                return result

        return asyncio.run(inside())

    return run
