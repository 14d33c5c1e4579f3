"""The host's side of a box's processes: control groups, the launch, its end.

Owns: `Host` (what all boxes of a provider share), `BoxProcess`.
Invariant: a box is recorded before its first process runs; when `end` returns, no process, group or record of it
is left.
Must not know: the wire, what is asked of a box, what is on its disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from practicum.errors import SandboxDied, SandboxError
from practicum.records.task import Limits
from practicum.sandboxes.cgroups import BoxCgroup, Cgroups, kill_folders, remove_folders
from practicum.sandboxes.contract import SnapshotStore
from practicum.sandboxes.disks import Disks, Frozen
from practicum.sandboxes.hub import Hub, Slots, Started
from practicum.sandboxes.launch import Runtime
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Owner, children

_END_S = 2.0
_OWN_PROCESSES = 2  # the runtime's monitor and the agent
_UNCOUNTED = 4096  # where a box's processes on the host are not those in it


@dataclass(slots=True)
class Host:
    """What the boxes of one provider share.

    `filter_file` is the system-call filter. `disks` is None where files are copied. `frozen` holds snapshots by
    id: stacks of folders, or the id of a saved tree.
    """

    runtime: Runtime
    hub: Hub
    user: int
    filter_file: str
    cache: LayerCache
    snapshots: SnapshotStore
    owner: Owner
    cgroups: Cgroups | None
    disks: Disks | None
    box_ttl_s: float
    frozen: dict[str, Frozen | str] = field(default_factory=dict)

    def keep(self, snapshot: str, frozen: Frozen | str) -> None:
        """Have a snapshot, until it is released."""
        if isinstance(frozen, Frozen) and self.disks is not None:
            self.disks.hold(frozen.systems)
        self.frozen[snapshot] = frozen

    def release(self, snapshot: str) -> None:
        frozen = self.frozen.pop(snapshot, None)
        if isinstance(frozen, Frozen) and self.disks is not None and self.hub.alive:
            self.disks.let_go(frozen.systems)


class BoxProcess:
    """The processes of the box called `name`, from `start` to `end`."""

    def __init__(self, name: str, host: Host) -> None:
        self._name = name
        self._host = host
        self._started: Started | None = None
        self._errors = -1  # the read end of its error stream
        self._group: BoxCgroup | None = None
        self._pids = 0
        self._oom_kills = [0, 0]  # as of the command before the last, and of the last

    def start(
        self, limits: Limits, argv: list[str], slots: Slots | None = None, *, limited: bool = True
    ) -> tuple[int, int]:
        """Run `argv`, which finds `slots`: descriptors to read from and to write to.

        OSError or `SandboxError` where it cannot be.
        """
        host = self._host
        grouped = host.cgroups if limited else None
        folders = [f"{folder}/{self._name}" for folder in grouped.folders] if grouped else []
        host.owner.starting(self._name, host.box_ttl_s, folders)
        if grouped is not None:
            self._pids = limits.pids + _OWN_PROCESSES
            start = _UNCOUNTED if "pids-limit" in host.runtime.lacks else max(self._pids, host.runtime.starting_pids)
            self._group = grouped.create(self._name, memory_bytes=limits.memory_bytes, pids=start, cpus=limits.cpus)
        with contextlib.ExitStack() as opened:
            child_in, to_box = os.pipe()
            opened.callback(os.close, child_in)
            from_box, child_out = os.pipe()
            opened.callback(os.close, child_out)
            self._errors, child_err = os.pipe()
            opened.callback(os.close, child_err)
            # The filter is read to its end by whoever gets it, so each gets a descriptor with an offset of its own.
            others = [os.open(host.filter_file, os.O_RDONLY | os.O_CLOEXEC)]
            opened.callback(os.close, others[0])
            for file in self._group.procs_files if self._group else []:
                others.append(os.open(file, os.O_WRONLY | os.O_CLOEXEC))
                opened.callback(os.close, others[-1])
            try:
                self._started = host.hub.spawn(argv, [child_in, child_out, child_err, *others], slots)
            except SandboxError:
                os.close(to_box)
                os.close(from_box)
                raise
        host.owner.started(self._name, self._started.pid)
        return from_box, to_box

    def up(self) -> None:
        """The first process of the box has spoken."""
        assert self._started is not None
        runtime = self._host.runtime
        if self._group is not None and runtime.starting_pids > self._pids and "pids-limit" not in runtime.lacks:
            self._group.limit_pids(self._pids)
        self._host.owner.up(self._name, self._started.pid)

    async def last_words(self) -> str:
        """What the chain wrote to its error stream before it ended."""
        if self._errors < 0 or not await self._ended(_END_S):
            return ""
        os.set_blocking(self._errors, False)
        try:
            return os.read(self._errors, 65536).decode(errors="replace").strip()
        except BlockingIOError:  # something of it lives on, silently
            return ""

    def oom_since_last(self) -> bool:
        """Whether a process of the box was killed for memory since the last call.

        `SandboxDied` where it was for want of memory on the host: whatever was killed, it was not the box's doing.
        """
        if self._group is None:
            return False
        self._oom_kills = [self._oom_kills[1], self._group.oom_kills()]
        killed = self._oom_kills[1] > self._oom_kills[0]
        if killed and not self._group.was_full():
            raise SandboxDied(f"box {self._name}: the host ran out of memory and killed some of it")
        return killed

    def died_for_memory(self) -> bool:
        """Whether the box, which has ended by itself, went beyond its own limit of memory and was killed for it.

        The kill may have been counted with the last command already, hence the count before it. A kill without
        reaching the limit is one for want of memory on the host, which is not the box's doing.
        """
        group = self._group
        return group is not None and group.oom_kills() > self._oom_kills[0] and group.was_full()

    async def _ended(self, timeout_s: float) -> bool:
        """Wait for the runtime's end, which comes after that of everything in the box."""
        if self._started is None:
            return True
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        loop.add_reader(self._started.pidfd, over.set)
        try:
            async with asyncio.timeout(timeout_s):
                await over.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._started.pidfd)
        return True

    async def end(self, unmount: Callable[[], None]) -> None:
        """Wait for the end of a box that was hung up on, or enforce it; then remove what it leaves behind.

        `unmount` is called when nothing runs in it any more.
        """
        if not await self._ended(_END_S):
            self._kill()
            if not await self._ended(_END_S):
                raise SandboxError(f"box {self._name} could not be ended")
        if self._started is not None:
            os.close(self._started.pidfd)
            self._started = None
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1
        self._host.runtime.forget(self._name)
        unmount()
        if self._group is not None:
            folders = self._group.folders
            self._group.close()
            # At once in general; a process that is still leaving keeps its group busy for a moment.
            if remove_folders(folders, 0.0) and not await asyncio.to_thread(_clear, folders):
                raise SandboxError(f"control groups of box {self._name} could not be removed")
            self._group = None
        self._host.owner.gone(self._name)

    def _kill(self) -> None:
        """Kill the first process of the box, with which all others die; the runtime's monitor then ends."""
        assert self._started is not None
        pid = self._started.pid
        for target in children(pid) or [pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)
        if self._group is not None:
            kill_folders(self._group.folders, 0.0)


def _clear(folders: list[str]) -> bool:
    """Kill what is in control groups and remove them; whether they are gone."""
    return kill_folders(folders) and not remove_folders(folders)
