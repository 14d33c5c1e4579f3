"""Owners that are killed at every step of their boxes' lives; the tests of the kill sweep start it.

Environment: CACHE, LIMITS_BY, WHAT dies at the step (`owner`, `owner-and-sidecar`, or `hub`), and EVERY how many steps.
A step is whatever is about to have an effect outside: a line of the record, a process, a group, a mount, a request to a
box. An owner that is never stopped counts them first; then one is forked for each step, a few at a time. Prints JSON
lines: what an owner was about to do when it or its hub was killed, how one that lived on ended, and the exit status of
each.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from practicum.errors import SandboxError
from practicum.records.tree import File
from practicum.sandboxes import process
from practicum.sandboxes import provider as opening
from practicum.sandboxes.cgroups import BoxCgroup, Cgroups
from practicum.sandboxes.channel import Channel
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.hub import Hub
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Owner, children
from practicum.sandboxes.provider import HostProvider, open_provider

MARK = "86397"  # an unusual number of seconds, by which the tests find sleepers
AT_ONCE = 3
DEADLINE_S = 60


class Steps:
    """Counts steps, and does at one of them what the sweep is for."""

    def __init__(self, stop_at: int, what: str) -> None:
        self.stop_at = stop_at
        self.what = what
        self.count = 0
        self.at = ""
        self.hub: Hub | None = None

    def step(self, name: str) -> None:
        self.count += 1
        if self.count != self.stop_at:
            return
        if self.what == "hub":
            if self.hub is not None and self.hub.alive:
                self.at = name
                os.kill(self.hub.pid, signal.SIGKILL)
                os.waitid(os.P_PID, self.hub.pid, os.WEXITED | os.WNOWAIT)
            return
        say(step=self.count, at=name)
        if self.what == "owner-and-sidecar":
            for child in children(os.getpid()):
                if self.hub is None or child != self.hub.pid:
                    os.kill(child, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def before(self, owner: Any, name: str, label: Callable[..., str] | None = None) -> None:
        """Make each call of `owner.name` a step."""
        original = getattr(owner, name)

        def stepping(*args: Any, **kwargs: Any) -> Any:
            self.step(f"{name} {label(*args) if label else ''}".strip())
            return original(*args, **kwargs)

        setattr(owner, name, stepping)

    def install(self) -> None:
        self.before(Owner, "_append", lambda owner, line: "/".join(line))
        self.before(Owner, "close")
        self.before(subprocess.Popen, "__init__", lambda popen, argv, *rest: Path(argv[0]).name)
        self.before(Cgroups, "create")
        self.before(BoxCgroup, "__init__")
        self.before(Cgroups, "remove")
        self.before(process, "remove_folders")
        self.before(Hub, "_send", lambda hub, fields, *rest: fields[0].decode())
        self.before(Hub, "_receive")
        self.before(Hub, "close")
        self.before(Channel, "start", lambda channel, fields, *rest: fields[0].decode())
        self.before(Channel, "wait")
        self.before(opening, "start_hub")
        original = Hub.__init__

        def remember(hub: Hub, *args: Any, **kwargs: Any) -> None:
            original(hub, *args, **kwargs)
            self.hub = hub

        Hub.__init__ = remember  # type: ignore[method-assign, assignment]


def say(**facts: object) -> None:
    os.write(1, json.dumps({"pid": os.getpid()} | facts).encode() + b"\n")


async def live(provider: HostProvider) -> None:
    """Boxes in all their states."""
    sleeper = ["sh", "-c", f"(setsid sleep {MARK}.{os.getpid()} >/dev/null 2>&1 &); true"]
    async with provider.create(BoxSpec("one", files={"f": File(b"1")})) as one:
        await one.write("g", b"2")
        snapshot = await one.snapshot()
        await one.run(sleeper, timeout_s=30)
        async with provider.fork(snapshot, BoxSpec("two")) as two:
            done = await two.run(["cat", "f", "g"], timeout_s=30)
            assert done.stdout == b"12"
            await two.run(sleeper, timeout_s=30)
            await two.restore(snapshot)
            await two.reset()
            provider.release(snapshot)
        await one.reset()
        await one.run(sleeper, timeout_s=30)


async def own(steps: Steps) -> None:
    """The life of an owner; how it ended."""
    cache = LayerCache(Path(os.environ["CACHE"]))
    limits_by: Any = os.environ["LIMITS_BY"]
    ended, after = "in order", ""
    steps.install()
    try:
        async with asyncio.timeout(DEADLINE_S / 2), open_provider(limits_by=limits_by, cache=cache) as provider:
            try:
                await live(provider)
            except SandboxError as error:
                ended = type(error).__name__
            after = await attempt(provider) if steps.at else ""
    except SandboxError as error:
        ended = f"{type(error).__name__} at the end"
    say(step=steps.stop_at, at=steps.at, ended=ended, after=after)


async def attempt(provider: HostProvider) -> str:
    """What becomes of a further box."""
    try:
        async with provider.create(BoxSpec("later")):
            return "created"
    except SandboxError as error:
        return type(error).__name__


def fork_owner(stop_at: int, what: str) -> int:
    pid = os.fork()
    if pid == 0:
        signal.alarm(DEADLINE_S)  # a hang is a death by another signal
        asyncio.run(own(Steps(stop_at, what)))
        os._exit(0)
    return pid


def total() -> int:
    """How many steps there are; all is done once on the way."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        steps = Steps(0, "nothing")
        asyncio.run(own(steps))
        os.write(write, str(steps.count).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(pid, 0)
    return int(said)


def main() -> None:
    LayerCache(Path(os.environ["CACHE"])).layer("python")  # or making it would be steps of the first owner alone
    what, every = os.environ["WHAT"], int(os.environ["EVERY"])
    todo = list(range(total(), 0, -every))
    living: dict[int, int] = {}
    while todo or living:
        while todo and len(living) < AT_ONCE:
            number = todo.pop()
            living[fork_owner(number, what)] = number
        pid, status = os.wait()
        say(owner=pid, step=living.pop(pid), status=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
