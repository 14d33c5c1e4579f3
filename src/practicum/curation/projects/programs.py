"""What lies in a testbed's boxes beside the project: drivers, bytecode, the package that measures coverage.

Owns: `Programs`, `bytecode`, `coverage_files`.
Invariant: what is compiled is compiled in a box by the layer's interpreter; bytecode is used only where it is of the
very source that lies there.
Must not know: runs, outcomes.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import cache
from importlib import resources, util
from pathlib import Path

from practicum.curation.projects.project import Project
from practicum.errors import CreateFailed
from practicum.records.recipe import Recipe
from practicum.records.tree import File, Tree
from practicum.sandboxes.contract import BoxSpec, SandboxProvider
from practicum.tasks.folders import read_tree
from practicum.verification.runners.drivers import JUDGE, Drivers
from practicum.verification.runners.report import TESTS

WORKSPACE = "/app"
_COMPILE_S = 120.0
_COMPILED_BYTES = 64 << 20


class Programs:
    """Drivers, compiled once for each layer of `provider`. Testbeds that share a provider may share one."""

    def __init__(self, provider: SandboxProvider) -> None:
        self.drivers = Drivers(provider)
        self._provider = provider
        self._lock = asyncio.Lock()
        self._trees: dict[str | Recipe, Tree] = {}

    async def tree(self, layer: str | Recipe) -> Tree:
        """The judge's drivers and the testbed's own beside them. Raises what making a box raises."""
        async with self._lock:
            if layer not in self._trees:
                self._trees[layer] = await self._compile(layer)
        return self._trees[layer]

    async def _compile(self, layer: str | Recipe) -> Tree:
        drivers = await self.drivers.tree(layer)
        source = resources.files("practicum.curation.inside").joinpath("bench.py").read_bytes()
        spec = BoxSpec(f"testbed-{uuid.uuid4().hex[:12]}", layer, WORKSPACE, files={"bench.py": File(source)})
        how = ("-b", "-q", "--invalidation-mode", "unchecked-hash", "-s", WORKSPACE, "-p", JUDGE)
        async with self._provider.create(spec) as box:
            done = await box.run(["python3", "-I", "-S", "-m", "compileall", *how, WORKSPACE], timeout_s=_COMPILE_S)
            if done.exit_code != 0:
                raise CreateFailed(f"layer {layer!s} cannot compile the testbed's driver: {done.stderr[-500:]!r}")
            data = await box.read("bench.pyc", max_bytes=1 << 20)
        return {**drivers, "bench.pyc": File(data)}


async def bytecode(provider: SandboxProvider, project: Project) -> tuple[Tree, Tree]:
    """Compiled files of sources and of tests, to lie beside them; without them, each run compiles all it imports.

    The interpreter takes one only where its hash is that of the source. What does not compile is left out.
    """
    sources = {f"files/{path}": project.files[path] for path in project.sources}
    tests = {f"tests/{path}": file for path, file in project.tests.items() if path.endswith(".py")}
    spec = BoxSpec(f"testbed-{uuid.uuid4().hex[:12]}", project.layer, WORKSPACE, files=sources | tests)
    how = ("-q", "-q", "--invalidation-mode", "checked-hash")
    script = [
        f"python3 -I -S -m compileall {' '.join(how)} -s {WORKSPACE}/{part} -p {place} {WORKSPACE}/{part}"
        for part, place in (("files", WORKSPACE), ("tests", TESTS))
    ]
    async with provider.create(spec) as box:
        await box.run(["/bin/sh", "-c", "; ".join(script)], timeout_s=_COMPILE_S)
        listing = await box.list_tree(WORKSPACE, max_bytes=_COMPILED_BYTES)
    compiled = {path: File(file.data) for path, file in listing.files.items() if path.endswith(".pyc")}
    halves = [
        {path.removeprefix(part): file for path, file in compiled.items() if path.startswith(part)}
        for part in ("files/", "tests/")
    ]
    return halves[0], halves[1]


@cache
def coverage_files() -> Tree:
    """The package `coverage`, as it is installed here, to be bound into a box."""
    found = util.find_spec("coverage")
    if found is None or not found.submodule_search_locations:
        raise CreateFailed("the package coverage is not installed here", fix="pip install coverage")
    tree = read_tree(Path(found.submodule_search_locations[0]))
    keep = {path: file for path, file in tree.items() if path.endswith((".py", ".so")) and "htmlfiles" not in path}
    return {f"coverage/{path}": file for path, file in keep.items()}
