"""Faults done to the judge never become a number, whenever they strike; what a submission does becomes one.

The boxes are real and so are the faults: processes killed and stopped from outside, memory and disk that run out.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from practicum.errors import CreateFailed, SandboxTimeout
from practicum.records.recipe import Recipe
from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.tree import Change, File, Tree
from practicum.records.verdict import Submission, Verdict
from practicum.sandboxes.contract import BoxSpec, Sandbox, SandboxProvider
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Record, process_start
from practicum.sandboxes.provider import HostProvider, open_provider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.opening import open_verifier
from practicum.verification.runners.drivers import Drivers

if TYPE_CHECKING:
    from verification.conftest import Bench

MIB = 1 << 20
BUGGY = "import time\ntime.sleep({pause})\n\ndef add(a, b):\n    return a - b\n"
GOLD = BUGGY.replace("a - b", "a + b")
FAULT = (None, None)  # outcome and reward of what could not be judged


def plain(**change: Any) -> Task:
    text = "".join(f'{{"id": "c{i}", "args": [{i}, 1], "expected": {i + 1}}}\n' for i in range(3))
    check = Verification(
        "plain",
        {"cases.jsonl": File(text.encode())},
        fail_to_pass=("c0", "c1", "c2"),
        plain=PlainCheck("calc:add", "cases.jsonl"),
        timeout_s=10.0,
    )
    return replace(task(check), **change)


def task(check: Verification) -> Task:
    return Task("t", "Repair add.", {"calc.py": File(BUGGY.replace("{pause}", "0").encode())}, check)


def suite() -> Task:
    text = "import calc\n\ndef test_one():\n    assert calc.add(1, 1) == 2\n"
    tests = {"test_frozen.py": File(text.encode())}
    return task(Verification("pytest", tests, tuple(tests), fail_to_pass=("test_frozen.py::test_one",), timeout_s=10.0))


def scripts() -> Task:
    text = 'add = remote("calc:add")\nassert add(1, 1) == 2\n'
    tests = {"one.py": File(text.encode())}
    return task(Verification("command", tests, tuple(tests), fail_to_pass=("one.py",), timeout_s=10.0))


def edit(source: str, pause: float = 0.0) -> Submission:
    return Submission((Change("calc.py", "edit", File(source.replace("{pause}", str(pause)).encode())),))


def seen(verdict: Verdict) -> tuple[str | None, float | None]:
    return verdict.outcome, verdict.reward


class Struck:
    """A provider that does something to some of the boxes of another; `strikes` is asked with each box's number."""

    def __init__(
        self, inner: HostProvider, strikes: Callable[[int], bool], blow: Callable[[str], None], after_s: float
    ):
        self.inner, self.strikes, self.blow, self.after_s = inner, strikes, blow, after_s
        self.name, self.capabilities, self.snapshots = inner.name, inner.capabilities, inner.snapshots
        self.made = 0

    @asynccontextmanager
    async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        self.made += 1
        number = self.made
        async with self.inner.create(spec) as box:
            timer = None
            if self.strikes(number) and not self.after_s:
                self.blow(box.id)
            elif self.strikes(number):
                timer = asyncio.get_running_loop().call_later(self.after_s, self.blow, box.id)
            try:
                yield box
            finally:
                if timer is not None:
                    timer.cancel()

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._create(spec)


def signals(provider: HostProvider, number: signal.Signals) -> Callable[[str], None]:
    """Sends a signal to the first process of a box, as somebody on the host would."""

    def send(box: str) -> None:
        for pid, start in Record(provider.host.owner.path).boxes[box].get("first", []):
            if process_start(pid) == start:
                os.kill(pid, number)

    return send


def judge(bench: Bench, provider: Any, work: Task, submission: Submission, drivers: Drivers | None = None) -> Verdict:
    verifier = ExecutionVerifier(cast(SandboxProvider, provider), drivers=drivers or bench.drivers)
    return bench.runner.run(verifier.verify(work, submission))


