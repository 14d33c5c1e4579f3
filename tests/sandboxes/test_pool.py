"""The pool: never more boxes than allowed, one lease for each box, and nothing of one lease in the next."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import CreateFailed, SandboxDied, SandboxError, UnsupportedControl
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, BoxStatus, Sandbox
from practicum.sandboxes.fake import FakeBox, FakeProvider
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Record, process_start
from practicum.sandboxes.pool import Pool, open_pool
from practicum.sandboxes.provider import open_provider

TICK = 0.0005


class Host(FakeProvider):
    """Boxes in memory that take a moment to make, and are counted. What is in `broken` does not work."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self.broken = set(broken)
        self.creating = self.most_creating = self.most_alive = self.resets = 0
        self.holding: asyncio.Event | None = None

    def make_box(self, spec: BoxSpec) -> FakeBox:
        return CountedBox(spec, self)

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._slowly(spec)

    @asynccontextmanager
    async def _slowly(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        self.creating += 1
        self.most_creating = max(self.most_creating, self.creating)
        try:
            await asyncio.sleep(TICK)
            if "create" in self.broken or spec.create_id in self.broken:
                raise CreateFailed("no box today")
            life = super().create(spec)
            box = await life.__aenter__()
        finally:
            self.creating -= 1
        self.most_alive = max(self.most_alive, self.live)
        try:
            yield box
        finally:
            try:
                await asyncio.sleep(10 * TICK if "slow end" in self.broken else 0)
            finally:  # to the end, even when the caller is cancelled meanwhile
                await life.__aexit__(None, None, None)


class CountedBox(FakeBox):
    def __init__(self, spec: BoxSpec, host: Host) -> None:
        super().__init__(spec, host)
        self.host = host
        self.users = 0

    async def reset(self) -> None:
        await asyncio.sleep(TICK)
        self.host.resets += 1
        if "reset" in self.host.broken:
            raise SandboxError("it cannot be reset")
        await super().reset()

    async def status(self) -> BoxStatus:
        if self.host.holding is not None:
            await self.host.holding.wait()
        if "status" in self.host.broken:
            raise SandboxDied("it has ended")
        if "dirty" in self.host.broken:
            return BoxStatus("idle", ("daemon",))
        return await super().status()


SPEC = BoxSpec("x")
OTHER = replace(SPEC, env={"SHAPE": "other"})


def inner(box: Sandbox) -> CountedBox:
    found = box._box  # type: ignore[attr-defined]
    assert isinstance(found, CountedBox)
    return found


async def use_one(pool: Pool, number: int, spec: BoxSpec, *, hold: float = TICK) -> None:
    """Lease, check that nobody else has the box and nothing is in it, leave something, go."""
    async with pool.create(replace(spec, create_id=str(number))) as box:
        counted = inner(box)
        counted.users += 1
        try:
            assert counted.users == 1, "two leases have one box"
            assert (await box.list_tree("/app", max_bytes=100)).files == {}
            await box.write(f"left-by-{number}", b"x")
            await asyncio.sleep(hold)
        finally:
            counted.users -= 1


def test_a_storm_of_requests() -> None:
    """Of 500 requests at once each is served, by boxes of its own; no more exist or are made than allowed."""

    async def use() -> None:
        host = Host()
        async with open_pool(host, capacity=7, creating=2) as pool:
            await asyncio.gather(*(use_one(pool, i, SPEC if i % 3 else OTHER) for i in range(500)))
            assert pool.counts.leases == 500
            assert pool.alive <= 7
        assert (host.most_creating, host.most_alive <= 7, host.live, pool.alive) == (2, True, 0, 0)
        assert host.created < 400  # most found a warm one

    asyncio.run(asyncio.wait_for(use(), 60))


REQUESTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0.0, TICK, 3 * TICK]), st.booleans()), min_size=1, max_size=25
)


@settings(max_examples=40, deadline=None)
@given(requests=REQUESTS, capacity=st.integers(1, 4), most=st.integers(1, 3))
def test_any_mix_of_requests(requests: list[tuple[int, float, bool]], capacity: int, most: int) -> None:
    """Whatever shapes are asked for, and whoever gives up when, the rest are served and nothing is lost."""

    async def use() -> None:
        host = Host()
        shapes = [replace(SPEC, env={"SHAPE": str(i)}) for i in range(3)]
        async with open_pool(host, capacity=capacity, creating=2, most_leases=most) as pool:
            tasks = []
            for number, (shape, hold, _) in enumerate(requests):
                tasks.append(asyncio.create_task(use_one(pool, number, shapes[shape], hold=hold)))
                await asyncio.sleep(0)
            for task, (_, hold, gives_up) in zip(tasks, requests, strict=True):
                if gives_up:
                    await asyncio.sleep(hold)
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task, (_, _, gives_up) in zip(tasks, requests, strict=True):
                assert gives_up or task.exception() is None
            # Had a box been lost, there would be no room for so many.
            await asyncio.gather(*(use_one(pool, -1 - i, SPEC, hold=3 * TICK) for i in range(capacity)))
            assert host.live == pool.alive <= capacity
            assert host.most_alive <= capacity
        assert (host.live, pool.alive) == (0, 0)

    asyncio.run(asyncio.wait_for(use(), 30))


