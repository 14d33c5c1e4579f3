"""The native program of the sandboxes: a box's first process, and the hub that starts boxes.

Owns: where the built program is, and how it is built from the C sources beside this file.
Invariant: the program names the digest of the sources it was built from, so that a stale one is noticed.
Must not know: boxes. Imports nothing of practicum, since the package's build runs it as well.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MACHINES = ("x86_64", "aarch64")
_SOURCES = ("main.c", "agent.c", "commands.c", "files.c", "processes.c", "warm.c", "hub.c", "oci.c", "base.c")
_HEADERS = ("system.h", "base.h", "agent.h")
_FLAGS = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Os",
    "-s",
    "-static",
    "-nostdlib",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-stack-protector",
    "-fno-sanitize=all",
]


@functools.cache
def source_digest() -> str:
    """Names the sources and how they are compiled."""
    digest = hashlib.sha256(repr(_FLAGS).encode())
    for name in (*_SOURCES, *_HEADERS):
        digest.update(b"\0" + (HERE / name).read_bytes())
    return digest.hexdigest()[:16]


def program(machine: str | None = None) -> Path:
    """Where the program for `machine` (this one by default) is, if it has been built."""
    return HERE / "bin" / f"box-{machine or platform.machine()}"


def program_in(cache: Path) -> Path:
    """The program for this machine as a file below `cache` that every user can execute and nobody write.

    RuntimeError where it has not been built, or from other sources than those beside this file.
    """
    digest = source_digest()
    target = cache / f"box-{digest}"
    if not target.exists():
        source = program()
        said = subprocess.run([source, "version"], capture_output=True, check=True) if source.exists() else None
        if said is None or said.stdout.decode().strip() != digest:
            why = "was built from other sources" if said else f"has not been built for {platform.machine()}"
            raise RuntimeError(f"practicum's native program {why}; install practicum again (pip install -e .)")
        temporary = target.with_name(f".new-{os.getpid()}-{target.name}")
        shutil.copyfile(source, temporary)
        temporary.chmod(0o555)
        temporary.replace(target)
    return target


def build() -> list[Path]:
    """Compile the program for every machine, with the compiler of the `ziglang` package; the files made.

    `subprocess.CalledProcessError` where the compiler refuses.
    """
    (HERE / "bin").mkdir(exist_ok=True)
    made = []
    for machine in MACHINES:
        target = program(machine)
        temporary = target.with_suffix(".new")
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-none", *_FLAGS]
        sources = [str(HERE / name) for name in _SOURCES]
        subprocess.run([*compiler, f"-DSOURCES={source_digest()}", "-o", str(temporary), *sources], check=True)
        temporary.replace(target)
        made.append(target)
    return made
