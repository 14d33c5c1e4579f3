"""A project's tests, run in boxes as the judge would run them.

Owns: `open_testbed`, `Testbed`.
Invariant: a run sees the project as it is with the changes it was given, and nothing of any other run; what the tests
do is an outcome, what the host does is raised.
Must not know: why tests are run, what is made of the outcomes.
"""

from __future__ import annotations

import asyncio
import json
import marshal
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from practicum.curation.projects.building import limits_of
from practicum.curation.projects.programs import WORKSPACE, Programs, bytecode, coverage_files
from practicum.curation.projects.project import Project
from practicum.curation.projects.suiterun import SuiteRun, read_run
from practicum.errors import BoxOutOfMemory, SandboxError, VerifierError, WarmEnded
from practicum.records.task import MIB, Limits, Task, Verification
from practicum.records.tree import File, Tree
from practicum.sandboxes.contract import BoxSpec, CommandResult, Sandbox, SandboxProvider
from practicum.verification.runners.drivers import JUDGE
from practicum.verification.runners.report import (
    GRACE_S,
    PYTEST_INI,
    PYTHON_WITH_SITE,
    TESTS,
    judge_spec,
    roots,
    text_tail,
)

COVERAGE = "/coverage"
_OUTPUT_BYTES = 256 * MIB
_REPORT_BYTES = 192 * MIB
_COMPILE_S = 120.0
_TRIES = 2


@dataclass(slots=True)
class _Seat:
    """A box that waits for a run, and how to end it."""

    box: Sandbox
    life: AsyncExitStack


class Testbed:
    """Boxes with a project laid out. Made by `open_testbed`; `run` may be called at once as often as one likes."""

    __test__ = False  # for pytest: no class of tests

    def __init__(
        self,
        provider: SandboxProvider,
        project: Project,
        drivers: Tree,
        compiled: tuple[Tree, Tree],
        concurrent: int,
        limits: Limits,
    ) -> None:
        self.project = project
        self._files = {**project.files, **compiled[0]}
        self._tests = {**project.tests, **compiled[1]}
        self._provider = provider
        self._drivers = drivers
        self._task = Task(
            id=project.name,
            instruction="",
            files=project.files,
            verification=Verification("pytest", project.tests),
            layer=project.layer,
            workspace=WORKSPACE,
            limits=limits,
        )
        self._permits = asyncio.Semaphore(concurrent)
        self._free: list[_Seat] = []

    async def run(
        self,
        changes: Mapping[str, bytes | None] | None = None,
        *,
        ids: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        timeout_s: float,
        coverage: bool = False,
        tests: Mapping[str, bytes | None] | None = None,
        explain: bool = False,
        order: int | Literal["reversed"] | None = None,
        hash_seed: int = 0,
        cpu_s: int | None = None,
    ) -> SuiteRun:
        """One run of the tests `ids` (or of all in `files`, or of all) on the project with `changes`.

        `changes` and `tests` map paths of the project, and of its tests, to new content or None for none. All ids are
        run in one process and their files are collected together, as in a task with these ids: a file that cannot be
        collected fails them all; only a run without `ids` goes on without it. The run may take `timeout_s`, and `cpu_s`
        of a processor, after which it is endless. `coverage` tells which lines each test ran; `explain` has failed
        assertions say what was compared; both take longer.
        `order` shuffles the tests by that seed, or reverses them; `hash_seed` is the interpreter's. Raises
        `SandboxError` or `VerifierError` where the host is at fault.
        """
        state = {path: None if data is None else File(data) for path, data in (changes or {}).items()}
        tree = _with(self._tests, tests or {})
        job = self._job(tree, state, ids, timeout_s, files) | {
            "coverage": COVERAGE if coverage else None,
            "explain": explain,
            "order": order,
            "cpu_s": cpu_s,
        }
        spec = self._spec(tree, coverage=coverage, hash_seed=hash_seed)
        supplied = {TESTS: tree} if tests else {}
        usual = not (coverage or hash_seed) and (not tests or "copy-on-write" in self._provider.capabilities)
        async with self._permits:
            for attempt in range(_TRIES):
                try:
                    if usual:
                        return await self._usual(supplied, state, job, ids)
                    return await self._apart(spec, state, job, ids)
                except BoxOutOfMemory:
                    return _cut_off(ids, "oom")
                except (SandboxError, VerifierError) as error:
                    if attempt + 1 == _TRIES:
                        if isinstance(error, WarmEnded):
                            return _cut_off(ids, "crashed")
                        raise
        raise AssertionError("unreachable")

    async def _usual(
        self,
        supplied: Mapping[str, Tree],
        state: Mapping[str, File | None],
        job: Mapping[str, Any],
        ids: Sequence[str] | None,
    ) -> SuiteRun:
        """In a box that is kept for the next run."""
        seat = self._free.pop() if self._free else await self._seat()
        try:
            if supplied:
                await seat.box.supply(supplied)
            run = await _run_in(seat.box, state, job, ids, warm=self._warm)
            if run.ended == "oom":  # its group remembers that it was full
                raise BoxOutOfMemory("the tests used up the box's memory")
            await seat.box.reset()
        except BaseException:
            await seat.life.aclose()
            raise
        self._free.append(seat)
        return run

    async def _apart(self, spec: BoxSpec, state: Mapping[str, File | None], job: Mapping[str, Any],
                     ids: Sequence[str] | None) -> SuiteRun:  # fmt: skip
        """In a box of its own."""
        async with self._provider.create(spec) as box:
            return await _run_in(box, state, job, ids, warm=False)

    async def _seat(self) -> _Seat:
        life = AsyncExitStack()
        spec = self._spec(self._tests)
        argv = (*PYTHON_WITH_SITE, f"{JUDGE}/warm.pyc", "bench", "--", "pytest", PYTEST_INI, TESTS)
        box = await life.enter_async_context(self._provider.create(replace(spec, warm=argv if self._warm else ())))
        return _Seat(box, life)

    @property
    def _warm(self) -> bool:
        return {"warm", "copy-on-write"} <= self._provider.capabilities

    def _spec(self, tests: Tree, *, coverage: bool = False, hash_seed: int = 0) -> BoxSpec:
        readonly = {JUDGE: self._drivers, TESTS: tests} | ({COVERAGE: coverage_files()} if coverage else {})
        spec = judge_spec(self._task, self._files, readonly)
        name = f"testbed-{uuid.uuid4().hex[:12]}"
        limits = replace(spec.limits, output_bytes=_OUTPUT_BYTES)
        return replace(spec, create_id=name, limits=limits, env={**spec.env, "PYTHONHASHSEED": str(hash_seed)})

    def _job(
        self,
        tests: Tree,
        state: Mapping[str, File | None],
        ids: Sequence[str] | None,
        timeout_s: float,
        only: Sequence[str] | None,
    ) -> dict[str, Any]:
        files = {**self.project.files, **{path: file for path, file in state.items() if file is not None}}
        if ids is None:
            test_files = [name for name in only or self.project.test_files if name in tests]
        else:
            test_files = list(dict.fromkeys(name.partition("::")[0] for name in ids))
        return {
            "kind": "pytest",
            "tests": TESTS,
            "files": sorted(test_files),
            "run": None if ids is None else list(ids),
            "roots": roots(self._task, files),
            "workspace": self._task.workspace,
            "ini": PYTEST_INI,
            "conftest": any(name.rpartition("/")[2] == "conftest.py" for name in tests),
            "timeout_s": timeout_s,
            "max_bytes": _REPORT_BYTES,
            "keep_going": ids is None,
        }

    async def close(self) -> None:
        """End all boxes."""
        while self._free:
            await self._free.pop().life.aclose()


