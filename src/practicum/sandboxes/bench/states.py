"""How fast a box is had that is warm, and how fast one is made what it was.

Owns: `lease`, `reset_and_fork`, `settle`.
Invariant: what is measured is seen to have happened: a fork holds the files, a reset box does not.
Must not know: baselines, who prints the outcome.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from practicum.errors import SandboxError
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, Sandbox
from practicum.sandboxes.ownership import children
from practicum.sandboxes.pool import Pool, open_pool
from practicum.sandboxes.provider import HostProvider

_FORKS = 3  # of each snapshot
_SETTLE_S = 20.0
_LIMITS = Limits(disk_bytes=256 * MIB)
_WARM = {"main.py": File(b"print('hello')\n"), "run.sh": File(b"#!/bin/sh\n", 0o755)}


async def settle(hub: int, boxes: int = 0) -> None:
    """Wait until the process that starts boxes has no children but `boxes` boxes: all is cleaned up."""
    deadline = time.monotonic() + _SETTLE_S
    while len(children(hub)) > boxes:
        if time.monotonic() > deadline:
            raise SandboxError(f"what boxes left is not cleaned up after {_SETTLE_S:.0f} s")
        await asyncio.sleep(0.002)


async def _idle(pool: Pool, boxes: int) -> None:
    """Wait until that many boxes are back: they are reset in the background."""
    deadline = time.monotonic() + _SETTLE_S
    while pool.idle < boxes:
        if time.monotonic() > deadline:
            raise SandboxError(f"a box is not back after {_SETTLE_S:.0f} s ({pool.counts})")
        await asyncio.sleep(0.001)


async def lease(provider: HostProvider, count: int) -> dict[str, list[float]]:
    """Milliseconds to a leased box with two files laid into it, where one waits."""
    found: list[float] = []
    async with open_pool(provider, capacity=2) as pool:
        await pool.warm(BoxSpec("bench-warm"), 2)
        for i in range(count):
            start = time.perf_counter()
            async with pool.create(BoxSpec(f"bench-lease-{i}", files=_WARM)) as box:
                found.append((time.perf_counter() - start) * 1e3)
                await box.run(["/usr/bin/true"], timeout_s=10)
            await _idle(pool, 2)
        warm, leases = pool.counts.warm, pool.counts.leases
    if warm < leases:
        raise SandboxError(f"{leases - warm} of {leases} leases did not find a warm box: {pool.counts.quarantined}")
    return {"lease": found}


async def reset_and_fork(provider: HostProvider, count: int, files: int) -> dict[str, list[float]]:
    """Milliseconds of a snapshot, of a fork into a warm box, and of a reset, each with `files` changed files."""
    found: dict[str, list[float]] = {"snapshot": [], "fork": [], "reset": []}
    hub = provider.host.hub.pid
    async with AsyncExitStack() as opened:
        pool = await opened.enter_async_context(open_pool(provider, capacity=2))
        await pool.warm(BoxSpec("bench-warm", limits=_LIMITS), 1)
        box = await opened.enter_async_context(provider.create(BoxSpec("bench-changed", limits=_LIMITS)))
        for i in range(count):
            await _change(box, files)
            start = time.perf_counter()
            snapshot = await box.snapshot()
            found["snapshot"].append((time.perf_counter() - start) * 1e3)
            for k in range(_FORKS):
                await settle(hub, 2)
                start = time.perf_counter()
                async with pool.fork(snapshot, BoxSpec(f"bench-fork-{i}-{k}", limits=_LIMITS)) as fork:
                    found["fork"].append((time.perf_counter() - start) * 1e3)
                    if k == 0:
                        await _expect(fork, files)
                await _idle(pool, 1)
            provider.release(snapshot)
            await settle(hub, 2)
            start = time.perf_counter()
            await box.reset()
            found["reset"].append((time.perf_counter() - start) * 1e3)
            await _expect(box, 0)
            await settle(hub, 2)
    return found


async def _change(box: Sandbox, files: int) -> None:
    script = f"for i in range({files}): open(f'f{{i}}', 'w').write('x')"
    done = await box.run(["python3", "-I", "-S", "-c", script], timeout_s=60)
    if done.exit_code:
        raise SandboxError(f"{files} files could not be made: {done.stderr.decode(errors='replace')[-200:]}")


async def _expect(box: Sandbox, files: int) -> None:
    done = await box.run(["sh", "-c", "ls | wc -l"], timeout_s=20)
    if int(done.stdout) != files:
        raise SandboxError(f"a box holds {int(done.stdout)} files instead of {files}")
