"""A judge without anybody who attempts: for canaries, re-scoring and spot checks.

Owns: `Bench`, `open_judge`. Invariant: every box is gone on return. Must not know: what the verdicts are for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from practicum.pipeline.execute import open_boxes
from practicum.pipeline.signals import open_signals
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.opening import open_verifier
from practicum.verification.shaping import ShapingVerifier


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge and the boxes that it uses."""

    provider: SandboxProvider
    verifier: ShapingVerifier


@asynccontextmanager
async def open_judge(*, seed: int = 0, concurrent: int = 2) -> AsyncIterator[Bench]:
    """A judge on this host, which asks no model. Raises what `open_boxes` raises."""
    async with (
        open_boxes() as provider,
        open_verifier(provider, seed=seed, max_concurrent=concurrent) as executing,
        open_signals(provider, executing, None) as verifier,
    ):
        yield Bench(provider, verifier)
