"""The judge: a submission in, a verdict out, by execution in a fresh box.

Owns: `ExecutionVerifier`.
Invariant: what the candidate causes is a failure with a number; what the host causes is `unscorable` and what the
task causes is `invalid`, without one. Where it is not plain whose fault it was, the untouched task is judged as a
control: a fault that it does not show follows the submission. A box serves one submission, once.
Must not know: rollouts, policies, how runners work inside.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources

from practicum.errors import BoxOutOfMemory, SandboxError, SandboxTimeout, SubmissionError, TaskError, VerifierError
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import Finding, Submission, Verdict
from practicum.sandboxes.contract import BoxSpec, CommandResult, SandboxProvider
from practicum.verification.cases import Case
from practicum.verification.runners.drivers import JUDGE, Drivers
from practicum.verification.runners.harbor import LOGS, run_harbor
from practicum.verification.runners.plain import fresh_cases, frozen_cases, run_plain
from practicum.verification.runners.report import TESTS, Report, ended, judge_spec
from practicum.verification.runners.scripts import run_scripts, scripts_mount
from practicum.verification.runners.suites import run_suite
from practicum.verification.submission import judged_files
from practicum.verification.verdicts import VerdictMaker, task_problem

SCHEMA = "execution/1"
_ATTEMPTS = 2
_BOX_S = 60.0  # what a judge's box may take beyond its commands before it counts as lost


@dataclass(frozen=True, slots=True)
class _Seen:
    """One box's story: the build that failed, or the runner's report."""

    build: CommandResult | None
    report: Report | None
    seconds: Mapping[str, float]


class _BoxesLost(Exception):
    """Every attempt ended by a fault of its box or driver, the last one for memory where `out_of_memory`."""

    def __init__(self, faults: list[str], *, out_of_memory: bool = False) -> None:
        super().__init__("; ".join(faults))
        self.out_of_memory = out_of_memory


class ExecutionVerifier:
    """A `Verifier` that runs frozen tests in boxes of `provider`.

    At most `max_concurrent` submissions are judged at a time. `seed` decides, with task and submission, the order
    of cases and the fresh ones. `drivers` spares compiling them anew where another verifier has done so.
    """

    def __init__(
        self, provider: SandboxProvider, *, max_concurrent: int = 2, seed: int = 0, drivers: Drivers | None = None
    ) -> None:
        if max_concurrent < 1:
            raise ValueError("max_concurrent must be at least 1")
        self._provider = provider
        self._drivers = drivers or Drivers(provider)
        self._permits = asyncio.Semaphore(max_concurrent)
        self._seed = seed

    @cached_property
    def version(self) -> str:
        """Names the code that decides: changes with any source file of the verifier."""
        digest = hashlib.sha256()
        todo = [resources.files("practicum.verification")]
        while todo:
            for path in sorted(todo.pop().iterdir(), key=lambda item: item.name):
                if path.is_dir() and path.name != "__pycache__":
                    todo.append(path)
                elif path.name.endswith(".py"):
                    digest.update(path.read_bytes())
        return f"{SCHEMA}+{digest.hexdigest()[:12]}"

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        """The verdict on `submission`. Faults come back as `invalid` or `unscorable`, not as exceptions."""
        making = VerdictMaker(task, submission, self.version, self._provider.name)
        problem = task_problem(task)
        if problem is not None:
            return making.invalid(problem)
        tampering = [finding for finding in making.findings if finding.severity == "tamper"]
        if tampering:
            return making.valid("tampered", {}, evidence={"not_run": "acceptance artefacts were tampered with"})
        try:
            files = judged_files(task, submission)
        except SubmissionError as error:
            making.findings.append(Finding("does_not_apply", "", error.message))
            return making.valid("failed", {}, evidence={"not_run": error.message})
        async with self._permits:
            return await self._judge(task, files, making)

    async def _judge(self, task: Task, files: Tree, making: VerdictMaker) -> Verdict:
        rng = random.Random(f"{self._seed}:{task.digest}:{making.submission.digest}")
        try:
            cases = await self._cases(task, rng)
        except (TaskError, BoxOutOfMemory) as error:  # a generator's box holds no candidate
            return making.invalid(error.message)
        except (SandboxError, TimeoutError) as error:
            return making.unscorable(f"the case generator's box was lost: {error}")
        try:
            seen = await self._attempts(task, files, cases, rng, making)
        except _BoxesLost as lost:
            return await self._blame(task, cases, rng, making, lost)
        if seen.report is None:
            assert seen.build is not None
            return making.valid("build_failed", {}, evidence={"build": ended(seen.build), "seconds": seen.seconds})
        if seen.report.undecided is not None:
            return await self._blame(task, cases, rng, making, seen.report.undecided)
        return making.reported(seen.report, seen.seconds)

    async def _cases(self, task: Task, rng: random.Random) -> tuple[list[Case], list[Case]]:
        """Frozen and fresh cases of a plain task; a lost generator's box is tried once more."""
        if task.verification.runner != "plain":
            return [], []
        frozen, seed = frozen_cases(task), rng.getrandbits(31)
        timeout_s = task.verification.timeout_s + _BOX_S
        try:
            return frozen, await asyncio.wait_for(fresh_cases(task, self._provider, seed), timeout_s)
        except (SandboxError, TimeoutError):
            return frozen, await asyncio.wait_for(fresh_cases(task, self._provider, seed), timeout_s)

    async def _attempts(
        self,
        task: Task,
        files: Tree,
        cases: tuple[Sequence[Case], Sequence[Case]],
        rng: random.Random,
        making: VerdictMaker,
    ) -> _Seen:
        """What one box saw; a box or driver that is lost is replaced once, then `_BoxesLost`.

        A box that used up its memory is not replaced: that was no accident.
        """
        faults: list[str] = []
        while len(faults) < _ATTEMPTS:
            try:
                return await self._in_box(task, files, cases, rng)
            except (SandboxError, VerifierError, TimeoutError) as error:
                fault = SandboxTimeout("the judge's box was not done in time") if type(error) is TimeoutError else error
                faults.append(f"{type(fault).__name__}: {fault}")
                making.faults.append(faults[-1])
                if isinstance(error, BoxOutOfMemory):
                    raise _BoxesLost(faults, out_of_memory=True) from None
        raise _BoxesLost(faults)

    async def _in_box(
        self, task: Task, files: Tree, cases: tuple[Sequence[Case], Sequence[Case]], rng: random.Random
    ) -> _Seen:
        check, seconds = task.verification, dict[str, float]()
        build_s = max(task.limits.command_s, check.timeout_s) if check.build else 0.0
        start = time.monotonic()
        # Not for harbor: its script knows nothing of them.
        drivers = {} if check.runner == "harbor" else {JUDGE: await self._drivers.tree(task.layer)}
        async with (
            asyncio.timeout(build_s + check.timeout_s + _BOX_S),
            self._provider.create(_spec(task, files, drivers)) as box,
        ):
            seconds["create"] = time.monotonic() - start
            if check.build is not None:
                start = time.monotonic()
                build = await box.run(["/bin/sh", "-c", check.build], timeout_s=build_s)
                seconds["build"] = time.monotonic() - start
                if build.exit_code != 0:
                    return _Seen(build, None, seconds)
            start = time.monotonic()
            if check.runner == "plain":
                report = await run_plain(box, task, files, *cases, rng)
            elif check.runner == "command":
                report = await run_scripts(box, task, files)
            elif check.runner == "harbor":
                report = await run_harbor(box, task)
            else:
                report = await run_suite(box, task, files)
            seconds["tests"] = time.monotonic() - start
        return _Seen(None, report, seconds)

    async def _blame(
        self,
        task: Task,
        cases: tuple[Sequence[Case], Sequence[Case]],
        rng: random.Random,
        making: VerdictMaker,
        what: str | _BoxesLost,
    ) -> Verdict:
        """Judge the untouched task: what goes wrong there as well is not the submission's doing."""
        try:
            control = await self._attempts(task, task.files, cases, rng, making)
        except _BoxesLost as lost:
            if lost.out_of_memory:
                return making.invalid(f"the untouched task needs more memory than it allows: {lost}")
            return making.unscorable(str(lost))
        report = control.report
        if report is not None and report.undecided is not None:
            return making.invalid(report.undecided)
        why = str(what)
        kind = "box_lost" if isinstance(what, _BoxesLost) else "no_reward"
        making.findings.append(Finding(kind, "", f"with this submission, not with the untouched task: {why}"))
        return making.valid("failed", {}, evidence={"not_decided": why})


def _spec(task: Task, files: Tree, drivers: Mapping[str, Tree]) -> BoxSpec:
    check = task.verification
    readonly = dict(drivers)
    if check.runner in ("pytest", "unittest", "harbor") or (check.runner == "command" and scripts_mount(task)):
        readonly[TESTS] = check.tests
    spec = judge_spec(task, files, readonly)
    return replace(spec, scratch=(LOGS,)) if check.runner == "harbor" else spec
