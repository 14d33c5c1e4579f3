"""Many boxes at once: what they take, and how fast they are gone.

Owns: `alive`, `room_for`.
Invariant: a box counts as alive when it has answered; they count as gone when none of their processes is left.
Must not know: baselines, who prints the outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from practicum.errors import ConfigError, SandboxError
from practicum.sandboxes.bench.states import settle
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.ownership import children
from practicum.sandboxes.provider import HostProvider

_FILES_OF_A_BOX, _FILES_OF_OTHERS = 4, 256


@contextlib.contextmanager
def room_for(boxes: int) -> Iterator[None]:
    """Let this process have as many open files as that many boxes take; `ConfigError` where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, _FILES_OF_A_BOX * boxes + _FILES_OF_OTHERS)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise ConfigError(f"{boxes} boxes take {wanted} open files, of which {hard} are allowed", fix="ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _available_mb() -> float:
    (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:"))
    return int(line.split()[1]) / 1024


async def alive(provider: HostProvider, boxes: int) -> dict[str, float]:
    """`boxes` boxes at once: memory they add (all of it, in MB), seconds to create them and to be rid of them."""
    hub = provider.host.hub.pid
    await settle(hub)
    creating = asyncio.Semaphore(2 * (os.cpu_count() or 1))
    lives = [provider.create(BoxSpec(f"bench-alive-{i}")) for i in range(boxes)]

    async def start(number: int) -> bool:
        async with creating:
            box = await opened.enter_async_context(lives[number])
        return (await box.status()).state == "idle"

    async with contextlib.AsyncExitStack() as opened:
        before, began = _available_mb(), time.perf_counter()
        answered = sum(await asyncio.gather(*(start(i) for i in range(boxes))))
        created = time.perf_counter() - began
        await asyncio.sleep(0.2)
        added, processes = before - _available_mb(), len(children(hub))
        if not answered == boxes == processes:
            raise SandboxError(f"of {boxes} boxes {answered} answered, and {processes} run")
        killing = time.perf_counter()
        await provider.close()
        await settle(hub)
        gone = time.perf_counter() - killing
    return {
        "boxes": boxes,
        "added_memory_mb": round(added, 1),
        "kill_to_empty_s": round(gone, 3),
        "created_s": round(created, 2),
    }
