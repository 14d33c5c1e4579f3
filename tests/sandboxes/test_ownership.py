"""Whatever ends an owner, nothing of its boxes is left: no process, group or record."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from practicum.errors import SandboxDied
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.janitor import reconcile
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Owner, Record, children, process_start
from practicum.sandboxes.provider import open_provider

OWNER = Path(__file__).with_name("owner.py")
MARK = b"86399.5"


def eventually(condition: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def commands(word: bytes) -> list[int]:
    """Processes whose command line holds `word`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if word in line and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def sleepers() -> list[int]:
    return [pid for pid in commands(MARK) if b"owner.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


class Started:
    """An owner process with three boxes up."""

    def __init__(self, cache: LayerCache, limits_by: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(OWNER), str(cache.root), limits_by], stdout=subprocess.PIPE, start_new_session=True
        )
        self.sidecars: list[int] = []

    def ready(self, state: Path) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"
        (self.record,) = (state / "owners").glob(f"{self.process.pid}-*.jsonl")
        record = Record(self.record)
        self.groups = record.groups
        self.pids = [box["monitor"][0] for box in record.boxes.values()]
        self.sidecars = commands(str(self.record).encode())
        (self.hub,) = (pid for pid in children(self.process.pid) if pid not in self.sidecars)
        assert len(self.pids) == 3
        assert len(self.sidecars) == 1
        assert eventually(lambda: len(sleepers()) >= 3)

    def left(self) -> list[str]:
        """What still exists of it."""
        found = [f"process {pid}" for pid in [self.hub, *self.pids, *sleepers()] if process_start(pid) is not None]
        found += [folder for folder in self.groups if Path(folder).exists()]
        return found + [str(self.record)] * self.record.exists()

    def stop(self) -> None:
        for pid in [self.process.pid, *self.sidecars]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(timeout=10)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(params=["cgroup-or-rlimit", "rlimit"])
def started(cache: LayerCache, request: pytest.FixtureRequest) -> Iterator[Started]:
    owner = Started(cache, request.param)
    try:
        owner.ready(cache.state)
        yield owner
    finally:
        owner.stop()
        reconcile(cache.state)


def test_nothing_is_left_after_kill(started: Started) -> None:
    """After kill -9 of the owner its sidecar ends everything and goes away itself."""
    started.process.kill()
    started.process.wait()
    assert eventually(lambda: not started.left()), started.left()
    assert eventually(lambda: process_start(started.sidecars[0]) is None)


def test_nothing_is_left_after_interrupt(started: Started) -> None:
    """Ctrl-C ends the owner in order: everything is gone by the time it has ended."""
    started.process.send_signal(signal.SIGINT)
    started.process.wait(timeout=20)
    assert started.left() == []


def test_reconcile_ends_what_nobody_watches(cache: LayerCache, started: Started) -> None:
    """When the sidecar was killed too, the next start ends what is left and names it."""
    for pid in (started.sidecars[0], started.process.pid):
        os.kill(pid, signal.SIGKILL)
    started.process.wait()
    assert started.record.exists()
    ended = reconcile(cache.state)
    assert {name.rpartition("/")[2] for name in ended} == {"idle", "busy", "daemons"}
    assert started.left() == []
    assert reconcile(cache.state) == []


def test_a_record_without_an_owner(tmp_path: Path) -> None:
    """A record whose owner was killed before it wrote who it is stays for a minute, and then goes."""
    folder = tmp_path / "owners"
    folder.mkdir()
    path = folder / "1-2-3.jsonl"
    path.touch()
    assert reconcile(tmp_path) == []
    assert path.exists()
    os.utime(path, (0, 0))
    assert reconcile(tmp_path) == []
    assert not path.exists()


def test_living_owners_are_left_alone(cache: LayerCache, started: Started) -> None:
    """Reconciling beside a living owner touches nothing of it."""
    assert reconcile(cache.state) == []
    assert started.process.poll() is None
    assert all(process_start(pid) is not None for pid in started.pids)


def test_a_recycled_pid_is_not_the_owner(tmp_path: Path) -> None:
    """A record whose pid now belongs to another process is that of a dead owner; that process is left alone."""
    owner = Owner(tmp_path, "run", 60)
    owner.starting("box", 60, [])
    lines = owner.path.read_text().splitlines()
    first = json.loads(lines[0])
    first["owner"]["start"] = "1"
    bystander = subprocess.Popen(["sleep", "60"])
    later = {"box": "box", "monitor": [bystander.pid, "1"], "first": [[bystander.pid, "1"]]}
    owner.path.write_text("\n".join([json.dumps(first), *lines[1:], json.dumps(later)]) + "\n")
    try:
        assert reconcile(tmp_path) == [f"{owner.path.stem}/box"]
        assert bystander.poll() is None
        assert not owner.path.exists()
    finally:
        bystander.kill()
        bystander.wait()
        owner.close()


def test_records_of_elsewhere(tmp_path: Path) -> None:
    """Records of another host are left alone; those of an earlier boot of this host are cleared."""
    for change, stays in (({"host": "elsewhere"}, True), ({"boot": "earlier"}, False)):
        owner = Owner(tmp_path, "run", 60)
        first = json.loads(owner.path.read_text())
        first["owner"] |= {"start": "1"} | change
        owner.path.write_text(json.dumps(first) + "\n")
        assert reconcile(tmp_path) == []
        assert owner.path.exists() == stays
        owner.close()


def test_a_line_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    """The last line of a writer that was killed may be half a line; it is read as not written."""
    owner = Owner(tmp_path, "run", 60)
    owner.starting("box", 60, ["/group"])
    with owner.path.open("ab") as file:
        file.write(b'{"box": "bo')
    assert list(Record(owner.path).boxes) == ["box"]
    owner.close()


def test_boxes_past_their_time_are_ended(cache: LayerCache) -> None:
    """A box that outlives its time-to-live is ended by the sidecar though its owner lives on."""

    async def use() -> None:
        async with (
            open_provider(limits_by="cgroup-or-rlimit", cache=cache, box_ttl_s=0.5) as provider,
            provider.create(BoxSpec("old")) as box,
        ):
            with pytest.raises(SandboxDied):
                await box.run(["sleep", MARK.decode()], timeout_s=20)

    asyncio.run(use())
    assert not sleepers()


def test_nothing_is_left_in_order(cache: LayerCache) -> None:
    """After an orderly end no record, group or process is left, and the provider has counted its boxes."""

    async def use() -> tuple[int, int]:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            for name in "abc":
                async with provider.create(BoxSpec(name)) as box:
                    await box.run(["sh", "-c", f"setsid sleep {MARK.decode()} &"], timeout_s=5)
            return provider.created, provider.live

    assert asyncio.run(use()) == (3, 0)
    assert not sleepers()
    assert list((cache.state / "owners").iterdir()) == []
