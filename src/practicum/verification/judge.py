"""The judge: a submission in, a verdict out, by execution in a fresh box.

Owns: `ExecutionVerifier`.
Invariant: what the candidate causes is a failure with a number; what the host causes is `unscorable` and what the
task causes is `invalid`, without one. Where it is not plain whose fault it was, the untouched task is judged as a
control: a fault that it does not show follows the submission. A box serves one submission at a time, and was made,
or reset and found empty, for it.
Must not know: rollouts, policies, how runners work inside.
"""

from __future__ import annotations

import asyncio
import copy
import random
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from practicum.errors import (
    BoxOutOfMemory,
    SandboxError,
    SandboxTimeout,
    SubmissionError,
    TaskError,
    VerifierError,
)
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import Finding, Submission, Verdict
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.cases import Case
from practicum.verification.certainty import certain
from practicum.verification.runners.drivers import JUDGE, Drivers
from practicum.verification.runners.harbor import run_harbor
from practicum.verification.runners.plain import fresh_cases, frozen_cases, run_plain
from practicum.verification.runners.report import ended
from practicum.verification.runners.scripts import run_scripts
from practicum.verification.runners.suites import run_suite
from practicum.verification.runners.variants import run_variants
from practicum.verification.seen import BoxesLost, Seen, lost_to_the_host
from practicum.verification.sources import source_digest
from practicum.verification.submission import judged_files
from practicum.verification.trial import Trial, Trials, box_spec, tests_s, warm_driver
from practicum.verification.verdicts import VerdictMaker, task_problem, told

SCHEMA = "execution/1"
_ATTEMPTS = 2
_BOX_S = 60.0  # what a judge's box may take beyond its commands before it counts as lost


