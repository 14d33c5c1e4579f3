"""What the bubblewrap provider promises beyond the contract: privilege, limits, names, speed of clean-up."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from practicum.errors import BoxPathError, ConfigError, CreateFailed, SandboxDied, SandboxError, UnsupportedControl
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, Sandbox
from practicum.sandboxes.launch import SANDBOX_UID, check_place
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.means import LimitsBy
from practicum.sandboxes.ownership import Record
from practicum.sandboxes.provider import HostProvider, open_provider

LIMITS: LimitsBy = "cgroup-or-rlimit"
SOURCE = Path(__file__).parents[2] / "src"


def monitor(provider: HostProvider, box: Sandbox) -> int:
    """Number of a box's bubblewrap process on the host."""
    return int(Record(provider.host.owner.path).boxes[box.id]["monitor"][0])


def test_nothing_of_a_box_is_root(cache: LayerCache) -> None:
    """From bubblewrap inwards no process of a box has the host's uid 0, real or effective, or a capability."""

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider, provider.create(BoxSpec("a")) as box:
            running = asyncio.create_task(box.run(["sleep", "30"], timeout_s=60))
            await asyncio.sleep(0.2)
            todo, seen = [monitor(provider, box)], 0
            while todo:
                pid = todo.pop()
                status = Path(f"/proc/{pid}/status").read_text()
                (uids,) = [line.split()[1:] for line in status.splitlines() if line.startswith("Uid:")]
                expected = SANDBOX_UID if os.geteuid() == 0 else os.geteuid()
                assert set(uids) == {str(expected)}
                assert "NoNewPrivs:\t1" in status
                todo += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
                seen += 1
            assert seen >= 3  # monitor, agent, command
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(use())


def test_a_killed_box_is_an_infrastructure_fault(cache: LayerCache) -> None:
    """When something outside kills the box, the running call and all later ones raise SandboxDied."""

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider, provider.create(BoxSpec("a")) as box:
            running = asyncio.create_task(box.run(["sleep", "30"], timeout_s=60))
            await asyncio.sleep(0.1)
            os.kill(monitor(provider, box), signal.SIGKILL)
            with pytest.raises(SandboxDied):
                await asyncio.wait_for(running, 5)
            with pytest.raises(SandboxDied):
                await box.read("x", max_bytes=1)

    asyncio.run(use())


def test_many_boxes_at_once(cache: LayerCache) -> None:
    """A hundred boxes live side by side, each with its own files, and all are gone afterwards."""

    async def one(provider: HostProvider, number: int, all_up: asyncio.Barrier) -> bytes:
        spec = BoxSpec(f"many-{number}", files={"me": File(str(number).encode())})
        async with provider.create(spec) as box:
            await all_up.wait()
            return (await box.run(["cat", "me"], timeout_s=60)).stdout

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider:
            barrier = asyncio.Barrier(100)
            said = await asyncio.gather(*(one(provider, number, barrier) for number in range(100)))
            assert said == [str(number).encode() for number in range(100)]
            assert (provider.created, provider.live) == (100, 0)

    asyncio.run(use())


def test_cancelled_while_starting(cache: LayerCache) -> None:
    """A create that is cancelled half-way leaves no box, whenever the cancellation comes."""

    async def attempt(provider: HostProvider) -> None:
        async with provider.create(BoxSpec("again", files={"f": File(b"x" * MIB)})) as box:
            await box.run(["sleep", "30"], timeout_s=60)

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider:
            for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08):
                task = asyncio.create_task(attempt(provider))
                await asyncio.sleep(delay)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert provider.live == 0
            async with provider.create(BoxSpec("again")) as box:
                assert (await box.run(["true"], timeout_s=10)).exit_code == 0

    asyncio.run(use())


@pytest.mark.parametrize(
    "place", ["app", "/", "/app/../etc", "/usr/x", "/proc", "/opt/practicum/x", "/.practicum", "/a//b", "/a\0b"]
)
def test_places_in_the_way_are_refused(cache: LayerCache, place: str) -> None:
    """A workdir or read-only folder that is relative, unclean or within the layer is refused by name."""
    with pytest.raises(UnsupportedControl):
        check_place(place, "workdir")


def test_what_cannot_be_made(cache: LayerCache) -> None:
    """Files that do not fit the disk limit are CreateFailed, and an unknown way to limit is a ConfigError."""

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider:
            spec = BoxSpec("full", files={"f": File(b"x" * 2 * MIB)}, limits=Limits(disk_bytes=MIB))
            with pytest.raises(CreateFailed, match="No space left"):
                async with provider.create(spec):
                    pass
            assert provider.live == 0
        with pytest.raises(ConfigError, match="limits_by"):
            async with open_provider(limits_by="hope", cache=cache):  # type: ignore[arg-type]
                pass

    asyncio.run(use())


