"""Simulated hosts: places for boxes, with a circuit breaker for each host.

Owns: `Hosts`.
Invariant: no host has more boxes than places, and each place is given back once; a host that failed again and again is
left alone until its breaker lets one try.
Must not know: what boxes do.
"""

from __future__ import annotations

import asyncio
from collections import deque

from practicum.scheduling.breaker import BreakerRule, Breakers
from practicum.simulation.scenario import Scenario


class Hosts:
    """Places on hosts. Those of a host that fails are put aside until its breaker lets one try."""

    def __init__(self, scenario: Scenario) -> None:
        config = scenario.hosts
        self.up = [True] * config.count
        self.breakers = Breakers(BreakerRule(failures=3))
        self.in_use = 0
        self._loop = asyncio.get_running_loop()
        # One place of each host in turn, so that boxes spread evenly.
        self._free = deque(host for _ in range(config.slots) for host in range(config.count))
        self._aside: dict[int, int] = {}
        self._asking: deque[asyncio.Future[None]] = deque()
        self._creation_free_at = [0.0] * config.count
        self._spacing_s = 1 / config.creations_per_s

    async def claim(self) -> tuple[int, int]:
        """A place: its host, and the ticket of the host's breaker."""
        while True:
            while self._free:
                host = self._free.popleft()
                ticket = self.breakers.admit(f"host {host}", self._loop.time())
                if ticket is not None:
                    self.in_use += 1
                    return host, ticket
                self._put_aside(host)
            future = self._loop.create_future()
            self._asking.append(future)
            await future

    def give_back(self, host: int) -> None:
        """The place is free."""
        self.in_use -= 1
        self._free.append(host)
        self._wake()

    async def turn_to_create(self, host: int) -> None:
        """Wait until `host` can begin to make one more box."""
        now = self._loop.time()
        begin = max(now, self._creation_free_at[host])
        self._creation_free_at[host] = begin + self._spacing_s
        await asyncio.sleep(begin - now)

    def answered(self, host: int, ticket: int) -> None:
        """The host did what it was asked for: its other places are to be had again."""
        self.breakers.of(f"host {host}").succeeded(ticket, self._loop.time())
        if host in self._aside:
            self._look_again(host)

    def failed(self, host: int, ticket: int, reason: str) -> None:
        """The host did not."""
        self.breakers.of(f"host {host}").failed(ticket, self._loop.time(), reason)

    def gave_up(self, host: int, ticket: int) -> None:
        """Nobody waits for the host's answer any more."""
        self.breakers.of(f"host {host}").gave_up(ticket)

    def _put_aside(self, host: int) -> None:
        if host not in self._aside:
            breaker = self.breakers.of(f"host {host}")
            self._loop.call_at(max(breaker.until_s, self._loop.time() + 1.0), self._look_again, host)
        self._aside[host] = self._aside.get(host, 0) + 1

    def _look_again(self, host: int) -> None:
        # To the front: the first is the probe, and the others go aside again where it is still out.
        self._free.extendleft([host] * self._aside.pop(host, 0))
        self._wake()

    def _wake(self) -> None:
        while self._asking:
            future = self._asking.popleft()
            if not future.done():
                future.set_result(None)
                return