class ExecutionVerifier:
    """A `Verifier` that runs frozen tests in boxes of `provider`.

    At most `max_concurrent` submissions are judged at a time. `seed` decides, with task and submission, the order
    of cases and the fresh ones. `drivers` spares compiling them anew where another verifier has done so. `lot`
    repeats the lots of sentinels of a judgement whose nonce is known, at one of their turns, and only these; by
    default they are fresh ones, as often as it takes (`certainty`). With `warm`, drivers are copies of a process
    that boxes keep, from the second judgement of a kind on: worth it where boxes are leased again.
    Where one judgement starts many they are so in any case.
    """

    def __init__(
        self,
        provider: SandboxProvider,
        *,
        max_concurrent: int = 2,
        seed: int = 0,
        drivers: Drivers | None = None,
        lot: tuple[str, int] | None = None,
        warm: bool = False,
    ) -> None:
        if max_concurrent < 1:
            raise ValueError("max_concurrent must be at least 1")
        self._provider = provider
        self._drivers = drivers or Drivers(provider)
        self._permits = asyncio.Semaphore(max_concurrent)
        self._seed = seed
        self._env: Mapping[str, str] = {}
        self._lot, self._once = lot, lot is not None
        self._honest = False
        self._cpu_s: int | None = None
        self._trials = Trials(0)
        self._warm = warm
        self._kinds: set[tuple[object, ...]] = set()  # of judgement that came up before

    def repeating(
        self, nonce: str, trials: Trials, *, turn: int = 0, once: bool = True, cpu_s: int | None = None
    ) -> ExecutionVerifier:
        """This verifier, permits and drivers included, with the lots of `nonce` at `turn` each time, which is cheaper.

        Only for work that cannot know the lots from what was judged before. `once`: it is honest and tries no luck, and
        only whether it passes is asked. A suite fails that uses more than `cpu_s` seconds of a processor.
        """
        twin = copy.copy(self)
        twin._lot, twin._once, twin._honest, twin._trials, twin._cpu_s = (nonce, turn), once, once, trials, cpu_s
        return twin

    def under(
        self, env: Mapping[str, str], *, seed: int, boxes: Callable[[SandboxProvider], SandboxProvider] | None = None
    ) -> ExecutionVerifier:
        """This verifier, permits and drivers included, with other variables and seed, in boxes that `boxes` changes."""
        twin = copy.copy(self)
        twin._env, twin._seed, twin._provider = env, seed, boxes(self._provider) if boxes else self._provider
        return twin

    @property
    def version(self) -> str:
        """Names the code that decides: changes with any source file of the verifier."""
        return f"{SCHEMA}+{source_digest()}"

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
        except TaskError as error:
            return making.invalid(error.message)
        except SubmissionError as error:
            making.findings.append(Finding("does_not_apply", "", error.message))
            return making.valid("failed", {}, evidence={"not_run": error.message})
        async with self._permits:
            try:
                return await self._judge(task, files, making)
            except Exception as error:  # noqa: BLE001  a fault of the judge must not take the submission with it
                return making.unscorable(f"the verifier crashed: {told(error)}")

    async def _judge(self, task: Task, files: Tree, making: VerdictMaker) -> Verdict:
        rng = random.Random(f"{self._seed}:{task.digest}:{making.submission.digest}")
        try:
            cases = await self._cases(task, rng)
        except (TaskError, BoxOutOfMemory) as error:  # a generator's box holds no candidate
            return making.invalid(error.message)
        except (SandboxError, TimeoutError) as error:
            return making.unscorable(f"the case generator's box was lost: {error}")
        # Not from the seed: what a submission can work out for itself, it can answer. The verdict says what it was.
        nonce, turn = self._lot or (secrets.token_hex(8), 0)
        trial = self._trials.of(task, cases, nonce, turn)
        seen: Seen | Verdict = await self._settled(task, files, trial, rng, making)
        if isinstance(seen, Verdict):
            return seen
        assert seen.report is not None
        making.drawn(nonce)
        if seen.report.answers is None:
            return making.reported(seen.report, seen.seconds)

        async def ask(nonce: str, turn: int) -> Seen | Verdict:
            return await self._settled(task, files, self._trials.of(task, ([], []), nonce, turn), rng, making)

        report = await certain(seen.report, task.verification, (nonce, turn), ask, once=self._once)
        return report if isinstance(report, Verdict) else making.reported(report, seen.seconds)

    async def _settled(
        self, task: Task, files: Tree, trial: Trial, rng: random.Random, making: VerdictMaker
    ) -> Seen | Verdict:
        """What was seen, where the tests came to run and said something; else the verdict."""
        try:
            seen: Seen | Verdict = await self._attempts(task, files, trial, rng, making)
        except BoxesLost as lost:
            seen = await self._blame(task, files, trial, rng, making, lost)
        if isinstance(seen, Verdict):
            return seen
        if seen.report is None:
            assert seen.build is not None
            return making.valid("build_failed", {}, evidence={"build": ended(seen.build), "seconds": seen.seconds})
        if seen.report.undecided is not None:
            return await self._blame(task, files, trial, rng, making, seen.report.undecided)
        return seen

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
        trial: Trial,
        rng: random.Random,
        making: VerdictMaker,
        most: int = _ATTEMPTS,
    ) -> Seen:
        """What one box saw; a box or driver that is lost is replaced, up to `most` in all, then `BoxesLost`.

        A box that used up its memory is not replaced: that was no accident.
        """
        faults: list[str] = []
        from_outside = False
        while len(faults) < most:
            try:
                return await self._in_box(task, files, trial, rng)
            except (SandboxError, VerifierError, TimeoutError) as error:
                fault = SandboxTimeout("the judge's box was not done in time") if type(error) is TimeoutError else error
                faults.append(f"{type(fault).__name__}: {fault}")
                making.faults.append(faults[-1])
                if isinstance(error, BoxOutOfMemory):
                    raise BoxesLost(faults, out_of_memory=True) from None
                from_outside |= lost_to_the_host(error)
        raise BoxesLost(faults, from_outside=from_outside)

    async def _in_box(self, task: Task, files: Tree, trial: Trial, rng: random.Random) -> Seen:
        check, seconds = task.verification, dict[str, float]()
        build_s = max(task.limits.command_s, check.timeout_s) if check.build else 0.0
        start = time.monotonic()
        # Not for harbor: its script knows nothing of them.
        drivers = {} if check.runner == "harbor" else {JUDGE: await self._drivers.tree(task.layer)}
        spec = box_spec(task, files, drivers, trial)
        warm_up = self._warm_up(task)
        async with (
            asyncio.timeout(build_s + tests_s(task, trial) + _BOX_S),
            self._provider.create(replace(spec, env={**spec.env, **self._env}, warm=warm_up)) as box,
        ):
            warm = bool(warm_up)
            seconds["create"] = time.monotonic() - start
            if check.build is not None:
                start = time.monotonic()
                build = await box.run(["/bin/sh", "-c", check.build], timeout_s=build_s)
                seconds["build"] = time.monotonic() - start
                if build.exit_code != 0:
                    return Seen(build, None, seconds)
                await box.quiet()  # what it left running could look into a driver before that has closed itself
            start = time.monotonic()
            if check.runner == "plain":
                report = await run_plain(box, task, files, trial.frozen, trial.fresh, rng, warm=warm)
            elif check.runner == "command":
                report = await run_scripts(box, task, files, warm=warm)
            elif check.runner == "harbor":
                report = await run_harbor(box, task)
            elif check.runner == "variants":
                report = await run_variants(box, task, files, warm=warm, once=self._honest)
            else:
                assert trial.guarded is not None
                report = await run_suite(box, task, files, trial.guarded, warm=warm, cpu_s=self._cpu_s)
            seconds["tests"] = time.monotonic() - start
        return Seen(None, report, seconds)

    def _warm_up(self, task: Task) -> tuple[str, ...]:
        """The argv of the process of which this judgement's drivers are to be copies; none where it would not pay: it
        does in one box where many drivers follow one another, else where boxes are leased again."""
        warm_up = warm_driver(task)
        if not warm_up or "warm" not in self._provider.capabilities:
            return ()
        if task.verification.runner == "variants":
            return warm_up
        if not self._warm:
            return ()
        kind = (task.layer, warm_up, *sorted(self._env.items()))
        known = kind in self._kinds
        self._kinds.add(kind)
        return warm_up if known else ()

    async def _blame(
        self,
        task: Task,
        files: Tree,
        trial: Trial,
        rng: random.Random,
        making: VerdictMaker,
        what: str | BoxesLost,
    ) -> Seen | Verdict:
        """Judge the untouched task: what goes wrong there as well is not the submission's doing.

        What does not must come again with the submission, so that a fault that has passed is not taken for its own.
        """
        if isinstance(what, BoxesLost) and what.from_outside:
            return making.unscorable(str(what))
        try:
            control = await self._attempts(task, task.files, trial, rng, making)
        except BoxesLost as lost:
            if lost.out_of_memory:
                return making.invalid(f"the untouched task needs more memory than it allows: {lost}")
            return making.unscorable(str(lost))
        report = control.report
        if report is not None and report.undecided is not None:
            return making.invalid(report.undecided)
        if isinstance(what, BoxesLost) and not what.out_of_memory:
            try:
                return await self._attempts(task, files, trial, rng, making, most=1)
            except BoxesLost as again:
                if again.from_outside:
                    return making.unscorable(str(again))
        why = str(what)
        kind = "box_lost" if isinstance(what, BoxesLost) else "no_reward"
        making.findings.append(Finding(kind, "", f"with this submission, not with the untouched task: {why}"))
        return making.valid("failed", {}, evidence={"not_decided": why})