def test_another_shape_makes_room() -> None:
    """A full pool of idle boxes of one shape gives one of them up for another shape, and none that is leased."""

    async def use() -> None:
        host = Host()
        async with open_pool(host, capacity=2) as pool:
            await pool.warm(SPEC, 2)
            async with pool.create(OTHER) as box:
                assert inner(box)._spec.env == OTHER.env
                assert (pool.idle, host.live) == (1, 2)
            assert pool.counts.created == 3

    asyncio.run(use())


def test_the_shape_that_was_not_asked_for_longest_makes_room() -> None:
    """However shapes take turns, boxes that are used stay, and the one that waited longest goes."""
    shapes = [replace(SPEC, env={"SHAPE": str(number)}) for number in range(4)]

    async def storm() -> int:
        host = Host()
        async with open_pool(host, capacity=3) as pool:
            for number in (0, 1, 2, 0, 1, 3, 0, 1, 3, 0, 1):
                await use_one(pool, number, shapes[number])
            return pool.counts.created

    assert asyncio.run(storm()) == 4


@pytest.mark.parametrize("broken", ["status", "dirty"])
def test_a_box_that_is_not_well_is_not_leased(broken: str) -> None:
    """A waiting box that has died, or in which something runs, is ended and counted; the lease gets another."""

    async def use() -> None:
        host = Host()
        async with open_pool(host, capacity=2) as pool:
            await pool.warm(SPEC, 2)
            host.broken.add(broken)
            await use_one(pool, 1, SPEC)
            (reason,) = pool.counts.quarantined
            assert pool.counts.quarantined[reason] == 2
            assert ("SandboxDied" in reason) == (broken == "status")
            assert (pool.counts.warm, pool.counts.created, host.created) == (0, 3, 3)

    asyncio.run(use())


def test_a_box_that_cannot_be_reset_is_not_leased_again() -> None:
    """A box that is not brought back to its beginning is ended, and the reason counted."""

    async def use() -> None:
        host = Host("reset")
        async with open_pool(host, capacity=1) as pool:
            for number in range(3):
                await use_one(pool, number, SPEC)
            assert pool.counts.created == 3
        assert sum(pool.counts.quarantined.values()) == 3
        assert host.live == 0

    asyncio.run(use())


def test_most_leases() -> None:
    """A box that was leased as often as allowed is ended, not reset."""

    async def use() -> None:
        host = Host()
        async with open_pool(host, capacity=1, most_leases=3) as pool:
            for number in range(6):
                await use_one(pool, number, SPEC)
        assert (pool.counts.created, host.resets) == (2, 4)

    asyncio.run(use())


def test_a_failed_creation_is_the_callers() -> None:
    """What the provider says reaches the caller; the room is free again, for whoever waits."""

    async def use() -> None:
        host = Host("create")
        async with open_pool(host, capacity=1) as pool:
            for _ in range(3):
                with pytest.raises(CreateFailed, match="no box today"):
                    await use_one(pool, 1, SPEC)
            host.broken.clear()
            await use_one(pool, 1, SPEC)

    asyncio.run(asyncio.wait_for(use(), 10))


def test_warming_that_half_fails() -> None:
    """Where one of several boxes cannot be made, that is said, and the others wait."""

    async def use() -> None:
        host = Host("warm-1")
        async with open_pool(host, capacity=3) as pool:
            with pytest.raises(CreateFailed, match="no box today"):
                await pool.warm(SPEC, 3)
            assert (pool.idle, pool.alive, host.live) == (2, 2, 2)

    asyncio.run(use())


def test_who_waits_may_give_up() -> None:
    """A lease that is given up while waiting for room, or for a box's health, costs nobody a box."""

    async def use() -> None:
        host = Host()
        async with open_pool(host, capacity=1) as pool:
            async with pool.create(SPEC):
                waiting = [asyncio.create_task(use_one(pool, i, SPEC)) for i in range(3)]
                await asyncio.sleep(5 * TICK)
                waiting[1].cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert [task.cancelled() for task in waiting] == [False, True, False]
            host.holding = asyncio.Event()
            task = asyncio.create_task(use_one(pool, 9, SPEC))
            await asyncio.sleep(5 * TICK)
            task.cancel()
            await asyncio.wait([task])
            host.holding = None
            await use_one(pool, 10, SPEC)

    asyncio.run(asyncio.wait_for(use(), 10))