@asynccontextmanager
async def open_testbed(
    provider: SandboxProvider,
    project: Project,
    *,
    concurrent: int = 2,
    limits: Limits | None = None,
    programs: Programs | None = None,
) -> AsyncIterator[Testbed]:
    """A testbed for `project` with at most `concurrent` runs at a time. Raises what making a box raises.

    `limits` are those of tasks made from the project unless given. `programs` spares compiling the drivers anew where
    another testbed has done so.
    """
    if concurrent < 1:
        raise ValueError("concurrent must be at least 1")
    drivers = await (programs or Programs(provider)).tree(project.layer)
    compiled = await bytecode(provider, project)
    testbed = Testbed(provider, project, drivers, compiled, concurrent, limits or limits_of(project.files))
    try:
        yield testbed
    finally:
        await testbed.close()


async def _run_in(
    box: Sandbox, state: Mapping[str, File | None], job: Mapping[str, Any], ids: Sequence[str] | None, *, warm: bool
) -> SuiteRun:
    gone = [path for path, file in state.items() if file is None]
    if gone:
        await box.run(["rm", "-f", "--", *gone], timeout_s=_COMPILE_S)
    if written := {path: file for path, file in state.items() if file is not None}:
        await box.upload("", written)
    data, deadline_s = marshal.dumps(dict(job), 4), job["timeout_s"] + GRACE_S
    if warm:
        result = await box.run_warm(["bench"], timeout_s=deadline_s, stdin=data)
    else:
        result = await box.run([*PYTHON_WITH_SITE, f"{JUDGE}/bench.pyc"], timeout_s=deadline_s, stdin=data)
    return _read(result, ids, bounded=bool(job["cpu_s"]))


def _read(result: CommandResult, ids: Sequence[str] | None, *, bounded: bool) -> SuiteRun:
    ready, _, rest = result.stdout.partition(b"\n")
    if ready != b'"ready"':
        raise VerifierError(
            f"the testbed's driver did not start (exit code {result.exit_code}): {text_tail(result.stderr, 500)}"
        )
    if result.oom_killed:
        return _cut_off(ids, "oom")
    try:
        line = json.loads(rest)
    except ValueError:
        return _cut_off(ids, "timeout" if result.timed_out else "crashed")
    return read_run(line, ids, bounded=bounded)


def _cut_off(ids: Sequence[str] | None, how: str) -> SuiteRun:
    """A run of which nothing is known but how it ended."""
    names = list(ids or ())
    why = {"oom": "the tests used up the box's memory"}.get(how, f"the run ended early ({how})")
    return SuiteRun(dict.fromkeys(names, "error"), {}, dict.fromkeys(names, why), ended=how)  # type: ignore[arg-type]


def _with(tree: Tree, changes: Mapping[str, bytes | None]) -> Tree:
    if not changes:
        return tree
    kept = {path: file for path, file in tree.items() if path not in changes}
    return kept | {path: File(data) for path, data in changes.items() if data is not None}
