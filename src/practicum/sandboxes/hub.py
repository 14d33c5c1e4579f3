"""The owner's end of the wire to its hub (see native/hub.c).

Owns: `Hub`: starting it, starting programs through it, mounting by it.
Invariant: the hub runs as an unprivileged user and ends with this process; every request has a deadline; a hub that
has ended is named as such, never waited for.
Must not know: what is started or mounted.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import SandboxDied, SandboxError
from practicum.sandboxes.wire import pack, unpack

_DEADLINE_S = 20.0
_LARGEST = 1 << 18
Step = tuple[str, str, str]  # operation, path, what else it needs: see `do_step` in native/hub.c


class HubRefused(SandboxError):
    """The kernel refused a step. `number` is its errno."""

    def __init__(self, message: str, number: int = 0, *, fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        self.number = number


class HubEnded(SandboxDied):
    """There is no hub any more, and nothing of what it had started or mounted."""


@dataclass(frozen=True, slots=True)
class Started:
    """A program that the hub started: its pid here, and a handle that becomes readable when it ends."""

    pid: int
    pidfd: int


@dataclass(frozen=True, slots=True)
class Slots:
    """Folders that a program follows: one of the hub that is to be made for them, and where it finds each."""

    folder: str
    targets: tuple[str, ...]


class Hub:
    """One hub. `folder` is where its mounts are in its own namespace; it must exist, and stays empty for others."""

    def __init__(self, program: Path, folder: Path, user: int, *, stacks: bool = True) -> None:
        """Start it as `user`. With `stacks` it can mount, else it only starts programs.

        `HubRefused` where it cannot enter its namespaces.
        """
        self.folder = folder
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        size = _LARGEST * 2
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        ours.settimeout(_DEADLINE_S)
        self._socket = ours
        argv = [str(program), "hub", str(user), str(user), str(os.geteuid()), str(folder)]
        try:
            # From a thread that lives as long as the owner: the hub dies with its parent *thread*.
            self._process = subprocess.Popen(
                argv + ([] if stacks else ["plain"]),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
            )
        except OSError as error:
            ours.close()
            raise HubRefused(f"{program} could not be started: {error.strerror}", error.errno or 0) from error
        finally:
            theirs.close()
        greeting, _ = self._receive()
        if greeting[0] != b"ok":
            self.close()
            number = int(greeting[1])
            raise HubRefused(f"the hub was refused {greeting[0].decode()}: {os.strerror(number)}", number)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def spawn(self, argv: Sequence[str], fds: Sequence[int], slots: Slots | None = None) -> Started:
        """Start a program with an empty environment.

        `fds`: its standard input, output and error, the descriptor it finds as 9, then files to which it writes `0`
        before (control groups to join). They are passed on, not closed.
        """
        slots = slots or Slots("", ())
        parts = [slots.folder, str(len(slots.targets)), *slots.targets, *argv]
        fields, passed = self._ask([b"spawn", *(os.fsencode(part) for part in parts)], fds)
        if not passed:
            raise SandboxError("the hub started a program and gave no handle to it")
        return Started(int(fields[0]), passed[0])

    def do(self, steps: Sequence[Step], *, plain: bool = False) -> None:
        """Carry out steps in order; `HubRefused` names the one that failed. With `plain`, where programs start."""
        if not steps:
            return
        try:
            self._ask([b"plain" if plain else b"do", *(os.fsencode(part) for step in steps for part in step)])
        except HubRefused as error:
            step = steps[int(error.message)]
            text = f"{step[0]} {step[1]} {step[2]}: {os.strerror(error.number)}"
            raise HubRefused(f"a mount was refused: {text}", error.number) from error

    def clear(self, paths: Sequence[str]) -> None:
        """Unmount and remove folders, in the background."""
        with contextlib.suppress(HubEnded):  # then they have gone
            self._send([b"clear", *(os.fsencode(path) for path in paths)])

    def close(self) -> None:
        """End it, and with it whatever it started. Idempotent."""
        self._socket.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5.0)

    def _ask(self, fields: list[bytes], fds: Sequence[int] = ()) -> tuple[list[bytes], list[int]]:
        self._send(fields, fds)
        (status, *rest), passed = self._receive()
        if status != b"ok":
            raise HubRefused(rest[0].decode(), int(rest[1]))
        return rest, passed

    def _send(self, fields: list[bytes], fds: Sequence[int] = ()) -> None:
        message = pack(fields)
        if len(message) > _LARGEST:
            raise SandboxError(f"a request to the hub of {len(message)} bytes is too long")
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._socket.sendmsg([message], rights)
        except TimeoutError as error:
            raise self._lost(f"the hub took no request for {_DEADLINE_S:.0f} s") from error
        except OSError as error:
            raise HubEnded(f"the hub has ended ({error.strerror or error})") from error

    def _lost(self, reason: str) -> HubEnded:
        """End a hub that is late: its answer would be taken for that to the next request."""
        self._process.kill()
        self._process.wait(_DEADLINE_S)
        return HubEnded(f"{reason}, and was ended")

    def _receive(self) -> tuple[list[bytes], list[int]]:
        room = socket.CMSG_SPACE(array.array("i").itemsize * 4)
        try:
            data, rights, _, _ = self._socket.recvmsg(_LARGEST, room, socket.MSG_CMSG_CLOEXEC)
        except TimeoutError as error:
            raise self._lost(f"the hub did not answer for {_DEADLINE_S:.0f} s") from error
        except OSError as error:
            raise HubEnded(f"the hub has ended ({error.strerror or error})") from error
        if len(data) < 5:
            raise HubEnded("the hub has ended")
        passed = array.array("i")
        for level, kind, content in rights:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                passed.frombytes(content[: len(content) - len(content) % passed.itemsize])
        return unpack(data[4:]), list(passed)
