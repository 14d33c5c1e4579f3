"""Attempts, inside a training run and outside: the boxes and the judge of this host.

Owns: `open_boxes`, `open_workshop`.
Invariant: every box is gone on return.
Must not know: training, who prints the outcome.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from practicum.config.sections import JudgeConfig
from practicum.rollouts.workshop import Workshop

if TYPE_CHECKING:
    from practicum.sandboxes.provider import HostProvider


def open_boxes(run_id: str = "adhoc") -> AbstractAsyncContextManager[HostProvider]:
    """Boxes on this host, with the best limits that it can enforce; `practicum doctor` says which.

    Raises `UnsupportedControl` or `CreateFailed`, with a fix, where this host cannot make a box.
    """
    from practicum.sandboxes.provider import open_provider

    return open_provider(run_id=run_id, limits_by="cgroup-or-rlimit")


@asynccontextmanager
async def open_workshop(max_concurrent: int | None = None, judge: JudgeConfig | None = None) -> AsyncIterator[Workshop]:
    """Boxes and a verifier; `max_concurrent` attempts at once, twice the processors where not given.

    `judge` names a model for the signal of that name. Raises what `open_boxes` and `open_signals` raise.
    """
    from practicum.pipeline.signals import open_signals
    from practicum.verification.opening import open_verifier

    async with (
        open_boxes() as provider,
        open_verifier(provider) as executing,
        open_signals(provider, executing, judge) as verifier,
    ):
        yield Workshop(provider, verifier, max_concurrent or 2 * (os.cpu_count() or 1))
