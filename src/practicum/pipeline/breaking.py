"""A circuit breaker around what attempts need of the host.

Owns: `Breaking`.
Invariant: while the breaker is open no attempt begins; attempts wait, and are not masked one after another. What an
attempt came to is told to the breaker by the kind of its fault alone, never by its reward.
Must not know: why a provider fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from practicum.rollouts.attempt import Parked, Rolled
from practicum.scheduling.breaker import Breakers, Notice

_BLAMED = frozenset({"CreateFailed", "SandboxDied", "SandboxTimeout"})
_LOOK_S = 0.2


class Breaking:
    """The breaker of the provider `key`; `on_notice` gets each change of its state."""

    def __init__(self, key: str, on_notice: Callable[[Notice], None]) -> None:
        self._key, self._on_notice = key, on_notice
        self._breakers = Breakers()

    async def through(self, act: Callable[[], Awaitable[Rolled | Parked]]) -> Rolled | Parked:
        """What `act` comes to, once it may begin. How long that may take is the caller's deadline to say."""
        loop = asyncio.get_running_loop()
        while (ticket := self._breakers.admit(self._key, loop.time())) is None:  # noqa: ASYNC110  time itself opens it
            await asyncio.sleep(_LOOK_S)
        breaker, told = self._breakers.of(self._key), False
        try:
            found = await act()
            fault = found.fault if isinstance(found, Rolled) else None
            if fault is not None and fault.kind in _BLAMED:
                breaker.failed(ticket, loop.time(), fault.message)
            else:
                breaker.succeeded(ticket, loop.time())
            told = True
        finally:
            if not told:
                breaker.gave_up(ticket)
            for notice in self._breakers.drain():
                self._on_notice(notice)
        return found


def row_of(notice: Notice) -> dict[str, Any]:
    """The metrics row of a notice."""
    return {
        "kind": "breaker",
        "key": notice.key,
        "state": notice.after,
        "before": notice.before,
        "reason": notice.reason,
    }
