"""Where gates work on this host.

Owns: `open_bench`. Invariant: every box is gone on return. Must not know: which gates there are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from practicum.curation.gates.contract import Bench
from practicum.errors import SandboxError
from practicum.records.recipe import Recipe
from practicum.rollouts.workshop import Workshop
from practicum.sandboxes.provider import HostProvider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.opening import open_verifier
from practicum.verification.runners.drivers import Drivers

_MORE = 2  # permits beside one for each processor: while one waits for its box, another works
_SPARE = 16  # boxes: each of several changed conditions needs some of its own


@asynccontextmanager
async def open_bench(provider: HostProvider, concurrent: int | None = None) -> AsyncIterator[Bench]:
    """Boxes of `provider`, leased and fresh; `concurrent` pieces of work at once."""
    most = concurrent or (os.cpu_count() or 1) + _MORE
    drivers = Drivers(provider)

    def layer_of(layer: str | Recipe) -> str:
        try:
            if isinstance(layer, Recipe):
                return f"{layer.digest}:{provider.layer_info(layer.base)['digest']}"
            return provider.layer_info(layer)["digest"]
        except SandboxError as error:
            return f"none: {error.message}"

    async with open_verifier(provider, max_concurrent=most, spare=_SPARE) as leased:
        yield Bench(
            workshop=Workshop(provider, leased, most),
            leased=leased,
            fresh=ExecutionVerifier(provider, max_concurrent=most, drivers=drivers),
            drivers=drivers,
            permits=asyncio.Semaphore(most),
            layer_of=layer_of,
        )
