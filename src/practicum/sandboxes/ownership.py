"""Who owns what outlives a process, written to disk before it exists.

Owns: `Owner` (the writing side), `Record` (the reading side), process identity by pid *and* start time.
Invariant: a box's line is on disk before its first process runs; a record is removed only when all is gone.
Must not know: how boxes are made. Imports little, since the janitor's process starts with it.

A record is a file of JSON lines in `<state>/owners/`: the owner first, then one line per event of a box.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any


def process_start(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def children(pid: int) -> list[int]:
    """Direct children of a process; none where it has ended or the kernel does not tell."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def host_identity() -> dict[str, str]:
    """What must be equal for a pid in a record to mean a process here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"host": socket.gethostname(), "boot": boot, "pidns": os.readlink("/proc/self/ns/pid")}  # noqa: PTH115


class Owner:
    """The record of this process, as its writer."""

    def __init__(self, state: Path, run_id: str, ttl_s: float) -> None:
        start = process_start(os.getpid())
        self.id = f"{os.getpid()}-{start}-{time.monotonic_ns() % 1_000_000:06d}"
        folder = state / "owners"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / f"{self.id}.jsonl"
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        owner = {"run": run_id, "pid": os.getpid(), "start": start, "expires": time.time() + ttl_s, "groups": []}
        self._append({"owner": owner | host_identity()})

    def groups(self, folders: list[str]) -> None:
        """The control groups below which all boxes' groups will be."""
        self._append({"groups": folders})

    def folders(self, paths: list[str]) -> None:
        """Folders of this owner alone, with all that is in them."""
        self._append({"folders": paths})

    def starting(self, box: str, ttl_s: float, groups: list[str]) -> None:
        self._append({"box": box, "expires": time.time() + ttl_s, "groups": groups})

    def started(self, box: str, monitor: int) -> None:
        """`monitor` is the process that stands for the box on the host."""
        self._append({"box": box, "monitor": [monitor, process_start(monitor)]})

    def up(self, box: str, monitor: int) -> None:
        """The box's first process runs. Its end is that of all others in the box; the monitor's end is not."""
        first = [[pid, process_start(pid)] for pid in children(monitor)]
        self._append({"box": box, "first": first})

    def gone(self, box: str) -> None:
        self._append({"box": box, "gone": True})

    def close(self) -> None:
        """All is gone: the record ends. Idempotent."""
        if self._fd >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def _append(self, line: dict[str, Any]) -> None:
        os.write(self._fd, json.dumps(line, separators=(",", ":")).encode() + b"\n")


class Record:
    """A record as read back. `boxes` maps the name of each box not known to be gone to its facts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.owner: dict[str, Any] = {}
        self.groups: list[str] = []
        self.folders: list[str] = []
        self.boxes: dict[str, dict[str, Any]] = {}
        self._read_to = 0
        self.refresh()

    def refresh(self) -> None:
        """Take in the lines written since; FileNotFoundError when the record is gone."""
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            lines = file.read().split(b"\n")
        lines.pop()  # what follows the last newline is not complete yet, or never will be
        for line in lines:
            self._read_to += len(line) + 1
            self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        if "owner" in event:
            self.owner = event["owner"]
        elif "box" not in event:
            self.groups = event.get("groups", self.groups)
            self.folders = event.get("folders", self.folders)
        elif event.get("gone"):
            self.boxes.pop(event["box"], None)
        else:
            self.boxes.setdefault(event["box"], {}).update(event)

    @property
    def here(self) -> bool:
        """Whether the numbers in the record are numbers of this host, container and boot."""
        return all(self.owner.get(name) == value for name, value in host_identity().items())

    @property
    def alive(self) -> bool:
        """Whether the owner still runs."""
        start = self.owner.get("start")
        return start is not None and process_start(self.owner["pid"]) == start
