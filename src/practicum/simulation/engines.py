"""Simulated engines: replicas that share their throughput among the samples under way.

Owns: `Replica`, `Engines`.
Invariant: a replica never makes more tokens than its throughput, nor more of one sample than a single one gets; what
it was making when it died is lost and raises, as a server's error would.
Must not know: what is sampled, who asks.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque

from practicum.errors import PolicyError
from practicum.simulation.scenario import EnginesConfig

_ROUNDING = 1e-6  # tokens


class _Request:
    """One sample to be made."""

    __slots__ = ("began", "future", "tokens")

    def __init__(self, tokens: int, future: asyncio.Future[None]) -> None:
        self.tokens = tokens
        self.future = future
        self.began = 0.0


class Replica:
    """One engine: up to `slots` samples share its throughput evenly, others wait in the order of coming."""

    def __init__(self, name: str, config: EnginesConfig) -> None:
        self.name = name
        self.sessions = 0
        self.state = "up"  # "up", "dead", or "hung": takes requests and never answers
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._paused = False
        self._since = self._loop.time()
        self._made = 0.0  # tokens that a sample which was there all the time would have got
        self._active: list[tuple[float, int, _Request]] = []  # done at `made`, in order of coming, what
        self._waiting: deque[_Request] = deque()
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._speed = 0.0
        self.busy_s = 0.0  # seconds × share of the throughput in use

    @property
    def load(self) -> int:
        """Samples that are made or wait."""
        return len(self._active) + len(self._waiting)

    @property
    def queued(self) -> int:
        """Samples that wait."""
        return len(self._waiting)

    async def decode(self, tokens: int) -> float:
        """Make so many tokens; the seconds that they waited to begin. Raises `PolicyError` where the engine dies."""
        if self.state == "dead":
            raise PolicyError(f"{self.name} refused the connection")
        request, asked = _Request(tokens, self._loop.create_future()), self._loop.time()
        self._advance()
        self._waiting.append(request)
        self._admit()
        try:
            await request.future
        except asyncio.CancelledError:
            self._forget(request)
            raise
        return request.began - asked

    def pause(self, paused: bool) -> None:
        """Stand still, or go on."""
        self._advance()
        self._paused = paused
        self._admit()

    def end(self, state: str) -> None:
        """Die or hang."""
        self._advance()
        self.state, self._speed = state, -1.0
        if state == "dead":
            lost = [request for _, _, request in sorted(self._active, key=lambda entry: entry[1])] + [*self._waiting]
            self._active.clear()
            self._waiting.clear()
            for request in lost:
                if not request.future.done():
                    request.future.set_exception(PolicyError(f"{self.name} went away"))
        self._admit()

    def begin(self) -> None:
        """Be there again; samples that hung are lost."""
        self.end("dead")
        self.state = "up"

    def _pace(self) -> float:
        """Tokens a second that one sample gets when there are as many as now."""
        config = self._config
        return min(config.stream_tokens_per_s, config.tokens_per_s / max(1, len(self._active)))

    def _advance(self) -> None:
        now = self._loop.time()
        made = (now - self._since) * self._speed
        self._made += made
        self.busy_s += made * len(self._active) / self._config.tokens_per_s
        self._since = now

    def _admit(self) -> None:
        """Let those who wait begin, and set the timer for the first to be done. Call after `_advance`."""
        first = self._active[0] if self._active else None
        while self._waiting and len(self._active) < self._config.slots:
            request = self._waiting.popleft()
            request.began = self._since
            heapq.heappush(self._active, (self._made + request.tokens, next(self._numbers), request))
        speed = 0.0 if self._paused or self.state != "up" or not self._active else self._pace()
        if speed == self._speed and self._active and self._active[0] is first and self._timer is not None:
            return
        self._speed = speed
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if speed:
            self._timer = self._loop.call_later(max(0.0, self._active[0][0] - self._made) / speed, self._done)

    def _done(self) -> None:
        self._timer = None
        self._advance()
        while self._active and self._active[0][0] <= self._made + _ROUNDING:
            request = heapq.heappop(self._active)[2]
            if not request.future.done():
                request.future.set_result(None)
        self._admit()

    def _forget(self, request: _Request) -> None:
        """Whoever asked does not wait any more."""
        self._advance()
        self._active = [entry for entry in self._active if entry[2] is not request]
        heapq.heapify(self._active)
        self._waiting = deque(entry for entry in self._waiting if entry is not request)
        self._speed = -1.0  # whatever it was, the timer is to be set anew
        self._admit()


class Engines:
    """All replicas, and the version of the weights that they have."""

    def __init__(self, config: EnginesConfig) -> None:
        self.replicas = [Replica(f"engine {number}", config) for number in range(config.replicas)]
        self.version = 0
        self._publish_s = config.publish_s

    async def publish(self, version: int) -> None:
        """Take new weights; samples under way stand still meanwhile, and go on with them."""
        for replica in self.replicas:
            replica.pause(True)
        await asyncio.sleep(self._publish_s)
        self.version = version
        for replica in self.replicas:
            replica.pause(False)
