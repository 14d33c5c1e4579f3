"""A judge with real boxes, opened once for all tests here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from practicum.records.task import Task
from practicum.records.tree import File
from practicum.records.verdict import Verdict
from practicum.sandboxes.bubblewrap import open_bubblewrap
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.runners.drivers import Drivers
from practicum.verification.submission import submission_from_workspace


class Bench:
    """Judges workspaces: `files` replace or add to the task's own, None removes."""

    def __init__(self, runner: asyncio.Runner, provider: SandboxProvider) -> None:
        self.runner = runner
        self.provider = provider
        self.drivers = Drivers(provider)

    def judge(self, task: Task, files: dict[str, str | None] | None = None, *, seed: int = 0) -> Verdict:
        tree = dict(task.files)
        for path, text in (files or {}).items():
            tree.pop(path, None)
            if text is not None:
                tree[path] = File(text.encode())
        verifier = ExecutionVerifier(self.provider, seed=seed, drivers=self.drivers)
        return self.runner.run(verifier.verify(task, submission_from_workspace(task, tree)))


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with asyncio.Runner() as runner:
        opening = open_bubblewrap(run_id="tests-verification", limits_by="cgroup-or-rlimit")
        provider = runner.run(opening.__aenter__())
        try:
            yield Bench(runner, provider)
        finally:
            runner.run(opening.__aexit__(None, None, None))
