"""Probes of what outlives a command or a box, and of what a later box finds.

Invariant: a process that ought to be gone is looked for where it would be: by a later command in the box, or in the
host's own list of processes after the box's end.
Must not know: providers.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from contextlib import suppress
from pathlib import Path

from practicum.errors import SandboxError
from practicum.records.tree import tree_digest
from practicum.sandboxes.audit.bench import Bench
from practicum.sandboxes.audit.inside.registry import Finding, blocked, opened, probe, unclear
from practicum.sandboxes.contract import Sandbox

_LIFE = "lifecycle"
_OUTLIVES = "code outlives its run"
_JUDGE = "what an attempt leaves behind changes what is judged"
_NEIGHBOUR = "one box reaches another"
_numbers = itertools.count(1)


def sleeper() -> str:
    """An unusual number of seconds, by which a process is found again."""
    return f"61.{os.getpid():07d}{next(_numbers):04d}"


def on_host(mark: str) -> list[int]:
    """Processes of this host, whosever they are, whose command holds `mark`."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with suppress(FileNotFoundError, ProcessLookupError):
                if mark.encode() in (place / "cmdline").read_bytes():
                    found.append(int(place.name))
    return found


async def in_box(box: Sandbox, mark: str) -> int:
    """How many processes of the box, as a command in it sees them, are called so."""
    script = f"for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f 2>/dev/null; echo; done | grep -c '^sleep {mark}'"
    return int((await box.run(["sh", "-c", script], timeout_s=10)).stdout or b"0")


@probe(
    "P78",
    "judge",
    "survive one command, to change what the next sees",
    "gone when the command returns",
    threat=_JUDGE,
    where="host",
)
async def survives_command(bench: Bench) -> Finding:
    mark = sleeper()
    async with bench.box() as box:
        await bench.command(box, ["sh", "-c", f"sleep {mark} >/dev/null 2>&1 & exit 0"], timeout_s=10)
        left = await in_box(box, mark)
    return opened(f"{left} process is left") if left else blocked("none is left")


@probe(
    "P79",
    _LIFE,
    "leave the session, close all streams, outlive the box",
    "gone with the box",
    threat=_OUTLIVES,
    where="host",
)
async def survives_box(bench: Bench) -> Finding:
    mark = sleeper()
    async with bench.box() as box:
        await box.run(["sh", "-c", f"setsid setsid sleep {mark} >/dev/null 2>&1 </dev/null & sleep 0.1"], timeout_s=10)
        if not await in_box(box, mark):
            return unclear("the process did not start")
        before = on_host(mark)
        if bench.setting.one_box:  # the proof: look while it lives
            return opened(f"{len(before)} processes on the host") if before else blocked("it is no process of the host")
    left = on_host(mark)
    return opened(f"{len(left)} processes are left") if left else blocked("none is left on the host")


@probe("P86", _LIFE, "go on after the call was cancelled", "killed; the box is usable", threat=_OUTLIVES, where="host")
async def cancelled(bench: Bench) -> Finding:
    mark = sleeper()
    async with bench.box() as box:
        call = asyncio.create_task(bench.command(box, ["sleep", mark], timeout_s=60))
        await asyncio.sleep(0.2)
        if bench.setting.naive == "runner":  # nobody to cancel it: the beginner forgets about it
            script = f"setsid sleep {mark} >/dev/null 2>&1 &"
            call.cancel()
            await asyncio.wait([call], timeout=10)
            await box.run(["sh", "-c", script], timeout_s=10)
        else:
            call.cancel()
            await asyncio.wait([call], timeout=10)
        left = await in_box(box, mark)
    return opened(f"{left} process is left") if left else blocked("none is left, and the box runs another command")


@probe(
    "P87",
    _LIFE,
    "kill, stop and flood the box's first process",
    "it serves the next command",
    threat="code takes over the agent that serves the host",
    where="host",
)
async def kill_first(bench: Bench) -> Finding:
    script = "for s in KILL STOP TERM INT HUP SEGV USR1 CHLD PIPE ALRM; do kill -$s 1; done; exit 0"
    async with bench.box() as box:
        own = (await box.run(["readlink", "/proc/self/ns/pid"], timeout_s=5)).stdout.decode().strip()
        if own == bench.facts["namespaces"]["pid"]:  # number 1 is the host's here: it is left alone
            return opened("the host's first process can be addressed")
        try:
            await box.run(["sh", "-c", f"({script}) 2>/dev/null"], timeout_s=5)
            done = await box.run(["echo", "on"], timeout_s=5)
        except SandboxError as error:
            return opened(error.message)
    return blocked("it answers") if done.stdout == b"on\n" else opened(f"it answers {done}")


def _mounts_and_groups(name: str) -> list[str]:
    """What the host still has under the name of a box."""
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    root = Path("/sys/fs/cgroup")
    if root.is_dir():
        found += [place for place, _, _ in os.walk(root) if Path(place).name == name]
    return found


@probe(
    "P88",
    _LIFE,
    "leave mounts or control groups behind",
    "none bears the box's name",
    threat=_OUTLIVES,
    where="host",
    needs=("memory-limit",),
)
async def nothing_left(bench: Bench) -> Finding:
    async with bench.box() as box:
        await box.run(["true"], timeout_s=10)
        name = box.id
        during = _mounts_and_groups(name)
        if bench.setting.one_box:  # the proof: look while it lives
            return opened(f"{len(during)} on the host") if during else unclear("nothing bears its name")
    left = _mounts_and_groups(name)
    return opened("; ".join(left[:3])) if left else blocked(f"none ({len(during)} while it lived)")