def test_who_waits_for_an_eviction_may_give_up() -> None:
    """A lease that is given up while another shape's box is being ended leaves room for the next."""

    async def use() -> None:
        host = Host("slow end")
        async with open_pool(host, capacity=1) as pool:
            await pool.warm(SPEC, 1)
            task = asyncio.create_task(use_one(pool, 1, OTHER))
            await asyncio.sleep(3 * TICK)
            task.cancel()
            await asyncio.wait([task])
            await use_one(pool, 2, OTHER)
            assert host.most_alive == 1

    asyncio.run(asyncio.wait_for(use(), 10))


def test_a_lease_ends() -> None:
    """After its lease, or when it was closed before, a box does nothing for whoever had it."""

    async def use() -> None:
        async with open_pool(Host(), capacity=1) as pool:
            async with pool.create(SPEC) as box:
                with pytest.raises(CreateFailed, match="living box"):
                    async with pool.create(SPEC):
                        pass
                await box.close()
                with pytest.raises(SandboxDied, match="lease has ended"):
                    await box.run(["true"], timeout_s=1)
            async with pool.create(SPEC) as later:
                with pytest.raises(SandboxDied, match="lease has ended"):
                    await box.write("x", b"")
                assert (await later.run(["true"], timeout_s=1)).exit_code == 0

    asyncio.run(use())


def test_what_a_pool_cannot_do() -> None:
    """No room, no reset, and changes that are to be kept on the host are refused by name."""

    async def use() -> None:
        for wrong in ({"capacity": 0}, {"capacity": 1, "creating": 0}, {"capacity": 1, "most_leases": 0}):
            with pytest.raises(ValueError, match="at least 1"):
                async with open_pool(Host(), **wrong):
                    pass
        once = Host()
        once.capabilities = frozenset({"snapshot"})
        with pytest.raises(UnsupportedControl, match="cannot be reset"):
            async with open_pool(once, capacity=1):
                pass
        async with open_pool(Host(), capacity=1) as pool:
            with pytest.raises(UnsupportedControl, match="cannot be kept"):
                async with pool.create(replace(SPEC, keep={"/app": "/tmp"})):
                    pass

    asyncio.run(use())


def test_a_snapshot_lives_while_a_lease_could_go_back_to_it() -> None:
    """A released snapshot is given up when the last fork's lease ends, and cannot be forked meanwhile."""

    async def use() -> None:
        host = Host()
        async with open_pool(host, capacity=3) as pool:
            async with pool.create(BoxSpec("origin")) as origin:
                await origin.write("a", b"1")
                snapshot = await origin.snapshot()
            async with pool.fork(snapshot, BoxSpec("fork")) as fork:
                pool.release(snapshot)
                with pytest.raises(CreateFailed):
                    async with pool.fork(snapshot, BoxSpec("late")):
                        pass
                await fork.write("a", b"2")
                await fork.reset()
                assert await fork.read("a", max_bytes=9) == b"1"
                assert snapshot.id in host.frozen
            assert host.frozen == {}

    asyncio.run(use())


# --- on real boxes -----------------------------------------------------------------------------------------

LEAVE = """
echo x > here; mkdir -p deep/er; echo x > deep/er/file; ln -s /etc/passwd link; chmod 700 .
echo x > /tmp/there; echo x > /dev/shm/shared; echo x > /logs/log; mkfifo /tmp/pipe
export LEFT=1; ipcmk -M 4096 -Q -S 3 >/dev/null
(setsid sleep 86398.5 >/dev/null 2>&1 &)
(setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 0.05; echo x >> /app/late; done' >/dev/null 2>&1 &)
umask 0; ulimit -n 10; cd /tmp; sleep 0.1
"""
LOOK = """
find /app /tmp /dev/shm /logs -mindepth 1; stat -c '%a %u %n' /app /tmp /dev/shm /logs
env | sort; umask; ulimit -n; pwd; cat /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem | grep -vc key
for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -e sleep -e late; done; echo end
"""


@pytest.mark.parametrize("stacks", [True, False])
def test_nothing_of_a_lease_is_in_the_next(cache: LayerCache, stacks: bool) -> None:
    """Files, links, modes, shared memory, IPC objects, processes, variables: all is as in a box that is new."""

    async def use() -> None:
        async with (
            open_provider(limits_by="cgroup-or-rlimit", cache=cache, stacks=stacks) as provider,
            open_pool(provider, capacity=1) as pool,
        ):
            spec = BoxSpec("lease", scratch=("/logs",))
            async with pool.create(replace(spec, create_id="first")) as box:
                fresh = await box.run(["sh", "-c", LOOK], timeout_s=20)
                left = await box.run(["sh", "-c", LEAVE], timeout_s=20)
                dirty = await box.run(["sh", "-c", LOOK], timeout_s=20)
                assert left.exit_code == 0, left.stderr
                assert b"sleep 86398.5" in dirty.stdout
                assert b"/dev/shm/shared" in dirty.stdout
            for number in range(2):
                async with pool.create(replace(spec, create_id=f"later-{number}")) as box:
                    again = await box.run(["sh", "-c", LOOK], timeout_s=20)
                    assert again.stdout == fresh.stdout
                    assert (await box.status()).running == ()
            assert pool.counts.created == 1, pool.counts

    asyncio.run(use())


