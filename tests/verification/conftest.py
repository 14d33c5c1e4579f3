"""A judge with real boxes, opened once for all tests here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from practicum.records.task import Task
from practicum.records.tree import File
from practicum.records.verdict import Verdict
from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.pool import open_pool
from practicum.sandboxes.provider import open_provider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.runners.drivers import Drivers
from practicum.verification.submission import submission_from_workspace


class Bench:
    """Judges workspaces: `files` replace or add to the task's own, None removes.

    It judges as runs do: in boxes that are leased again, by copies of warm drivers from the second time on.
    """

    def __init__(self, runner: asyncio.Runner, provider: SandboxProvider, pool: SandboxProvider) -> None:
        self.runner = runner
        self.provider = provider
        self.drivers = Drivers(provider)
        self._pool = pool
        self._verifiers: dict[int, ExecutionVerifier] = {}

    def verifier(self, seed: int) -> ExecutionVerifier:
        if seed not in self._verifiers:
            self._verifiers[seed] = ExecutionVerifier(self._pool, seed=seed, drivers=self.drivers, warm=True)
        return self._verifiers[seed]

    def judge(self, task: Task, files: dict[str, str | None] | None = None, *, seed: int = 0) -> Verdict:
        tree = dict(task.files)
        for path, text in (files or {}).items():
            tree.pop(path, None)
            if text is not None:
                tree[path] = File(text.encode())
        return self.runner.run(self.verifier(seed).verify(task, submission_from_workspace(task, tree)))


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with asyncio.Runner() as runner:
        opening = _open()
        provider, pool = runner.run(opening.__aenter__())
        try:
            yield Bench(runner, provider, pool)
        finally:
            runner.run(opening.__aexit__(None, None, None))


@asynccontextmanager
async def _open() -> AsyncIterator[tuple[SandboxProvider, SandboxProvider]]:
    async with open_provider(run_id="tests-verification", limits_by="cgroup-or-rlimit") as provider:
        if "copy-on-write" not in provider.capabilities:
            yield provider, provider
            return
        async with open_pool(provider, capacity=4) as pool:
            yield provider, pool