@probe(
    "P84",
    "neighbours",
    "share random state between forks of one snapshot",
    "they differ",
    threat=_NEIGHBOUR,
    where="host",
    needs=("fork",),
)
async def random_state(bench: Bench) -> Finding:
    script = "import os, uuid; print(os.urandom(16).hex(), uuid.uuid4())"
    if bench.setting.one_box:  # the proof: a seed that both share
        script = "import random; print(random.Random(7).random())"
    said = []
    async with bench.box() as parent:
        snapshot = await parent.snapshot()
        for _ in range(2):
            async with bench.fork(snapshot) as box:
                said.append((await box.run(["python3", "-I", "-S", "-c", script], timeout_s=10)).stdout)
        bench.provider.release(snapshot)
    return opened(f"both gave {said[0]!r}") if said[0] == said[1] else blocked("they differ")


@probe(
    "P107",
    "neighbours",
    "change a snapshot that others fork from, or a sibling",
    "each sees its own files only",
    threat=_NEIGHBOUR,
    where="host",
    needs=("fork",),
)
async def siblings(bench: Bench) -> Finding:
    spoil = "echo changed > kept; echo new > more; rm gone"
    look = ["sh", "-c", "cat kept; ls"]
    expected = b"as it was\ngone\nkept\n"
    async with bench.box() as parent:
        await parent.run(["sh", "-c", "echo as it was > kept; : > gone"], timeout_s=10)
        snapshot = await parent.snapshot()
        async with bench.fork(snapshot) as one, bench.fork(snapshot) as other:
            await one.run(["sh", "-c", spoil], timeout_s=10)
            boxes = (one,) if bench.setting.one_box else (other, parent)
            seen = [(await box.run(look, timeout_s=10)).stdout for box in boxes]
        async with bench.fork(snapshot) as later:
            seen.append((await later.run(look, timeout_s=10)).stdout)
        bench.provider.release(snapshot)
    wrong = [text for text in seen if text != expected]
    return (
        opened(f"another box saw {wrong[0]!r}") if wrong else blocked("snapshot, parent and sibling are as they were")
    )


@probe(
    "P108",
    "judge",
    "survive a reset: processes, files, links, modes",
    "nothing is left of what came before",
    threat=_JUDGE,
    where="host",
    needs=("reset",),
)
async def survives_reset(bench: Bench) -> Finding:
    mark = sleeper()
    script = f"""
setsid sleep {mark} >/dev/null 2>&1 </dev/null &
for d in /app /tmp /dev/shm; do echo left > $d/left; ln -s /etc $d/link; mkdir -p $d/.config/a; chmod 777 $d; done
"""
    look = "ls -A /app /tmp /dev/shm; stat -c '%a %n' /app /tmp /dev/shm"
    async with bench.box() as box:
        before = await box.run(["sh", "-c", look], timeout_s=10)
        await box.run(["sh", "-c", script], timeout_s=10)
        if not bench.setting.one_box:  # the proof: none takes place
            await box.reset()
        after = await box.run(["sh", "-c", look], timeout_s=10)
        left = await in_box(box, mark)
    if left or after.stdout != before.stdout:
        return opened(f"{left} processes, files {after.stdout[:200]!r}")
    return blocked("no process, and files and modes as at the start")


_PLANT = """
for d in /tmp /app "$HOME" /dev/shm /tmp/.local/lib/python3/site-packages /usr/local/bin /etc /opt/practicum/site; do
  mkdir -p "$d" 2>/dev/null
  for f in sitecustomize.py usercustomize.py conftest.py planted.pth .profile .bashrc python3; do
    echo planted > "$d/$f" 2>/dev/null
  done
done
"""


@probe(
    "P85",
    "judge",
    "plant start-up files and programs for a later box",
    "a later box holds none of them",
    threat=_JUDGE,
    where="host",
)
async def planted(bench: Bench) -> Finding:
    places = "/tmp /app /dev/shm /etc /usr/local/bin /opt/practicum/site /opt/practicum/bin"
    find = f"find {places} -type f 2>/dev/null | xargs -r grep -lx planted 2>/dev/null; exit 0"
    async with bench.box() as box:
        await box.run(["sh", "-c", _PLANT], timeout_s=20)
        mine = (await box.run(["sh", "-c", find], timeout_s=20)).stdout.splitlines()
        if not mine:
            return unclear("nothing could be planted")
        if bench.setting.one_box:
            return opened(f"{len(mine)} files are found")
    async with bench.box() as box:
        left = (await box.run(["sh", "-c", find], timeout_s=20)).stdout.splitlines()
    return opened(f"found {left[:3]}") if left else blocked(f"{len(mine)} planted, none found by a later box")


@probe(
    "P99",
    "judge",
    "make the same work end differently in two boxes",
    "files and output are identical",
    threat=_JUDGE,
    where="host",
)
async def identical(bench: Bench) -> Finding:
    script = "ls -A / /app /etc /dev; env | sort; id; pwd; umask; ulimit -a; cat /etc/passwd; echo a > made"
    if bench.setting.one_box:  # the proof: something that does change
        script = "cat /proc/sys/kernel/random/uuid"
    seen = set()
    for _ in range(2):
        async with bench.box() as box:
            done = await box.run(["sh", "-c", script], timeout_s=10)
            seen.add((done.stdout, tree_digest((await box.list_tree("/app", max_bytes=1 << 20)).files)))
    return blocked("identical") if len(seen) == 1 else opened("they differ")
