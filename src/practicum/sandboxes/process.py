"""The host's side of a box's processes: control groups, the launch chain, its end.

Owns: `Host` (what all boxes of a provider share), `BoxProcess`.
Invariant: a box is recorded before its first process runs; when `end` returns, no process, group or record of it
is left.
Must not know: the wire, what is asked of a box.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass

from practicum.errors import SandboxDied, SandboxError
from practicum.records.task import Limits
from practicum.sandboxes.cgroups import BoxCgroup, Cgroups, kill_folders, remove_folders
from practicum.sandboxes.contract import SnapshotStore
from practicum.sandboxes.launch import Bwrap, launch_argv
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.ownership import Owner, children

_END_S = 2.0
_OWN_PROCESSES = 2  # bubblewrap's monitor and the agent


@dataclass(frozen=True, slots=True)
class Host:
    """What the boxes of one provider share. `drop` is the prefix that leaves root, `filter_file` the BPF program."""

    bwrap: Bwrap
    drop: tuple[str, ...]
    filter_file: str
    cache: LayerCache
    snapshots: SnapshotStore
    owner: Owner
    cgroups: Cgroups | None
    box_ttl_s: float


class BoxProcess:
    """The processes of the box called `name`, from `start` to `end`."""

    def __init__(self, name: str, host: Host) -> None:
        self._name = name
        self._host = host
        self._process: subprocess.Popen[bytes] | None = None
        self._group: BoxCgroup | None = None
        self._oom_kills = [0, 0]  # as of the command before the last, and of the last

    def start(self, limits: Limits, arguments: list[str]) -> tuple[int, int]:
        """Run bubblewrap with `arguments`: descriptors to read from and to write to. OSError where it cannot be."""
        host = self._host
        folders = [f"{folder}/{self._name}" for folder in host.cgroups.folders] if host.cgroups else []
        host.owner.starting(self._name, host.box_ttl_s, folders)
        if host.cgroups is not None:
            self._group = host.cgroups.create(
                self._name, memory_bytes=limits.memory_bytes, pids=limits.pids + _OWN_PROCESSES, cpus=limits.cpus
            )
        join = self._group.procs_files if self._group else []
        return self._spawn(launch_argv(join, host.drop, host.bwrap.path, arguments, host.filter_file))

    def _spawn(self, argv: list[str]) -> tuple[int, int]:
        # From the loop's own thread, which lives as long as the owner: bubblewrap dies with its parent *thread*.
        child_in, to_box = os.pipe()
        from_box, child_out = os.pipe()
        try:
            self._process = subprocess.Popen(
                argv, stdin=child_in, stdout=child_out, stderr=subprocess.PIPE, env={}, cwd="/"
            )
        except OSError:
            os.close(to_box)
            os.close(from_box)
            raise
        finally:
            os.close(child_in)
            os.close(child_out)
        self._host.owner.started(self._name, self._process.pid)
        return from_box, to_box

    def up(self) -> None:
        """The first process of the box has spoken."""
        assert self._process is not None
        self._host.owner.up(self._name, self._process.pid)

    async def last_words(self) -> str:
        """What the chain wrote to its error stream before it ended."""
        process = self._process
        if process is None or process.stderr is None or not await self._ended(_END_S):
            return ""
        os.set_blocking(process.stderr.fileno(), False)
        return (process.stderr.read() or b"").decode(errors="replace").strip()

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
        """Wait for bubblewrap's end, which comes after that of everything in the box."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        fd = os.pidfd_open(process.pid)
        loop.add_reader(fd, over.set)
        try:
            async with asyncio.timeout(timeout_s):
                await over.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        process.wait()
        return True

    async def end(self) -> None:
        """Wait for the end of a box that was hung up on, or enforce it; then remove what it leaves behind."""
        if not await self._ended(_END_S):
            self._kill()
            if not await self._ended(_END_S):
                raise SandboxError(f"box {self._name} could not be ended")
        process = self._process
        if process is not None and process.stderr is not None:
            process.stderr.close()
        if self._group is not None:
            folders = self._group.folders
            # At once in general; a process that is still leaving keeps its group busy for a moment.
            if remove_folders(folders, 0.0) and not await asyncio.to_thread(_clear, folders):
                raise SandboxError(f"control groups of box {self._name} could not be removed")
            self._group = None
        self._host.owner.gone(self._name)

    def _kill(self) -> None:
        """Kill the first process of the box, with which all others die; bubblewrap's monitor then ends."""
        assert self._process is not None
        pid = self._process.pid
        for target in children(pid) or [pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)


def _clear(folders: list[str]) -> bool:
    """Kill what is in control groups and remove them; whether they are gone."""
    return kill_folders(folders) and not remove_folders(folders)
