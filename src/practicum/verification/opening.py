"""A judge on the boxes of a provider, as fast as they allow.

Owns: `open_verifier`.
Invariant: what was decided does not depend on whether boxes are leased again or made anew.
Must not know: how a verdict comes about.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.pool import open_pool
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.runners.drivers import Drivers

_SPARE = 2


@asynccontextmanager
async def open_verifier(
    provider: SandboxProvider, *, max_concurrent: int = 2, seed: int = 0, spare: int = _SPARE
) -> AsyncIterator[ExecutionVerifier]:
    """An `ExecutionVerifier` whose boxes are leased where resetting them is cheap, with its drivers kept warm.

    There are `spare` boxes beside those in use, so that judgements of different kinds take turns without starting anew.
    """
    drivers = Drivers(provider)
    if not {"warm", "copy-on-write"} <= provider.capabilities:
        yield ExecutionVerifier(provider, max_concurrent=max_concurrent, seed=seed, drivers=drivers)
        return
    async with open_pool(provider, capacity=max_concurrent + spare, creating=max_concurrent) as pool:
        yield ExecutionVerifier(pool, max_concurrent=max_concurrent, seed=seed, drivers=drivers, warm=True)
