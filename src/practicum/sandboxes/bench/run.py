"""The measurements, one after the other.

Owns: `bench`, `Sizes`, `Figures`.
Invariant: what is compared is measured in turns, so that a change of the host's mood meets both; what a box leaves
to be cleaned up in the background is counted to it, by waiting for it.
Must not know: who prints the outcome, what is a good one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from practicum.sandboxes.bench.alive import alive, room_for
from practicum.sandboxes.bench.baselines import COMMAND, Baseline, open_baselines
from practicum.sandboxes.bench.meter import Meter, open_meter
from practicum.sandboxes.bench.states import lease, reset_and_fork, settle
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.provider import HostProvider, open_provider

OnDone = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How often each thing is done. `turns` are rounds of `boxes` boxes of ours and of bubblewrap's, and fewer of
    the slower tools'; `files` are changed before each of `snapshots` snapshots, each forked three times."""

    turns: int = 12
    boxes: int = 10
    slow: int = 2
    commands: int = 300
    leases: int = 100
    snapshots: int = 12
    files: int = 10_000
    alive: int = 500


QUICK = Sizes(turns=4, boxes=5, slow=1, commands=60, leases=20, snapshots=3, alive=50)
STEPS = 5


@dataclass(slots=True)
class Figures:
    """What was measured: milliseconds by name, one for each sample, and `alive`. `missing` says what could not be."""

    cpu_by: str
    provider: str
    capabilities: list[str]
    load_before: float
    ms: dict[str, list[float]] = field(default_factory=dict)
    alive: dict[str, float] = field(default_factory=dict)
    argv: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, *values: float) -> None:
        self.ms.setdefault(name, []).extend(values)

    def p50(self, name: str) -> float | None:
        found = self.ms.get(name)
        return statistics.median(found) if found else None


async def bench(sizes: Sizes, on_done: OnDone = lambda what: None, **options: Any) -> Figures:
    """Measure boxes on this host beside the tools; `options` are those of `open_provider`.

    Raises `UnsupportedControl` or `CreateFailed` where no box can be made.
    """
    load = os.getloadavg()[0]
    with ExitStack() as opened:
        meter = opened.enter_context(open_meter())
        opened.enter_context(room_for(sizes.alive))
        async with open_provider(run_id="bench", **options) as provider:
            host = provider.host
            meter.include(host.hub.pid, host.cgroups.folders if host.cgroups else [])
            figures = Figures(meter.by, provider.name, sorted(provider.capabilities), load)
            baselines, figures.missing = opened.enter_context(open_baselines(BoxSpec("bench"), host, meter.group))
            figures.argv = {baseline.name: list(baseline.argv) for baseline in baselines}
            await _create(figures, provider, baselines, meter, sizes)
            on_done("create, run, destroy")
            await _commands(figures, provider, sizes)
            on_done("commands")
            for name, values in (await lease(provider, sizes.leases)).items():
                figures.add(name, *values)
            on_done("leases")
            for name, values in (await reset_and_fork(provider, sizes.snapshots, sizes.files)).items():
                figures.add(name, *values)
            on_done("reset and fork")
            figures.alive = await alive(provider, sizes.alive)
            on_done("alive at once")
    return figures


async def _create(
    figures: Figures, provider: HostProvider, baselines: list[Baseline], meter: Meter, sizes: Sizes
) -> None:
    """From nothing to nothing again, with one command in between, in turns with the tools."""
    hub, numbers = provider.host.hub.pid, iter(range(1_000_000))

    async def ours() -> None:
        async with provider.create(BoxSpec(f"bench-{next(numbers)}")) as box:
            await box.run([COMMAND], timeout_s=10)

    # Each blocks this process for as long as it takes, and nothing else is to be done meanwhile.
    contestants: dict[str, tuple[Callable[[], Awaitable[None]], int]] = {"create": (ours, sizes.boxes)}
    for baseline in baselines:
        contestants[baseline.name] = _at_once(baseline.run), sizes.boxes if baseline.name == "bwrap" else sizes.slow
    contestants["floor"] = _at_once(_floor), sizes.boxes
    await ours()
    for _ in range(sizes.turns):
        for name, (run, count) in contestants.items():
            await settle(hub)
            before = meter.seconds()
            for _ in range(count):
                start = time.perf_counter()
                await run()
                figures.add(name, (time.perf_counter() - start) * 1e3)
            await settle(hub)
            figures.add(f"{name}_cpu", (meter.seconds() - before) / count * 1e3)


async def _commands(figures: Figures, provider: HostProvider, sizes: Sizes) -> None:
    """One command in a living box, in turns with the same as a subprocess of this process."""
    async with provider.create(BoxSpec("bench-commands")) as box:
        await box.run([COMMAND], timeout_s=10)
        for _ in range(sizes.commands):
            start = time.perf_counter()
            await box.run([COMMAND], timeout_s=10)
            middle = time.perf_counter()
            _bare()
            end = time.perf_counter()
            _captured()
            figures.add("command", (middle - start) * 1e3)
            figures.add("subprocess", (end - middle) * 1e3)
            figures.add("subprocess_captured", (time.perf_counter() - end) * 1e3)


def _at_once(work: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        work()

    return run


def _floor() -> None:
    """The least that a new process costs on this host."""
    os.waitpid(os.posix_spawn(COMMAND, [COMMAND], {}), 0)


def _bare() -> None:
    subprocess.run([COMMAND], check=True, env={})


def _captured() -> None:
    subprocess.run([COMMAND], check=True, env={}, capture_output=True, stdin=subprocess.DEVNULL)