@contextmanager
def own_provider(bench: Bench, **options: Any) -> Iterator[HostProvider]:
    """A provider that may be broken."""
    opening = open_provider(run_id="tests-judge-faults", limits_by="cgroup-or-rlimit", **options)
    provider = bench.runner.run(opening.__aenter__())
    try:
        yield provider
    finally:
        bench.runner.run(opening.__aexit__(None, None, None))
        assert provider.live == 0
        assert not provider.host.owner.path.exists()


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.2], ids=lambda s: f"after {s} s")
@pytest.mark.parametrize("work", [plain(), suite(), scripts()], ids=lambda work: work.verification.runner)
def test_a_box_that_is_killed_once_changes_no_verdict(bench: Bench, work: Task, after_s: float) -> None:
    """Whether it dies before the driver starts, while it does or later: right is 1.0, wrong −0.2."""
    provider = cast(HostProvider, bench.provider)
    bench.runner.run(bench.drivers.tree("python"))
    for source, expected in ((GOLD, ("passed", 1.0)), (BUGGY, ("failed", -0.2))):
        struck = Struck(provider, lambda number: number == 1, signals(provider, signal.SIGKILL), after_s)
        verdict = judge(bench, struck, work, edit(source, pause=0.3))
        assert seen(verdict) == expected, verdict
        assert struck.made == 1 + verdict.evidence.get("rounds", 1)
        assert len(verdict.evidence["faults"]) == 1


@pytest.mark.parametrize("after_s", [0.0, 0.2], ids=lambda s: f"after {s} s")
@pytest.mark.parametrize("most", [2, 3, 99])
def test_boxes_that_are_killed_again_and_again_give_no_number(bench: Bench, most: int, after_s: float) -> None:
    """Not even where only the submission's boxes are hit: nothing that runs in a box can end its first process."""
    provider = cast(HostProvider, bench.provider)
    bench.runner.run(bench.drivers.tree("python"))
    for source in (GOLD, BUGGY):
        struck = Struck(provider, lambda number: number <= most, signals(provider, signal.SIGKILL), after_s)
        verdict = judge(bench, struck, plain(), edit(source, pause=0.3))
        assert (verdict.status, *seen(verdict)) == ("unscorable", *FAULT), verdict
        assert "SandboxDied" in str(verdict.reason)
    assert seen(judge(bench, provider, plain(), edit(GOLD))) == ("passed", 1.0)  # nothing was lost


def test_boxes_that_are_leased_again_are_no_different(bench: Bench) -> None:
    """Killed while they wait, they are replaced unseen; killed while they serve, one costs another and all of them
    every number."""

    async def judged() -> list[Verdict]:
        provider = cast(HostProvider, bench.provider)
        kill = signals(provider, signal.SIGKILL)

        def kill_all() -> None:
            for box in Record(provider.host.owner.path).boxes:
                if box.startswith("warm-"):
                    kill(box)

        async def kill_them(times: int) -> None:
            for _ in range(times):
                await asyncio.sleep(0.2)
                kill_all()

        async with open_verifier(provider) as verifier:
            verdicts = [await verifier.verify(plain(), edit(GOLD)) for _ in range(3)]  # the last by warm drivers
            kill_all()
            verdicts.append(await verifier.verify(plain(), edit(GOLD)))
            for times in (1, 50):
                async with asyncio.TaskGroup() as group:
                    killing = group.create_task(kill_them(times))
                    verdicts.append(await verifier.verify(plain(), edit(GOLD, pause=0.3)))
                    killing.cancel()
            return [*verdicts, await verifier.verify(plain(), edit(BUGGY))]

    *good, served, lost, after = bench.runner.run(judged())
    assert [seen(verdict) for verdict in good] == [("passed", 1.0)] * 4
    assert "faults" not in good[-1].evidence
    assert (seen(served), len(served.evidence["faults"])) == (("passed", 1.0), 1)
    assert (lost.status, *seen(lost)) == ("unscorable", *FAULT)
    assert seen(after) == ("failed", -0.2)