def test_odd_create_ids(cache: LayerCache) -> None:
    """Any text can name a box; different texts never share a name."""

    async def use() -> list[str]:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider:
            names = []
            for create_id in ("a/../b", "a_.._b", "ü" * 300, "", "x y\n"):
                async with provider.create(BoxSpec(create_id)) as box:
                    names.append(box.id)
            return names

    names = asyncio.run(use())
    assert len(set(names)) == 5
    assert all("/" not in name and len(name) < 100 for name in names)


def test_a_hostile_box_cannot_fill_the_host(cache: LayerCache) -> None:
    """What is read out of a box is bounded, however large the box makes it meanwhile."""

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider, provider.create(BoxSpec("a")) as box:
            script = "setsid sh -c 'while :; do echo 12345678901 >> grow; done' & until [ -s grow ]; do :; done"
            await box.run(["sh", "-c", f"({script}) >/dev/null 2>&1"], timeout_s=5)
            with pytest.raises(BoxPathError, match="too large"):
                await box.read("grow", max_bytes=10)
            with pytest.raises(BoxPathError, match="too large"):
                await box.list_tree("/app", max_bytes=10)

    asyncio.run(use())


ORDINARY = """
import asyncio, collections, contextlib, os, sys
from pathlib import Path
from practicum.errors import UnsupportedControl
from practicum.sandboxes.provider import open_provider
from practicum.sandboxes.conformance import check_provider
from practicum.sandboxes.layers import LayerCache

async def main():
    assert os.getuid() != 0
    cache = LayerCache()
    results = await check_provider(lambda: open_provider(limits_by="cgroup-or-rlimit", cache=cache))
    print([r for r in results if r.status == "failed"], sum(r.status == "passed" for r in results))
    try:
        async with open_provider(cache=cache):
            print("cgroup")
    except UnsupportedControl as error:
        print("rlimit" if 'limits_by = "rlimit"' in (error.fix or "") else error)
    assert list((cache.state / "owners").iterdir()) == []

asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests are this one where there is no root")
@pytest.mark.skipif(not os.access("/usr/bin/python3", os.X_OK), reason="needs a python that any user can run")
def test_as_an_ordinary_user(cache: LayerCache) -> None:
    """Started by an ordinary user, the provider conforms; limits by control group are refused with the way out."""
    home = Path(tempfile.mkdtemp(prefix="practicum-test-user-"))
    try:
        shutil.copytree(SOURCE / "practicum", home / "src" / "practicum", ignore=shutil.ignore_patterns("__pycache__"))
        cache.layer("python")
        (site,) = (cache.root / "layers").glob("python-*/site")
        for place, _, _ in os.walk(home):
            os.chown(place, 61000, 61000)
        drop = ["setpriv", "--reuid", "61000", "--regid", "61000", "--clear-groups"]
        env = {"HOME": str(home), "PYTHONPATH": f"{home}/src:{site}", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [*drop, "/usr/bin/python3", "-W", "error", "-c", ORDINARY],
            env=env, cwd="/", capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        conformance, limits = done.stdout.splitlines()
        assert conformance.startswith("[] ")
        assert int(conformance.split()[1]) >= 40
        assert limits == "rlimit"
    finally:
        shutil.rmtree(home)


def test_a_snapshot_without_room_changes_nothing(cache: LayerCache) -> None:
    """Where a snapshot cannot be made for want of room, the workspace is as it was, and the box goes on."""
    fill = "echo work > work; mkdir /tmp/j; i=0; while : > /tmp/j/$i; do i=$((i+1)); done 2>/dev/null; rm /tmp/j/0"

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("files are copied here")
            async with provider.create(BoxSpec("full")) as box:
                await box.run(["sh", "-c", fill], timeout_s=60)
                with pytest.raises(SandboxError, match="No space left"):
                    await box.snapshot()
                assert (await box.status()).state == "idle"
                assert (await box.run(["cat", "work"], timeout_s=10)).stdout == b"work\n"
                await box.run(["rm", "-r", "/tmp/j"], timeout_s=60)
                provider.release(await box.snapshot())

    asyncio.run(use())


def test_a_late_hub_is_ended(cache: LayerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that does not answer in time is not asked again: no later answer is taken for another's."""
    monkeypatch.setattr("practicum.sandboxes.hub._DEADLINE_S", 0.5)

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("files are copied here")
            async with provider.create(BoxSpec("late")) as box:
                os.kill(provider.host.hub.pid, signal.SIGSTOP)
                with pytest.raises(SandboxError):
                    await box.snapshot()
                assert not provider.host.hub.alive
                with pytest.raises(SandboxError):
                    await box.reset()
                with pytest.raises(CreateFailed):
                    async with provider.create(BoxSpec("later")):
                        pass

    asyncio.run(use())


@pytest.mark.parametrize("timeout_s", [float("inf"), float("nan"), 1e13])
def test_endless_commands_are_refused(cache: LayerCache, timeout_s: float) -> None:
    """A command without a real deadline is a mistake of the caller."""

    async def use() -> None:
        async with open_provider(limits_by=LIMITS, cache=cache) as provider, provider.create(BoxSpec("a")) as box:
            with pytest.raises(ValueError, match="cannot be given"):
                await box.run(["true"], timeout_s=timeout_s)

    asyncio.run(use())
