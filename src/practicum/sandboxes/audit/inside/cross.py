"""Probes of neighbours: one box leaves something, and this looks for it in another.

Owns: `leave`, which the host has run in the first box, and the probes that look in the second.
Invariant: what is left is marked by the host's token, so that a find is certain.
Must not know: how boxes are made.
"""

import errno
import json
import os
import socket
import sys
import threading
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from .calls import call
from .registry import UNREACHED, Facts, Finding, blocked, judge, opened, probe

_GROUP = "neighbours"
_THREAT = "one box reaches another"
_PORT = 41321  # of a listener


def _key(facts: Facts) -> int:
    """Of shared memory: another one for each audit."""
    return zlib.crc32(facts["token"].encode()) & 0x7FFFFFFF | 1


def _files(facts: Facts) -> list[str]:
    return [f"{place}/{facts['token']}" for place in ("/tmp", "/dev/shm", "/app", "/var/tmp", "/run", "/run/lock")]


def leave() -> None:
    """Leave marks everywhere, say `ready`, and stay. The facts are JSON in the first argument."""
    facts = json.loads(sys.argv[1])
    for path in _files(facts):
        try:
            Path(path).write_text(facts["token"])
        except OSError:
            continue
    listeners = []
    for family, place in (
        (socket.AF_UNIX, "\0box-" + facts["token"]),
        (socket.AF_INET, ("0.0.0.0", _PORT)),
    ):
        server = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(place)
        server.listen(8)
        listeners.append(server)
    try:
        call("shmget", _key(facts), 4096, 0o1600)  # create; it outlives this process
    except OSError as error:
        print(f"no shared memory: {error}", flush=True)
    print("ready", flush=True)
    threading.Event().wait(20.0)


@probe("P80", _GROUP, "find files of another box", "ENOENT", threat=_THREAT, where="pair")
def other_files(facts: Facts) -> Finding:
    return judge([(path, partial(os.stat, path)) for path in _files(facts)])


def _reach(family: int, place: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        client.connect(place)


@probe(
    "P81",
    _GROUP,
    "reach listeners of another box: abstract socket and port",
    "ECONNREFUSED",
    threat=_THREAT,
    where="pair",
)
def other_listeners(facts: Facts) -> Finding:
    return judge(
        [
            ("abstract socket", lambda: _reach(socket.AF_UNIX, "\0box-" + facts["token"])),
            ("port", lambda: _reach(socket.AF_INET, ("127.0.0.1", _PORT))),
        ],
        refusals=UNREACHED,
    )


@probe("P82", _GROUP, "attach shared memory of another box", "ENOENT", threat=_THREAT, where="pair")
def other_shared_memory(facts: Facts) -> Finding:
    """It is removed when found: where it is not the box's own, it would stay on the host."""
    removed = 0
    return judge([("shmget", lambda: call("shmctl", call("shmget", _key(facts), 4096, 0o600), removed, 0))])


@probe("P83", _GROUP, "find and signal processes of another box", "none is listed", threat=_THREAT, where="pair")
def other_processes(facts: Facts) -> Finding:
    token, own = facts["pair_token"].encode(), os.getpid()
    count = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == own:
            continue
        count += 1
        try:
            if token in Path(f"/proc/{name}/cmdline").read_bytes():
                return opened(f"process {name} is the other box's")
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM):
                raise
    return blocked(f"{count} other processes, none of them the other box's")
