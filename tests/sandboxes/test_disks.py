"""Disks: memory is given back exactly when nobody uses it, and what is frozen stays as it was."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import SandboxError, UnsupportedControl
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, Sandbox
from practicum.sandboxes.disks import MOST_PLACES, MOST_STACKED, Disk, Disks, Frozen, Place
from practicum.sandboxes.hub import Hub, HubRefused, Step
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.provider import open_provider


class Ledger:
    """A hub that mounts nothing and notes which file systems in memory there are. It may refuse the next request."""

    def __init__(self) -> None:
        self.folder = Path("/hub")
        self.systems: set[str] = set()
        self.made: list[Step] = []
        self.refuses = False

    def do(self, steps: list[Step], *, plain: bool = False) -> None:
        for operation, path, more in steps:
            if operation == "T" and path.startswith("d/"):
                assert path not in self.systems
                self.systems.add(path)
            if operation == "O":
                for used in more.split(","):
                    folders = used.partition("=")[2].split(":") if "=" in used else []
                    for folder in folders:
                        system = "/".join(folder.split("/")[:2])
                        assert not folder.startswith("d/") or system in self.systems, f"{folder} lies on nothing"
            self.made.append((operation, path, more))
        if self.refuses:
            self.refuses = False
            raise HubRefused("no", 28)

    def clear(self, paths: list[str]) -> None:
        self.systems -= set(paths)


PLACES = [Place("/app"), Place("/usr/local", ("/layers/one", "/layers/two")), Place("/dev/shm", frozen=False)]


@dataclass
class World:
    """Boxes and snapshots, and what each of them uses."""

    ledger: Ledger = field(default_factory=Ledger)
    boxes: list[Disk] = field(default_factory=list)
    snapshots: list[Frozen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disks = Disks(cast(Hub, self.ledger))

    def used(self) -> set[str]:
        found = {system for frozen in self.snapshots for system in frozen.systems}
        for box in self.boxes:
            found |= {box._system} | box._below.systems | box._start.systems
        return found

    def act(self, what: str, number: int) -> None:
        box = self.boxes[number % len(self.boxes)] if self.boxes else None
        frozen = self.snapshots[number % len(self.snapshots)] if self.snapshots else None
        if what in ("new", "fork"):
            disk = self.disks.new(PLACES, 1 << 20)
            try:
                disk.start(frozen if what == "fork" else None)
            except HubRefused:  # as a box does that could not be made
                disk.remove()
                raise
            self.boxes.append(disk)
        elif what == "release":
            if frozen is not None:
                self.snapshots.remove(frozen)
                self.disks.let_go(frozen.systems)
        elif box is None:
            return
        elif what == "snapshot":
            taken = box.stack()
            self.disks.hold(taken.systems)
            self.snapshots.append(taken)
        elif what == "restore" and frozen is not None:
            box.attach(frozen)
        elif what == "reset":
            box.reset()
        elif what == "remove":
            self.boxes.remove(box)
            box.remove()


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["new", "fork", "snapshot", "snapshot", "restore", "reset", "remove", "release"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(acts=ACTS)
def test_memory_is_there_exactly_while_it_is_used(acts: list[tuple[str, int]]) -> None:
    """Whatever boxes and snapshots do, a file system that one of them needs is there, and no other is."""
    world = World()
    for what, number in acts:
        world.act(what, number)
        assert world.ledger.systems == world.used()
    for _ in list(world.snapshots):
        world.act("release", 0)
    for _ in list(world.boxes):
        world.act("remove", 0)
    assert world.ledger.systems == set()


@settings(max_examples=60, deadline=None)
@given(acts=ACTS, refused=st.integers(0, 30))
def test_a_refusal_leaks_nothing(acts: list[tuple[str, int]], refused: int) -> None:
    """When the kernel refuses a mount, what others use stays, and all is given back with the last of them."""
    world = World()
    for turn, (what, number) in enumerate(acts):
        world.ledger.refuses = turn == refused
        with contextlib.suppress(HubRefused):
            world.act(what, number)
        assert world.ledger.systems >= {system for frozen in world.snapshots for system in frozen.systems}
    world.ledger.refuses = False
    for _ in list(world.snapshots):
        world.act("release", 0)
    for _ in list(world.boxes):
        world.act("remove", 0)
    assert world.ledger.systems == set()


def test_only_what_was_asked_for_is_frozen() -> None:
    """A snapshot holds what was written above what lay below, topmost first; shared memory is left out."""
    world = World()
    world.act("new", 0)
    first, second = world.boxes[0].stack(), world.boxes[0].stack()
    assert second.stacks["/app"][1:] == first.stacks["/app"]
    assert first.stacks["/usr/local"][1:] == ("/layers/one", "/layers/two")
    assert second.stacks["/dev/shm"] == ()
    assert len(set(second.stacks["/app"])) == 2
    assert first.systems == {"d/0.0"}


def test_limits_of_a_disk() -> None:
    """Too many places, a snapshot of other places, and too deep a stack are refused by name."""
    world = World()
    with pytest.raises(UnsupportedControl, match=f"{MOST_PLACES} .*places, not {MOST_PLACES + 1}"):
        world.disks.new([Place(f"/p{i}") for i in range(MOST_PLACES + 1)], 1 << 20)
    world.act("new", 0)
    other = world.disks.new([Place("/other")], 1 << 20)
    other.start(None)
    with pytest.raises(SandboxError, match="/other"):
        world.boxes[0].attach(other.stack())
    for _ in range(MOST_STACKED - 2):  # two folders of the layer are below already
        world.boxes[0].stack()
    with pytest.raises(SandboxError, match=f"frozen {MOST_STACKED} times"):
        world.boxes[0].stack()


def test_odd_folders_among_mount_options() -> None:
    """Commas, colons and backslashes of folders below a place do not become options."""
    ledger = Ledger()
    disk = Disks(cast(Hub, ledger)).new([Place("/app", ("/a,b:c\\d", "/plain"))], 1 << 20)
    disk.start(None)
    (overlay,) = (more for operation, _, more in ledger.made if operation == "O")
    assert "lowerdir=/a\\,b\\:c\\\\d:/plain,upperdir=" in overlay


# --- as the kernel does it ---------------------------------------------------------------------------------


async def said(box: Sandbox, script: str) -> str:
    done = await box.run(["sh", "-c", script], timeout_s=30)
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode()


def test_a_long_chain(cache: LayerCache) -> None:
    """Snapshots can be stacked as deep as is said, and each, the deepest too, holds what was there at its time."""

    async def use() -> None:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("files cannot be stacked here")
            async with provider.create(BoxSpec("chain")) as box:
                taken = []
                for i in range(MOST_STACKED):
                    await box.write(f"f{i}", b"%d" % i)
                    taken.append(await box.snapshot())
                await box.write("more", b"x")
                with pytest.raises(SandboxError, match="times") as refused:
                    await box.snapshot()
                assert "save it" in (refused.value.fix or "")
                assert await said(box, "ls | wc -l; cat f0 more") == f"{MOST_STACKED + 1}\n0x"
                for depth in (0, 99, MOST_STACKED - 1):
                    async with provider.fork(taken[depth], BoxSpec("fork")) as fork:
                        assert await said(fork, "ls | wc -l; echo new > f0; cat f0") == f"{depth + 1}\nnew\n"
            for snapshot in taken:
                provider.release(snapshot)

    asyncio.run(use())


def test_forks_of_forks(cache: LayerCache) -> None:
    """Each generation changes, adds and deletes; the last sees all of that, whatever was released or has ended."""

    async def use() -> None:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            async with provider.create(BoxSpec("zero", files={"log": File(b"0\n")})) as box:
                snapshot = await box.snapshot()
            for i in range(1, 6):
                async with provider.fork(snapshot, BoxSpec(f"fork-{i}")) as box:
                    await said(box, f"echo {i} >> log; echo {i} > made-{i}; rm -f made-{i - 2}")
                    later = await box.snapshot()
                provider.release(snapshot)
                snapshot = later
            async with provider.fork(snapshot, BoxSpec("last")) as box:
                assert await said(box, "cat log; ls") == "0\n1\n2\n3\n4\n5\nlog\nmade-4\nmade-5\n"
                await said(box, "rm -r *")
                await box.reset()
                assert await said(box, "ls") == "log\nmade-4\nmade-5\n"
            provider.release(snapshot)

    asyncio.run(use())


def shared_memory_mb() -> float:
    (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Shmem:"))
    return int(line.split()[1]) / 1024


def test_memory_comes_back(cache: LayerCache) -> None:
    """What a box wrote is held by its snapshot after a reset, and is free when that is released."""

    async def settled(low: float, high: float) -> float:
        deadline = time.monotonic() + 10
        while True:
            found = shared_memory_mb() - before
            if low < found < high or time.monotonic() > deadline:
                return found
            await asyncio.sleep(0.02)

    async def use() -> None:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("files cannot be stacked here")
            async with provider.create(BoxSpec("big", limits=Limits(disk_bytes=512 * MIB))) as box:
                await said(box, "head -c 300M /dev/zero > /app/big")
                assert 250 < await settled(250, 350) < 350
                snapshot = await box.snapshot()
                await box.reset()
                await asyncio.sleep(0.2)
                assert 250 < await settled(250, 350) < 350
                provider.release(snapshot)
                assert await settled(-100, 50) < 50

    before = shared_memory_mb()
    asyncio.run(use())


def test_as_many_places_as_there_may_be(cache: LayerCache) -> None:
    """A box with the most places has them all, after a reset and in a fork as well; one more is refused."""
    spec = BoxSpec("many", scratch=tuple(f"/places/p{i}" for i in range(MOST_PLACES - 3)))
    fill = "for p in /places/p*; do echo x > $p/f || exit 1; done; ls /places/*/f | wc -l"
    look = "ls /places | wc -l; ls /places/* | grep -c '^f$'; true"

    async def use() -> None:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("the number of places is not limited here")
            async with provider.create(spec) as box:
                assert await said(box, fill) == f"{MOST_PLACES - 3}\n"
                snapshot = await box.snapshot()
                await box.reset()
                assert await said(box, look) == f"{MOST_PLACES - 3}\n0\n"
                async with provider.fork(snapshot, replace(spec, create_id="fork")) as fork:
                    assert await said(fork, look) == f"{MOST_PLACES - 3}\n{MOST_PLACES - 3}\n"
                provider.release(snapshot)
            with pytest.raises(UnsupportedControl, match=f"{MOST_PLACES}"):
                async with provider.create(replace(spec, scratch=(*spec.scratch, "/one-more"))):
                    pass
            assert provider.live == 0

    asyncio.run(use())
