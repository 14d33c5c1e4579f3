"""The shipped providers are held against the contract's checks, and the checks against broken providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from practicum.records.task import Limits
from practicum.sandboxes.conformance import CheckResult, check_provider
from practicum.sandboxes.contract import BoxSpec, CommandResult, SandboxProvider
from practicum.sandboxes.fake import FakeBox, FakeProvider
from practicum.sandboxes.fake_programs import FakeCall
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.means import LimitsBy
from practicum.sandboxes.pool import Pool, open_pool
from practicum.sandboxes.provider import open_provider

Make = Callable[[], AbstractAsyncContextManager[SandboxProvider]]


def check(make: Make) -> dict[str, CheckResult]:
    results = asyncio.run(check_provider(make))
    assert len({result.name for result in results}) == len(results)
    return {result.name: result for result in results}


def of(provider: SandboxProvider) -> Make:
    @asynccontextmanager
    async def make() -> AsyncIterator[SandboxProvider]:
        yield provider

    return make


def failures(results: dict[str, CheckResult]) -> dict[str, str]:
    return {name: result.detail for name, result in results.items() if result.status == "failed"}


def passed(results: dict[str, CheckResult]) -> int:
    return sum(result.status == "passed" for result in results.values())


@pytest.mark.parametrize(("limits_by", "stacks"), [("cgroup-or-rlimit", True), ("rlimit", True), ("rlimit", False)])
def test_bubblewrap_conforms(cache: LayerCache, limits_by: LimitsBy, stacks: bool) -> None:
    """Bubblewrap passes every check that its capabilities allow, with and without control groups and overlays."""
    results = check(lambda: open_provider(limits_by=limits_by, cache=cache, stacks=stacks))
    assert failures(results) == {}
    assert passed(results) >= 50


def test_leased_boxes_conform(cache: LayerCache) -> None:
    """A pool is a provider like that whose boxes it leases, though few of its boxes are new."""
    pools: list[Pool] = []

    @asynccontextmanager
    async def make() -> AsyncIterator[SandboxProvider]:
        async with (
            open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider,
            open_pool(provider, capacity=6) as pool,
        ):
            pools.append(pool)
            yield pool

    results = check(make)
    assert failures(results) == {}
    assert passed(results) >= 50
    assert pools[0].counts.warm > pools[0].counts.created


def test_fake_conforms() -> None:
    """The fake passes every check that needs no process, and is not asked the others."""
    results = check(of(FakeProvider()))
    assert failures(results) == {}
    assert passed(results) >= 20
    assert results["links are not followed"].status == "skipped"


class LosesMode(FakeBox):
    """Breaks the contract: forgets permission bits."""

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await super().write(path, data)


class CutsOutput(FakeBox):
    """Breaks the contract: keeps the head of the output only, and does not say so."""

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
        result = await super().run(command, timeout_s=timeout_s, stdin=stdin, env=env, cwd=cwd)
        return CommandResult(result.exit_code, result.stdout[:500], result.stderr, timed_out=result.timed_out)


@pytest.mark.parametrize(
    ("box", "caught_by"),
    [
        (LosesMode, "write then read, with odd names and replacement"),
        (CutsOutput, "output keeps head and tail within the cap"),
    ],
)
def test_checks_catch_a_broken_provider(box: type[FakeBox], caught_by: str) -> None:
    """A provider that breaks one promise fails the check of that promise."""

    class Provider(FakeProvider):
        def make_box(self, spec: BoxSpec) -> FakeBox:
            return box(spec, self)

    assert caught_by in failures(check(of(Provider())))


def test_fake_runs_registered_programs() -> None:
    """A program that the user registered gets the call and may change the box's files."""

    async def use() -> tuple[CommandResult, bytes]:
        def double(call: FakeCall) -> tuple[int, bytes, bytes]:
            from practicum.records.tree import File

            call.files[f"{call.cwd}/out"] = File(call.stdin * 2)
            return 3, " ".join(call.argv).encode(), b"warned"

        async with FakeProvider({"double": double}).create(BoxSpec("a", limits=Limits())) as box:
            result = await box.run(["double", "it"], timeout_s=1, stdin=b"ab")
            return result, await box.read("out", max_bytes=10)

    result, data = asyncio.run(use())
    assert (result.exit_code, result.stdout, result.stderr, data) == (3, b"double it", b"warned", b"abab")