def test_the_end_of_what_starts_boxes_gives_no_number(bench: Bench) -> None:
    """With the hub, all boxes end and no other can be made; the reason says so, and nothing stays behind."""
    with own_provider(bench) as provider:
        drivers = Drivers(provider)
        bench.runner.run(drivers.tree("python"))
        struck = Struck(provider, lambda number: number == 1, lambda _: os.kill(provider.host.hub.pid, 9), 0.2)
        verdict = judge(bench, struck, plain(), edit(GOLD, pause=0.3), drivers)
        assert (verdict.status, *seen(verdict)) == ("unscorable", *FAULT)
        assert "the process that starts boxes has ended" in str(verdict.reason)


def test_a_box_that_stands_still_is_replaced(bench: Bench) -> None:
    """A box that the host stopped does not answer within the driver's time and some seconds; another one does."""
    provider = cast(HostProvider, bench.provider)
    bench.runner.run(bench.drivers.tree("python"))
    struck = Struck(provider, lambda number: number == 1, signals(provider, signal.SIGSTOP), 0.1)
    work = plain()
    quick = replace(work, verification=replace(work.verification, timeout_s=1.0))
    verdict = judge(bench, struck, quick, edit(GOLD, pause=0.2))
    assert seen(verdict) == ("passed", 1.0)
    assert "SandboxTimeout" in verdict.evidence["faults"][0]


class Flaky:
    """A provider whose first boxes cannot be had."""

    name = "flaky"

    def __init__(self, inner: SandboxProvider, *errors: Exception) -> None:
        self.inner, self.errors = inner, list(errors)
        self.capabilities, self.snapshots = inner.capabilities, inner.snapshots

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        if self.errors:
            raise self.errors.pop(0)
        return self.inner.create(spec)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_host_that_recovers_is_not_taken_for_the_submissions_doing(bench: Bench, count: int) -> None:
    """However many boxes could not be had, a fault that has passed leaves the right verdict or none."""
    bench.runner.run(bench.drivers.tree("python"))
    errors = [CreateFailed("no room"), SandboxTimeout("no answer")] * 2
    verdict = judge(bench, Flaky(bench.provider, *errors[:count]), plain(), edit(GOLD))
    assert seen(verdict) == (("passed", 1.0) if count < 4 else FAULT), verdict
    assert len(verdict.evidence["faults"]) == count


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("boom"), KeyError("x")])
def test_a_verifier_that_crashes_gives_no_number(bench: Bench, error: Exception) -> None:
    """An error that nobody foresaw becomes a verdict that names it and its place, and the next one is as ever."""
    bench.runner.run(bench.drivers.tree("python"))
    flaky = Flaky(bench.provider, error)
    verdict = judge(bench, flaky, plain(), edit(GOLD))
    assert (verdict.status, *seen(verdict)) == ("unscorable", *FAULT)
    assert type(error).__name__ in str(verdict.reason)
    assert "test_judge_faults.py line" in str(verdict.reason)
    assert verdict.evidence["submission_digest"] == edit(GOLD).digest
    assert judge(bench, flaky, plain(), edit(GOLD)).passed


