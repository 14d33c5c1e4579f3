"""Verdicts per second against a fresh `bwrap … python -m pytest` for each, same tests, same run, two at a time.

Run: python benchmarks/verdicts.py [--rounds N] [--json]. Both sides alternate, so that what else the host does falls on
both. Cpu is that of everything a side starts, read from a control group where one can be had (root), else left out.
A verdict of practicum does more than the baseline: it lays the submission, asks each test with several answers, reads
the reports and leaves the box empty.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission
from practicum.sandboxes.contract import BoxSpec, SandboxProvider
from practicum.sandboxes.provider import open_provider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.opening import open_verifier

BUGGY, RIGHT = b"def add(a, b):\n    return a - b\n", b"def add(a, b):\n    return a + b\n"
TESTS = b"""from calc import add


def test_small():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0


def test_negative():
    assert add(-4, 1) == -3
"""
CASES = b"".join(b'{"id": "c%d", "args": [%d, %d], "expected": %d}\n' % (i, i, 2 * i, 3 * i) for i in range(1, 4))
NAMES = ("test_small", "test_zero", "test_negative")
_GROUP = Path("/sys/fs/cgroup/cpuacct")


def task(runner: str) -> Task:
    """Three tests of one function, for pytest or as plain data."""
    if runner == "pytest":
        ids = tuple(f"test_add.py::{name}" for name in NAMES)
        check = Verification(
            "pytest",
            {"test_add.py": File(TESTS)},
            ("test_add.py",),
            fail_to_pass=(ids[0], ids[2]),
            pass_to_pass=(ids[1],),
        )
    else:
        check = Verification(
            "plain", {"cases.jsonl": File(CASES)}, fail_to_pass=("c1", "c2", "c3"),
            plain=PlainCheck("calc:add", "cases.jsonl"),
        )  # fmt: skip
    return Task(id=f"add-{runner}", instruction="mend add", files={"calc.py": File(BUGGY)}, verification=check)


@contextlib.contextmanager
def accounted() -> Iterator[Callable[[], float] | None]:
    """Cpu seconds of this process and all it starts, by a control group of its own."""
    folder = _GROUP / f"practicum-bench-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        yield None
        return
    before = next(
        line for line in Path("/proc/self/cgroup").read_text().splitlines() if "cpuacct" in line.split(":")[1]
    )
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield lambda: int((folder / "cpuacct.usage").read_text()) / 1e9
    finally:
        (_GROUP / before.split(":")[2].lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
        with contextlib.suppress(OSError):  # a process that is still leaving; the group goes with the host's next start
            folder.rmdir()


async def fresh_pytest(provider: SandboxProvider) -> None:
    """The baseline: a new box, a new interpreter, `python -m pytest`."""
    files = {"calc.py": File(RIGHT), "test_add.py": File(TESTS)}
    async with provider.create(BoxSpec(f"raw-{uuid.uuid4().hex[:12]}", files=files, limits=Limits())) as box:
        result = await box.run(["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"], timeout_s=60)
    assert b"3 passed" in result.stdout, result


async def verdict(verifier: ExecutionVerifier, one: Task) -> None:
    result = await verifier.verify(one, Submission((Change("calc.py", "edit", File(RIGHT)),)))
    assert result.reward == 1.0, result


async def timed(
    work: Callable[[], Awaitable[None]], count: int, cpu: Callable[[], float] | None
) -> tuple[float, float | None]:
    """Seconds of wall and of cpu for each of `count`, two at a time."""
    begin, used = time.perf_counter(), cpu() if cpu else 0.0
    todo = iter(range(count))

    async def take() -> None:
        for _ in todo:
            await work()

    await asyncio.gather(take(), take())
    wall = (time.perf_counter() - begin) / count
    return wall, (cpu() - used) / count if cpu else None


async def measure(rounds: int) -> dict[str, object]:
    kinds = {"pytest": task("pytest"), "plain": task("plain")}
    walls: dict[str, list[float]] = {"baseline": [], **{kind: [] for kind in kinds}}
    cpus: dict[str, list[float]] = {name: [] for name in walls}
    with accounted() as cpu:
        async with open_provider(limits_by="cgroup-or-rlimit") as provider, open_verifier(provider) as verifier:
            for one in kinds.values():
                for _ in range(6):  # until both places have a warm box
                    await asyncio.gather(verdict(verifier, one), verdict(verifier, one))
            for _ in range(rounds):
                for name in walls:
                    one = kinds.get(name)
                    work = (lambda: fresh_pytest(provider)) if one is None else (lambda one=one: verdict(verifier, one))
                    wall, used = await timed(work, 6 if one is None else 20, cpu)
                    walls[name].append(wall)
                    cpus[name] += [] if used is None else [used]
    found: dict[str, object] = {"rounds": rounds}
    for name in walls:
        found[name] = {
            "verdicts_per_s": round(1 / statistics.median(walls[name]), 1),
            "cpu_ms": round(statistics.median(cpus[name]) * 1e3, 1) if cpus[name] else None,
        }
    for kind in kinds:
        pairs = [base / mine for base, mine in zip(walls["baseline"], walls[kind], strict=True)]
        found[f"{kind}_speedup"] = round(statistics.median(pairs), 2)
        if cpus[kind]:
            both = zip(cpus["baseline"], cpus[kind], strict=True)
            found[f"{kind}_cpu_ratio"] = round(statistics.median(base / mine for base, mine in both), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.rounds))
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:18} {value}")
    print("wanted: pytest_speedup ≥ 3.5, plain_speedup ≥ 10")


if __name__ == "__main__":
    main()
