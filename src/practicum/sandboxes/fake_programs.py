"""What the boxes in memory can run: Python callables by the names of programs.

Owns: `FakeCall`, `Program`, the built-in programs.
Invariant: a program sees what its call holds and nothing else.
Must not know: boxes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from practicum.records.tree import File

BASE_ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


@dataclass(slots=True)
class FakeCall:
    """What a program is given. `files` maps absolute paths to the box's files; changes to it are kept."""

    argv: tuple[str, ...]
    stdin: bytes
    env: Mapping[str, str]
    cwd: str
    files: dict[str, File]


Outcome = tuple[int, bytes, bytes]  # exit code, stdout, stderr
Program = Callable[[FakeCall], Outcome | Awaitable[Outcome]]


def _cat(call: FakeCall) -> Outcome:
    if len(call.argv) == 1:
        return 0, call.stdin, b""
    out, err = b"", b""
    for name in call.argv[1:]:
        file = call.files.get(name if name.startswith("/") else f"{call.cwd}/{name}")
        if file is None:
            err += f"cat: {name}: No such file or directory\n".encode()
        else:
            out += file.data
    return int(bool(err)), out, err


async def _sleep(call: FakeCall) -> Outcome:
    await asyncio.sleep(float(call.argv[1]))
    return 0, b"", b""


PROGRAMS: Mapping[str, Program] = {
    "true": lambda call: (0, b"", b""),
    "false": lambda call: (1, b"", b""),
    "echo": lambda call: (0, " ".join(call.argv[1:]).encode("utf-8", "surrogateescape") + b"\n", b""),
    "pwd": lambda call: (0, f"{call.cwd}\n".encode(), b""),
    "env": lambda call: (0, "".join(f"{k}={v}\n" for k, v in call.env.items()).encode(), b""),
    "cat": _cat,
    "sleep": _sleep,
}
