"""Probes of how a command ends: its deadline, its output, what it leaves behind.

Invariant: each lasts a second or two even where nothing ends it.
Must not know: providers.
"""

from __future__ import annotations

import itertools
import time

from practicum.sandboxes.audit.bench import Bench
from practicum.sandboxes.audit.inside.registry import Finding, blocked, opened, probe, unclear
from practicum.sandboxes.audit.lifecycle import in_box

_GROUP = "resources"
_LONG = "code does not end, or prints without end"
_numbers = itertools.count(1)


async def _ends(bench: Bench, argv: list[str], mark: str) -> Finding:
    """Whether a command of 2 s ends at its deadline of 0.3 s, and everything that it started with it."""
    async with bench.box() as box:
        start = time.monotonic()
        done = await bench.command(box, argv, timeout_s=0.3)
        seconds = time.monotonic() - start
        if seconds > 1.5:
            return opened(f"it ran for {seconds:.1f} s, 0.3 allowed")
        left = await in_box(box, mark) if mark else 0
    if left:
        return opened(f"{left} processes are left")
    return blocked(
        f"ended after {seconds:.1f} s, nothing left" if done.timed_out else f"returned after {seconds:.1f} s"
    )


@probe(
    "P73",
    _GROUP,
    "print without end or newline, on both streams",
    "head and tail within the cap",
    threat=_LONG,
    where="host",
)
async def output_flood(bench: Bench) -> Finding:
    code = "import os\nfor _ in range(256): os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)"
    async with bench.box(output_bytes=8192) as box:
        done = await box.run(["python3", "-I", "-S", "-c", code], timeout_s=20)
    kept = f"{len(done.stdout)} and {len(done.stderr)} bytes of 16 MiB each, 8192 allowed"
    if len(done.stdout) > 8192 or len(done.stderr) > 8192:
        return opened(kept)
    return blocked(kept) if done.truncated and done.exit_code == 0 else unclear(f"{kept}, exit {done.exit_code}")


@probe(
    "P74",
    _GROUP,
    "sleep past the deadline without using the processor",
    "ended at the deadline",
    threat=_LONG,
    where="host",
)
async def sleeps(bench: Bench) -> Finding:
    return await _ends(bench, ["sleep", "2"], "")


@probe("P75", _GROUP, "ignore every signal that can be ignored", "ended at the deadline", threat=_LONG, where="host")
async def ignores_signals(bench: Bench) -> Finding:
    mark = f"2.0{next(_numbers):04d}"
    return await _ends(bench, ["sh", "-c", f"trap '' TERM INT HUP QUIT USR1 ALRM; sleep {mark}; sleep 2"], mark)


@probe(
    "P76",
    _GROUP,
    "hold the output open from a process that left its session",
    "the command returns",
    threat=_LONG,
    where="host",
)
async def holds_the_pipe(bench: Bench) -> Finding:
    return await _ends(bench, ["sh", "-c", "setsid sleep 2 & exit 0"], "")


_ORPHANS = """
import os
for _ in range(300):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
"""
_KEPT = """
import os, time
for _ in range(40):
    if os.fork() == 0:
        os._exit(0)
time.sleep(3)
"""


@probe("P77", _GROUP, "leave hundreds of ended processes", "all are reaped", threat=_LONG, where="host")
async def zombies(bench: Bench) -> Finding:
    """The proof keeps them, by a parent that lives and does not wait."""
    keep = bench.setting.naive == "runner"
    count = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"
    async with bench.box() as box:
        python = ["python3", "-I", "-S", "-c", _KEPT if keep else _ORPHANS]
        if keep:
            python = ["sh", "-c", 'setsid "$@" >/dev/null 2>&1 & sleep 0.2', "sh", *python]
        await box.run(python, timeout_s=20)
        left = int((await box.run(["sh", "-c", count], timeout_s=10)).stdout or b"0")
    return opened(f"{left} are left") if left > 5 else blocked(f"{left} are left")
