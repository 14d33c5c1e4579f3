"""Which tests of an untouched project can be relied on, in a task and under the judge.

Owns: `Survey`, `survey`, `judged`, `Sentinels`.
Invariant: a test counts as steady only where it passed in every run, in another order, under another hash seed, and
alone beside its variants with sentinels where it is not named as unguarded.
Must not know: what tasks are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from practicum.curation.projects.building import limits_of, timeout_of
from practicum.curation.projects.measured import Measured
from practicum.curation.projects.programs import WORKSPACE
from practicum.curation.projects.project import Project
from practicum.curation.projects.suiterun import SuiteRun, TestOutcome
from practicum.curation.projects.testbed import Testbed
from practicum.errors import TaskError, VerifierError
from practicum.records.task import Task, Verification
from practicum.records.verdict import Submission, Verdict
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.runners.drivers import Drivers
from practicum.verification.vetting import vet_sentinels

SUITE_S = 600.0
_LEAST_PASSING = 0.5  # share of the suite that must pass for the project to be of use
_MOST_ENDING = 10  # tests that end the process in which the others are still to run
ENDS = "it ends the test process"


@dataclass(frozen=True, slots=True)
class Survey:
    """`steady` ids, sorted; `left_out` maps the others to why. `runs` are those that were made, the last with coverage.

    `seconds` are the longest measured without coverage. `unguarded` of the steady ones cannot bear sentinels.
    """

    steady: tuple[str, ...]
    left_out: Mapping[str, str]
    seconds: Mapping[str, float]
    runs: tuple[SuiteRun, ...]
    unguarded: tuple[str, ...] = field(default=())

    @property
    def covered(self) -> Mapping[str, Mapping[str, frozenset[int]]]:
        return self.runs[-1].covered


async def survey(
    testbed: Testbed,
    *,
    seed: int = 0,
    timeout_s: float = SUITE_S,
    measured: Measured | None = None,
    tell: Callable[[str], None] = lambda phase: None,
) -> Survey:
    """Run the whole suite as it is, in reverse under another hash seed, and shuffled with coverage.

    `measured` keeps each run, so that none is made twice; `tell` is told what is run. Raises `TaskError` where no test
    passes, where most do not, or where the suite does not end in time. A test that ends the process in which it runs is
    left out, and the suite run without it.
    """
    project, measured = testbed.project, measured or Measured(None, testbed.project.digest)

    async def run(number: int, what: str, timeout_s: float, ended: Sequence[str] = (), **options: Any) -> SuiteRun:
        name = f"run {number}, seed {seed}"
        if (kept := measured.run(name)) is not None:
            return kept
        tell(f"baseline: run {number} of 3 of the untouched suite, {what}")
        made = _with_ended(await testbed.run(timeout_s=timeout_s, **options), ended)
        if made.ended == "done" and made.outcomes:  # anything else may be due to the host of today
            measured.put_run(name, made)
        return made

    first = await run(1, "as it is", timeout_s)
    ended: list[str] = []
    while first.ended == "crashed" and first.hung and len(ended) < _MOST_ENDING:
        ended.append(first.hung)
        first = await run(1, f"without {first.hung}, which ends it", timeout_s, ended, ids=_without(first, ended))
    ended = [name for name, why in first.messages.items() if why == ENDS]  # in an earlier run that was kept, too
    ids = _without(first, ended) if ended else None
    if first.ended == "timeout":
        raise TaskError(f"{project.name}: its suite does not end within {timeout_s:g} s", fix="take a faster project")
    if not first.outcomes:
        raise TaskError(f"{project.name}: no test is collected: {first.log[-300:].strip()}")
    took = f"{len(first.outcomes)} tests, which took {first.seconds_all:.0f} s"
    others = [
        await run(2, f"in reverse: {took}", 2 * timeout_s, ids=ids, order="reversed", hash_seed=seed % 4294967295 + 1),
        await run(3, f"with coverage: {took}", 10 * timeout_s, ids=ids, order=seed, coverage=True),
    ]
    runs = (first, *others)
    left_out = {name: why for name in sorted(first.outcomes) if (why := _why_not(name, runs)) is not None}
    steady = tuple(name for name in sorted(first.outcomes) if name not in left_out)
    counted = [name for name, outcome in first.outcomes.items() if outcome != "skipped"]
    if not steady or len(steady) < _LEAST_PASSING * len(counted):
        example = next(((name, first.messages[name]) for name in sorted(first.messages)), ("", first.log[-300:]))
        raise TaskError(
            f"{project.name}: only {len(steady)} of its {len(counted)} tests pass and are steady, so that little can be"
            f" relied on; for example {example[0]}: {example[1][:300]}",
            fix="its dependencies may be missing: name a lock with --lock",
        )
    seconds = {name: max(run.seconds.get(name, 0.0) for run in runs[:2]) for name in steady}
    return Survey(steady, left_out, seconds, runs)


def _without(run: SuiteRun, ended: Sequence[str]) -> list[str]:
    """The tests of `run` that can be run together: not those in files that are not collected, nor `ended`."""
    return [name for name in run.outcomes if name not in ended and name not in run.uncollected]


def _with_ended(run: SuiteRun, ended: Sequence[str]) -> SuiteRun:
    """`run`, made without `ended`, with what they did."""
    if not ended:
        return run
    outcomes: dict[str, TestOutcome] = {**run.outcomes, **dict.fromkeys(ended, "error")}
    return replace(run, outcomes=outcomes, messages={**run.messages, **dict.fromkeys(ended, ENDS)})


def _why_not(name: str, runs: tuple[SuiteRun, ...]) -> str | None:
    usual, turned, traced = (run.outcomes.get(name) for run in runs)
    if usual != "passed":
        return f"{usual}: {runs[0].messages.get(name, '')[:200]}".rstrip(": ")
    if turned != "passed":
        return f"unsteady: {turned} in reverse order, under another hash seed"
    return None if traced == "passed" else f"unsteady: {traced} shuffled, under coverage"


async def judged(
    provider: SandboxProvider, project: Project, found: Survey, *, drivers: Drivers | None = None
) -> Survey:
    """`found` as the judge sees it: with the tests that bear no sentinels named, and without those that it fails.

    Raises `VerifierError` where the host kept it from being found out, and `TaskError` where the judge cannot judge the
    project at all.
    """
    drivers = drivers or Drivers(provider)
    task, untouched = _whole(project, found), Submission(())
    verdict = await _verdict(provider, drivers, task, untouched)
    # Also where it passed: what may run once only passes where its author's variant happened to be the first.
    unguarded = await vet_sentinels(provider, task, untouched, verdict, drivers=drivers)
    if verdict.passed and not unguarded:
        return found
    task = replace(task, verification=replace(task.verification, unguarded=unguarded))
    verdict = await _verdict(provider, drivers, task, untouched)
    failed = {name for name, status in verdict.tests.items() if status != "passed"}
    return replace(
        found,
        steady=tuple(name for name in found.steady if name not in failed),
        left_out={**found.left_out, **dict.fromkeys(sorted(failed), "the judge does not pass it")},
        unguarded=tuple(name for name in unguarded if name not in failed),
    )


class Sentinels:
    """Which tests bear sentinels, found out when they are first wanted, and each of them once.

    The whole suite would take minutes, and few of its tests get into tasks.
    """

    def __init__(self, provider: SandboxProvider, project: Project, found: Survey, measured: Measured) -> None:
        self._provider = provider
        self._project = project
        self._found = found
        self._measured = measured
        self._drivers = Drivers(provider)
        self._one = asyncio.Lock()
        self._known: dict[str, str] = dict(measured.get("sentinels") or {})  # guarded, unguarded, failed

    async def of(self, ids: Sequence[str]) -> Survey:
        """`ids` as the judge sees them on the untouched project; see `judged`."""
        async with self._one:
            new = sorted(name for name in ids if name not in self._known)
            if new:
                asked = replace(self._found, steady=tuple(new), unguarded=())
                seen = await judged(self._provider, self._project, asked, drivers=self._drivers)
                for name in new:
                    unguarded = "unguarded" if name in seen.unguarded else "guarded"
                    self._known[name] = unguarded if name in seen.steady else "failed"
                self._measured.put("sentinels", self._known)
        return replace(
            self._found,
            steady=tuple(sorted(name for name in ids if self._known[name] != "failed")),
            unguarded=tuple(sorted(name for name in ids if self._known[name] == "unguarded")),
        )


def _whole(project: Project, found: Survey) -> Task:
    """The untouched project with all its steady tests, as a task that is done already."""
    return Task(
        id=project.name,
        instruction="",
        files=project.files,
        verification=Verification(
            "pytest",
            project.tests,
            files=tuple(sorted({name.partition("::")[0] for name in found.steady})),
            fail_to_pass=found.steady,
            timeout_s=timeout_of(found.steady, found.seconds),
        ),
        layer=project.layer,
        workspace=WORKSPACE,
        limits=limits_of(project.files),
    )


async def _verdict(provider: SandboxProvider, drivers: Drivers, task: Task, submission: Submission) -> Verdict:
    verdict = await ExecutionVerifier(provider, drivers=drivers).verify(task, submission)
    if verdict.status == "unscorable":
        raise VerifierError(f"{task.id}: its untouched suite could not be judged: {verdict.reason}")
    if verdict.status == "invalid":
        raise TaskError(f"{task.id}: its untouched suite cannot be judged: {verdict.reason}")
    return verdict
