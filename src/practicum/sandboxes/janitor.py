"""Ends what a dead owner left behind.

Owns: `reconcile` (at start-up and for `practicum sandbox gc`) and the sidecar process of a living owner.
Invariant: nothing is ended unless its owner is known to be dead, by pid and start time on this host and boot,
or the box is past its time-to-live; a record is removed only after what it names is verified to be gone.
Must not know: how boxes are made.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from practicum.sandboxes.cgroups import kill_folders, remove_folders
from practicum.sandboxes.ownership import Record, host_identity, process_start

_LOOK_S = 1.0
_UNWRITTEN_S = 60.0  # a record names its owner as soon as it is there


def end_box(box: dict[str, Any], timeout_s: float = 5.0) -> bool:
    """Kill a box by its control groups and by its first process; whether all of it is gone."""
    known = [tuple(entry) for entry in [box.get("monitor", [None, None]), *box.get("first", [])]]
    named = [(pid, start) for pid, start in known if start is not None]
    for pid, start in named:
        if process_start(pid) == start:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    empty = kill_folders(box.get("groups", []), timeout_s)
    deadline = time.monotonic() + timeout_s
    while any(process_start(pid) == start for pid, start in named):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return empty and not remove_folders(box.get("groups", []))


def sweep(record: Record) -> list[str]:
    """End everything a dead owner left; the names of the boxes ended. The record goes when all is gone."""
    gone = [end_box(box) for box in record.boxes.values()]
    rest = kill_folders(record.groups) and not remove_folders(record.groups)
    if all(gone):
        for folder in record.folders:
            shutil.rmtree(folder, ignore_errors=True)  # what cannot be removed keeps the record, for the next janitor
    if rest and all(gone) and not any(os.path.exists(folder) for folder in record.folders):  # noqa: PTH110
        record.path.unlink(missing_ok=True)
    return list(record.boxes)


def reconcile(state: Path) -> list[str]:
    """End what dead owners left below `state`; the boxes ended, as `owner/box`.

    Records of other hosts, containers sharing the folder, and living owners are left alone.
    """
    ended: list[str] = []
    here = host_identity()
    for path in sorted((state / "owners").glob("*.jsonl")):
        try:
            record = Record(path)
        except FileNotFoundError:  # its owner, or another janitor, was faster
            continue
        if record.here and not record.alive:
            ended += [f"{path.stem}/{box}" for box in sweep(record)]
        elif record.owner.get("host") == here["host"] and record.owner.get("boot") != here["boot"]:
            path.unlink(missing_ok=True)  # the host was restarted, which ended everything
        elif not record.owner and time.time() - path.stat().st_mtime > _UNWRITTEN_S:
            path.unlink(missing_ok=True)  # its owner was killed before it wrote who it was, and had nothing yet
    return ended


def start_sidecar(record: Path) -> subprocess.Popen[bytes]:
    """Start the process that watches over this one; closing its stdin says that this one has ended.

    It gets a session of its own, so that an interrupt at the terminal does not reach it.
    """
    source = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, {source!r}); from practicum.sandboxes.janitor import watch; watch()"
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(record)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )


def watch() -> None:
    """Body of the sidecar: wait for the owner's end, then sweep; meanwhile end boxes past their time."""
    record = Record(Path(sys.argv[1]))
    while True:
        readable, _, _ = select.select([0], [], [], _LOOK_S)
        try:
            # A child forked by the owner may hold the pipe open after the owner's end: look at the owner too.
            while readable and record.alive:  # it hung up a moment before its end, or closes down in order
                time.sleep(0.02)
                record.refresh()
            record.refresh()
        except FileNotFoundError:
            return
        if not record.alive:
            sweep(record)
            return
        now = time.time()
        for box in record.boxes.values():
            if now > box.get("expires", now):
                end_box(box)
