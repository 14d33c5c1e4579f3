"""Simulated boxes.

Owns: `SimulatedProvider`, `SimulatedBox`, `SandboxFaults`.
Invariant: a dead box, or a box on a dead host, raises, and never answers with a result.
Must not know: policies, verdicts, who schedules.

A command reads `work SECONDS pass|fail`: the box is busy for so long, and what it holds at the end is the last word.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NoReturn

from practicum.errors import CreateFailed, SandboxDied, SandboxError, SandboxTimeout, UnsupportedControl
from practicum.records.tree import File, Tree
from practicum.sandboxes.contract import (
    BoxSpec,
    BoxStatus,
    Capability,
    CommandResult,
    Listing,
    Snapshot,
    SnapshotId,
)
from practicum.sandboxes.snapshots import MemorySnapshots
from practicum.scheduling.histogram import Histogram
from practicum.simulation.hosts import Hosts
from practicum.simulation.plans import draw
from practicum.simulation.scenario import Scenario

ANSWER = "answer"  # the file that a box holds
_UNREACHABLE_S = 10.0  # until a host that is dead is known not to answer
_GRACE_S = 5.0  # beyond a command's own time, until a box that does not answer is given up
_SAVED = "simulated"
_RECENT = 256


class SandboxFaults:
    """What befell boxes, by kind, and which boxes gave their work away while alive."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.delivered: set[str] = set()