class Broken(Drivers):
    """Drivers of which half was lost on the way."""

    async def tree(self, layer: str | Recipe) -> Tree:
        whole: Mapping[str, File] = await super().tree(layer)
        return {name: File(file.data[: len(file.data) // 2]) for name, file in whole.items()}


def test_a_driver_that_cannot_run_gives_no_number(bench: Bench) -> None:
    """A driver that crashes at once decided nothing."""
    for work in (plain(), suite(), scripts()):
        verdict = judge(bench, bench.provider, work, edit(GOLD), Broken(bench.provider))
        assert (verdict.status, *seen(verdict)) == ("unscorable", *FAULT)
        assert "driver did not start" in str(verdict.reason)


def test_a_driver_that_crashes_underway_is_the_tasks_fault_where_it_always_does(bench: Bench) -> None:
    """Limits under which no driver can make a process: that holds for the untouched task as well, so `invalid`."""
    if "pids-limit" not in bench.provider.capabilities:
        pytest.skip("processes of a box cannot be limited here")
    verdict = judge(bench, bench.provider, plain(limits=replace(Limits(), pids=1)), edit(GOLD))
    assert (verdict.status, *seen(verdict)) == ("invalid", *FAULT), verdict
    assert "the plain driver ended before it was done" in str(verdict.reason)


@pytest.mark.parametrize("work", [plain(), suite(), scripts()], ids=lambda work: work.verification.runner)
def test_a_driver_that_the_submission_ends_is_its_failure(bench: Bench, work: Task) -> None:
    """Killing everything that it can reach is no way out of a failure, even for what would have been right."""
    source = GOLD + "\nimport os\nif os.getpid() > 2:\n    os.kill(-1, 9)\n"
    verdict = judge(bench, bench.provider, work, edit(source))
    assert (verdict.status, *seen(verdict)) == ("valid", "failed", -0.2), verdict


EATER = GOLD + "\nfull = bytearray({size} << 20)\nfor at in range(0, len(full), 4096):\n    full[at] = 1\n"


def test_memory_is_the_hosts_fault_or_the_submissions(bench: Bench) -> None:
    """Killed for want of memory on the host: no number, and the same work is judged once there is some. Killed for
    going beyond its own limit: a failure."""
    with own_provider(bench) as provider:
        if provider.host.cgroups is None:
            pytest.skip("the memory of a box cannot be limited here")
        drivers = Drivers(provider)
        bench.runner.run(drivers.tree("python"))
        work = plain(limits=replace(Limits(), memory_bytes=256 * MIB))
        eater = edit(EATER.replace("{size}", "96"))
        # The group that holds all boxes stands for a host that is smaller than its boxes may be.
        groups = [Path(folder) for folder in provider.host.cgroups.folders]
        names = ("memory.max", "memory.limit_in_bytes")
        limit = next(file for group in groups for name in names if (file := group / name).exists())
        limit.write_text(str(48 * MIB))
        verdict = judge(bench, provider, work, eater, drivers)
        assert (verdict.status, *seen(verdict)) == ("unscorable", *FAULT), verdict
        assert "the host ran out of memory" in str(verdict.reason)
        limit.write_text("max" if limit.name == "memory.max" else "-1")
        assert seen(judge(bench, provider, work, eater, drivers)) == ("passed", 1.0)
        small = plain(limits=replace(Limits(), memory_bytes=64 * MIB))
        assert seen(judge(bench, provider, small, eater, drivers)) == ("failed", -0.2)


FILLER = """
import os
for place in ("/app", "/tmp", "/dev/shm"):
    try:
        with open(f"{place}/full", "wb") as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        pass
with open("/app/more", "wb") as file:
    file.write(bytes(1 << 20))
"""


@pytest.mark.parametrize("work", [plain(), suite(), scripts()], ids=lambda work: work.verification.runner)
def test_a_disk_that_the_submission_fills_is_its_failure(bench: Bench, work: Task) -> None:
    """A box's disk is the submission's to use; that it is full is no fault of the judge."""
    small = replace(work, limits=replace(Limits(), disk_bytes=4 * MIB))
    verdict = judge(bench, bench.provider, small, edit(GOLD + FILLER))
    assert (verdict.status, *seen(verdict)) == ("valid", "failed", -0.2), verdict


@contextmanager
def small_disk(size_mib: int) -> Iterator[Path]:
    """A file system of its own, or a skip."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = Path(tempfile.mkdtemp(prefix="practicum-small-"))
    folder.chmod(0o755)
    how = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=755", "practicum-tests", str(folder)]
    done = subprocess.run(how, capture_output=True, check=False)
    if done.returncode != 0:
        folder.rmdir()
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def test_a_full_disk_of_the_host_gives_no_number(bench: Bench) -> None:
    """Frozen tests that cannot be laid out for want of space decide nothing; with space again, they do."""
    with small_disk(600) as folder, own_provider(bench, cache=LayerCache(folder)) as provider:
        drivers = Drivers(provider)
        bench.runner.run(drivers.tree("python"))
        assert judge(bench, provider, plain(), edit(GOLD), drivers).passed
        filler = folder / "full"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free)
        verdict = judge(bench, provider, suite(), edit(GOLD), drivers)
        assert (verdict.status, *seen(verdict)) == ("unscorable", *FAULT), verdict
        assert "No space left" in str(verdict.reason)
        filler.unlink()
        assert seen(judge(bench, provider, suite(), edit(GOLD), drivers)) == ("passed", 1.0)
