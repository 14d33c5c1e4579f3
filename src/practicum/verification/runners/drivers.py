"""The drivers of a judge's box, compiled once for a layer's interpreter instead of at each start.

Owns: `Drivers`. Invariant: they are compiled in a box of that layer that holds nothing else, so their bytecode is
always of the interpreter that will run it, and no candidate is ever near it.
Must not know: tasks, candidates, what drivers do.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import cache
from importlib import resources

from practicum.errors import VerifierError
from practicum.records.recipe import Recipe
from practicum.records.tree import File, Tree
from practicum.sandboxes.contract import BoxSpec, SandboxProvider

JUDGE = "/judge"  # where they lie in a judge's box
_COMPILE_S = 30.0
_MAX_BYTES = 16 << 20


@cache
def sources() -> Tree:
    """The drivers as they are written."""
    folder = resources.files("practicum.verification.inside")
    return {path.name: File(path.read_bytes()) for path in folder.iterdir() if path.name.endswith(".py")}


class Drivers:
    """Compiled drivers for the layers of `provider`. Verifiers that share a provider may share one."""

    def __init__(self, provider: SandboxProvider) -> None:
        self._provider = provider
        self._lock = asyncio.Lock()
        self._trees: dict[str | Recipe, Tree] = {}

    async def tree(self, layer: str | Recipe) -> Tree:
        """What to mount at `JUDGE`: `<driver>.pyc` and what drivers import, and a shell for scripts.

        Raises `SandboxError`, and `VerifierError` where the layer's interpreter cannot compile them.
        """
        async with self._lock:
            if layer not in self._trees:
                self._trees[layer] = await self._compile(layer)
        return self._trees[layer]

    async def _compile(self, layer: str | Recipe) -> Tree:
        spec = BoxSpec(f"drivers-{uuid.uuid4().hex[:12]}", layer, files=sources())
        # Unchecked: there is no source beside it to check against. The stated path is the one they will have.
        how = ("-b", "-q", "--invalidation-mode", "unchecked-hash", "-s", spec.workdir, "-p", JUDGE)
        async with self._provider.create(spec) as box:
            done = await box.run(["python3", "-I", "-S", "-m", "compileall", *how, spec.workdir], timeout_s=_COMPILE_S)
            listing = await box.list_tree(spec.workdir, max_bytes=_MAX_BYTES)
            where = await box.run(["readlink", "-f", "/bin/sh"], timeout_s=_COMPILE_S)
            shell = await box.read(where.stdout.decode().strip() or "/bin/sh", max_bytes=_MAX_BYTES)
        tree = {path: File(file.data) for path, file in listing.files.items() if path.endswith(".pyc")}
        if done.exit_code != 0 or len(tree) != len(sources()):
            said = (done.stderr or done.stdout)[-500:].decode("utf-8", "replace")
            raise VerifierError(f"layer {str(layer)!r} could not compile the judge's drivers: {said}")
        # Unreadable, so that the memory of who executes it is closed to others of its user.
        return tree | {"pytest.ini": File(b"[pytest]\n"), "sh": File(shell, 0o111)}