def test_each_lease_has_the_files_it_asked_for(cache: LayerCache) -> None:
    """Files, and read-only trees, are those of the lease: at its beginning, after a reset, and in a fork."""

    async def use() -> None:
        async with (
            open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider,
            open_pool(provider, capacity=1) as pool,
        ):
            async with pool.create(BoxSpec("first", readonly={"/given": {"f": File(b"first")}})) as box:
                assert await box.read("/given/f", max_bytes=9) == b"first"
                await box.write("mine", b"1")
                snapshot = await box.snapshot()
            spec = BoxSpec("second", files={"a": File(b"a")}, readonly={"/given": {"f": File(b"second")}})
            async with pool.create(spec) as box:
                for _ in range(2):
                    assert await box.read("/given/f", max_bytes=9) == b"second"
                    assert (await box.list_tree("/app", max_bytes=9)).files == spec.files
                    await box.write("a", b"changed")
                    await box.reset()
            async with pool.fork(snapshot, spec) as box:
                for _ in range(2):
                    assert await box.read("/given/f", max_bytes=9) == b"second"
                    assert await box.read("mine", max_bytes=9) == b"1"
                    await box.reset()
            provider.release(snapshot)

    asyncio.run(use())


def test_a_box_killed_while_it_waits(cache: LayerCache) -> None:
    """A warm box that somebody kills is noticed before it is leased; the lease gets a new one."""

    async def use() -> None:
        async with (
            open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider,
            open_pool(provider, capacity=2) as pool,
        ):
            await pool.warm(BoxSpec("victim"), 1)
            (facts,) = Record(provider.host.owner.path).boxes.values()
            os.kill(facts["monitor"][0], signal.SIGKILL)
            ends = [facts["monitor"][0], facts["first"][0][0]]
            for _ in range(1000):
                if all(process_start(pid) is None for pid in ends):
                    break
                await asyncio.sleep(0.01)
            async with pool.create(BoxSpec("next")) as box:
                assert (await box.run(["echo", "on"], timeout_s=10)).stdout == b"on\n"
            assert sum(pool.counts.quarantined.values()) == 1
            assert pool.counts.created == 2

    asyncio.run(use())


def test_a_box_that_ran_out_of_memory_is_not_leased_again(cache: LayerCache) -> None:
    """A box that was full once would call any later death its own doing, so it is ended with the lease."""

    async def use() -> None:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            if "oom-report" not in provider.capabilities:
                pytest.skip("memory of the box as a whole cannot be limited here")
            async with open_pool(provider, capacity=1) as pool:
                spec = BoxSpec("full", limits=Limits(memory_bytes=64 * MIB))
                async with pool.create(spec) as box:
                    result = await box.run(["python3", "-c", "x = bytearray(200 << 20)"], timeout_s=20)
                    assert result.oom_killed
                async with pool.create(spec) as box:
                    assert not (await box.run(["true"], timeout_s=20)).oom_killed
                assert (pool.counts.created, sum(pool.counts.quarantined.values())) == (2, 1)

    asyncio.run(use())


def test_a_snapshot_takes_no_memory_from_the_next_lease(cache: LayerCache) -> None:
    """What a living snapshot holds counts to the box that it was taken in, so the next lease gets another."""
    limits = Limits(memory_bytes=128 * MIB, disk_bytes=256 * MIB)
    fill, use_memory = ["sh", "-c", "head -c 90M /dev/zero > f"], ["python3", "-c", "x = bytearray(70 << 20)"]

    async def use() -> None:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            if not {"copy-on-write", "memory-limit"} <= provider.capabilities:
                pytest.skip("a snapshot holds no memory of a box here")
            async with open_pool(provider, capacity=1) as pool:
                for keeps in (False, True):
                    async with pool.create(BoxSpec("first", limits=limits)) as box:
                        assert (await box.run(fill, timeout_s=20)).exit_code == 0
                        snapshot = await box.snapshot()
                        if not keeps:
                            pool.release(snapshot)
                    async with pool.create(BoxSpec("second", limits=limits)) as box:
                        assert (await box.run(use_memory, timeout_s=20)).exit_code == 0
                    assert pool.counts.created == 1 + keeps
                pool.release(snapshot)

    asyncio.run(use())
