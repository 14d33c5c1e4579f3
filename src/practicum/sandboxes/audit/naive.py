"""What a beginner would write to collect files from a box and to end its commands: the counterexample.

Owns: `NaiveCollector`, `naive_command`.
Invariant: it is run inside the box, with a deadline, so that its faults harm nobody.
Must not know: probes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from practicum.errors import SandboxTimeout
from practicum.records.tree import File
from practicum.sandboxes.contract import CommandResult, Listing, Sandbox

_DEADLINE_S = 2.0
_READ = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read()[:65536])"
_WRITE = (
    "import os, sys; os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True);"
    " open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
)
# Names as JSON in the end, contents cut: the point is what is opened, not what is shown of it.
_LIST = """
import json, os, sys
found = {}
for place, _, names in os.walk(sys.argv[1], followlinks=True):
    for name in names:
        path = os.path.join(place, name)
        found[os.path.relpath(path, sys.argv[1])[-200:]] = open(path, 'rb').read().decode('latin-1')[:100]
many = len(found)
print(json.dumps([many, dict(list(found.items())[:120])]))
"""
_RUN = """
import subprocess, sys
sys.exit(subprocess.run(sys.argv[1:], capture_output=True, start_new_session=True).returncode)
"""


def naive_command(argv: Sequence[str]) -> list[str]:
    """Waits for all output and for as long as it takes, and kills nothing."""
    return ["python3", "-I", "-S", "-c", _RUN, *argv]


class NaiveCollector:
    """Follows links, opens whatever there is, reads all of it."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box

    async def _python(self, code: str, path: str, data: bytes = b"") -> CommandResult:
        done = await self._box.run(["python3", "-I", "-S", "-c", code, path], timeout_s=_DEADLINE_S, stdin=data)
        if done.timed_out:
            raise SandboxTimeout(f"the beginner's collector hangs at {path}")
        return done

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        return (await self._python(_READ, path)).stdout

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._python(_WRITE, path, data)

    async def list_tree(self, path: str, *, max_bytes: int) -> Listing:
        done = await self._python(_LIST, path)
        if not done.stdout:
            await asyncio.sleep(0)
            return Listing({})
        many, files = json.loads(done.stdout)
        listing = {name: File(text.encode("latin-1")) for name, text in files.items()}
        return Listing(listing | {f"…{number}": File(b"") for number in range(many - len(files))})