class SimulatedBox:
    """One box. Made by `SimulatedProvider`."""

    def __init__(self, provider: SimulatedProvider, spec: BoxSpec, host: int, saved: SnapshotId | None) -> None:
        self._provider = provider
        self._spec = spec
        self._host = host
        self._source = random.Random(f"box:{provider.seed}:{spec.create_id}")
        self._dead = self._closed = False
        self._runs, self._last = 0, ""
        if saved is not None:
            _, runs, self._last = saved.split(":")
            self._runs = int(runs)

    @property
    def id(self) -> str:
        """Its create id."""
        return self._spec.create_id

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
        """Be busy for the seconds of the command. Raises `SandboxDied` as the scenario says."""
        _, seconds, word = command[-1].split()
        takes, provider = float(seconds), self._provider
        if provider.hang and self._source.random() < provider.hang:
            await asyncio.sleep(timeout_s + _GRACE_S)
            self._die("hang", SandboxTimeout(f"the box {self.id} did not answer within {timeout_s:g} s"))
        dies = provider.death and self._source.random() < provider.death
        spent = min(takes, timeout_s)
        await asyncio.sleep(spent * self._source.random() if dies else spent)
        if dies:
            self._die("box_death")
        self._check()
        self._runs += 1
        if takes > timeout_s:
            self._last = "fail"
            return CommandResult(124, b"", b"", timed_out=True, wall_s=timeout_s)
        self._last = word
        return CommandResult(0, b"", b"", wall_s=takes)

    async def save(self) -> SnapshotId:
        """A name for what it holds."""
        self._check()
        return f"{_SAVED}:{self._runs}:{self._last}"

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        """The answer: the last word, and which box it is of."""
        self._check()
        self._provider.faults.delivered.add(self.id)
        return Listing({ANSWER: File(f"{self._last} {self.id}".encode())} if self._last else {})

    async def quiet(self) -> None:
        """Nothing is left running."""
        self._check()

    async def status(self) -> BoxStatus:
        """Idle, or gone."""
        return BoxStatus("gone" if self._dead else "idle")

    async def close(self) -> None:
        """End, which takes some time. Idempotent."""
        if not self._closed:
            self._closed = True
            await asyncio.sleep(self._provider.close_s)

    async def run_warm(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> CommandResult:
        """Not simulated."""
        raise _not_simulated("run_warm")

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """Not simulated."""
        raise _not_simulated("read")

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Not simulated."""
        raise _not_simulated("write")

    async def upload(self, path: str, tree: Tree) -> None:
        """Not simulated."""
        raise _not_simulated("upload")

    async def snapshot(self) -> Snapshot:
        """Not simulated."""
        raise _not_simulated("snapshot")

    async def supply(self, readonly: Mapping[str, Tree]) -> None:
        """Not simulated."""
        raise _not_simulated("supply")

    async def restore(self, snapshot: Snapshot) -> None:
        """Not simulated."""
        raise _not_simulated("restore")

    async def reset(self) -> None:
        """Not simulated."""
        raise _not_simulated("reset")

    def _check(self) -> None:
        if not self._dead and not self._provider.hosts.up[self._host]:
            self._die("host_death")
        if self._dead:
            raise SandboxDied(f"the box {self.id} is gone")

    def _die(self, kind: str, error: SandboxError | None = None) -> NoReturn:
        self._dead = True
        self._provider.faults.counts[kind] += 1
        raise error or SandboxDied(f"the box {self.id} ended on host {self._host}")


class SimulatedProvider:
    """Makes `SimulatedBox`es. `created` holds the seconds from asking for a box to having it.

    `recent` holds the last tries: when each ended, and its seconds, or None where it failed.
    """

    name = "simulated"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, scenario: Scenario) -> None:
        self.seed = scenario.seed
        self.hosts = Hosts(scenario)
        self.snapshots = MemorySnapshots()
        self.faults = SandboxFaults()
        self.created = Histogram()
        self.recent: deque[tuple[float, float | None]] = deque(maxlen=_RECENT)
        self.close_s = scenario.hosts.close_s
        self._config = scenario.hosts
        self._create_failure = scenario.faults.create_failure
        self._source = random.Random(f"create:{scenario.seed}")
        self.hang = scenario.faults.hang
        mean_turns = _typical(scenario)
        self.death = 1 - (1 - scenario.faults.box_death) ** (1 / max(1.0, mean_turns - 1))

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[SimulatedBox]:
        """A box on the next host. Raises `CreateFailed` as the scenario says."""
        return self._create(spec, None)

    @asynccontextmanager
    async def _create(self, spec: BoxSpec, saved: SnapshotId | None) -> AsyncIterator[SimulatedBox]:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        host, ticket = await self.hosts.claim()
        try:
            await self.hosts.turn_to_create(host)
            if not self.hosts.up[host]:
                await asyncio.sleep(_UNREACHABLE_S)
                self.hosts.failed(host, ticket, "it does not answer")
                self.faults.counts["unreachable"] += 1
                raise CreateFailed(f"host {host} does not answer")
            await asyncio.sleep(draw(self._config.create, self._source))
            if self._create_failure and self._source.random() < self._create_failure:
                self.hosts.failed(host, ticket, "a creation failed")
                self.faults.counts["create_failure"] += 1
                raise CreateFailed(f"host {host} made no box")
            self.hosts.answered(host, ticket)
            self.created.add(loop.time() - asked)
            self.recent.append((loop.time(), loop.time() - asked))
            box = SimulatedBox(self, spec, host, saved)
        except asyncio.CancelledError:
            self.hosts.gave_up(host, ticket)
            self.hosts.give_back(host)
            raise
        except CreateFailed:
            self.recent.append((loop.time(), None))
            self.hosts.give_back(host)
            raise
        try:
            yield box
            await box.close()
        finally:
            self.hosts.give_back(host)

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[SimulatedBox]:
        """A box that holds what a saved one held. Raises `CreateFailed` as the scenario says."""
        if isinstance(snapshot, Snapshot):
            raise _not_simulated("snapshot")
        return self._create(spec, snapshot)

    def release(self, snapshot: Snapshot) -> None:
        """Nothing is kept."""


def _typical(scenario: Scenario) -> float:
    """Turns of the usual episode."""
    turns = scenario.episode.turns
    return (turns.median if turns.kind == "log-normal" else turns.mean) or 2.0


def _not_simulated(call: str) -> UnsupportedControl:
    return UnsupportedControl(f"simulated boxes have no {call}")
