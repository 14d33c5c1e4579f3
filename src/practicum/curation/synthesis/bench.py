"""Where candidates are tried: mutants under the tests that reach them, and the task that comes of one.

Owns: `Workbench`.
Invariant: a test is named as failing only if it passed before and failed by itself, never by the clock; a task's tests
were seen to fail on its files and to pass on its gold, all run together.
Must not know: strategies, the order of candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from practicum.curation.projects.building import build_task, choose_passing
from practicum.curation.projects.steadiness import Sentinels
from practicum.curation.projects.suiterun import SuiteRun
from practicum.curation.projects.testbed import Testbed
from practicum.curation.synthesis.excerpts import shown_tests
from practicum.curation.synthesis.strategy import Candidate, Changes, Ground, Refusal, Settings, Trial
from practicum.errors import TaskError
from practicum.records.task import Task

_QUICK_S = 1.0  # of tests before the first look
_QUICK_TESTS = 40
_GRACE_S = 2.0
_SLACK = 4.0  # times what tests took on the untouched project
_ENDED = {"timeout": "timed out", "crashed": "crashed", "oom": "out of memory", "flood": "wrote without end"}


class Workbench:
    """The `Bench` of one project. Calls may overlap; the testbed bounds how many runs there are at once."""

    def __init__(
        self,
        ground: Ground,
        testbed: Testbed,
        settings: Settings,
        phases: dict[str, float],
        sentinels: Sentinels | None = None,
    ) -> None:
        self.ground = ground
        self.settings = settings
        self.testbed = testbed
        self._phases = phases
        self._sentinels = sentinels
        self._good: dict[tuple[str, ...], frozenset[str]] = {}

    async def run(
        self,
        changes: Changes,
        ids: Sequence[str],
        *,
        phase: str = "mutants",
        tests: Changes | None = None,
        explain: bool = False,
    ) -> SuiteRun:
        baseline = self.ground.baseline
        deadline_s = _GRACE_S + _SLACK * (baseline.overhead_s + baseline.duration(ids))
        run = await self.testbed.run(changes, ids=ids, timeout_s=deadline_s, tests=tests, explain=explain)
        self._phases[phase] = self._phases.get(phase, 0.0) + run.seconds_all
        return run

    async def trial(
        self, changes: Changes, reach: Mapping[str, frozenset[int]], *, whole: bool = True
    ) -> Trial | Refusal:
        baseline = self.ground.baseline
        reaching = baseline.reaching(reach)
        if not reaching:
            return Refusal("reached by no test")
        first = baseline.within(reaching, _QUICK_S, _QUICK_TESTS)
        passed, failed = set[str](), set[str]()
        for ids in (first, reaching[len(first) :]):
            if failed or not ids:
                break
            run = await self.run(changes, ids)
            if (why := _unusable(run)) is not None:
                return why
            passed |= run.passed
            failed |= run.failed
        if not failed:
            return Refusal("survived")
        if whole:
            rest = baseline.fastest_first(baseline.steady - passed - failed)
            if self._too_many(failed):
                return Refusal("fails too many tests", f"{len(failed)} of {len(baseline.steady)}", killed=True)
            if rest:
                run = await self.run(changes, rest, phase="whole suite")
                if (why := _unusable(run)) is not None:
                    return why
                passed |= run.passed
                failed |= run.failed
            if self._too_many(failed):
                return Refusal("fails too many tests", f"{len(failed)} of {len(baseline.steady)}", killed=True)
        return Trial(tuple(sorted(failed)), tuple(sorted(passed)), {}, whole)

    def _too_many(self, failed: set[str]) -> bool:
        return len(failed) > self.settings.most_failing * len(self.ground.baseline.steady)

    async def repair(
        self,
        candidate: Candidate,
        instruction: Callable[[Trial, Sequence[str]], str | Refusal],
        *,
        domain: str,
        must: Sequence[str] = (),
    ) -> Task | Refusal:
        trial = await self.trial(candidate.changes, candidate.reach)
        if isinstance(trial, Refusal):
            return trial
        if missing := sorted(set(must) - set(trial.failing)):
            return Refusal("one bug hides another", missing[0], killed=True)
        failing, passing = self._frozen(candidate, trial, must)
        confirmed = await self._confirmed(candidate.changes, failing, passing)
        if isinstance(confirmed, Refusal):
            return confirmed
        trial = Trial(trial.failing, trial.passing, confirmed, trial.whole)
        project, baseline = self.ground.project, self.ground.baseline
        made, visible = shown_tests(project, failing[: self.settings.visible])
        text = instruction(trial, tuple(made))
        if isinstance(text, Refusal):
            return text
        unguarded = await self._unguarded((*failing, *passing))
        if isinstance(unguarded, Refusal):
            return unguarded
        try:
            return build_task(
                project,
                id=f"{project.name}-{candidate.key[:12]}",
                files=project.state(candidate.changes),
                gold={path: project.files[path].data for path in candidate.changes},
                fail_to_pass=sorted(failing),
                pass_to_pass=sorted(passing),
                visible=visible,
                tests={**project.tests, **made},
                seconds=baseline.seconds,
                unguarded=unguarded,
                instruction=text,
                provenance=self.provenance(candidate),
                domain=domain,
            )
        except TaskError as error:
            return Refusal("cannot be written as a task", error.message, killed=True)

    async def _unguarded(self, ids: Sequence[str]) -> tuple[str, ...] | Refusal:
        """Those of a task's tests that bear no sentinels. Not known, so none, where nobody was given to find out."""
        if self._sentinels is None:
            return ()
        start = time.monotonic()
        seen = await self._sentinels.of(ids)
        self._phases["sentinels"] = self._phases.get("sentinels", 0.0) + time.monotonic() - start
        if failed := sorted(set(ids) - set(seen.steady)):
            return Refusal("the judge does not pass its tests", failed[0], killed=True)
        return seen.unguarded

    def provenance(self, candidate: Candidate) -> dict[str, object]:
        """Where a task comes from: enough to make it again from the same project."""
        return {
            "generator": "practicum tasks synth",
            "strategy": candidate.strategy,
            "kind": candidate.kind,
            "seed": self.settings.seed,
            "candidate": candidate.key,
            **candidate.provenance,
        }

    def _frozen(
        self, candidate: Candidate, trial: Trial, must: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tests of the task: those that fail, and those nearby that must go on passing; fastest first."""
        baseline, settings = self.ground.baseline, self.settings
        failing = baseline.spread(trial.failing, settings.fail_to_pass_s, settings.most_fail_to_pass)
        failing = baseline.fastest_first({*failing, *must})
        passing = choose_passing(
            trial.passing,
            failing,
            seconds=baseline.seconds,
            near=baseline.reaching(candidate.around or candidate.reach),
            budget_s=settings.pass_to_pass_s,
            most=settings.most_pass_to_pass,
        )
        return failing, passing

    async def _confirmed(
        self, changes: Changes, failing: tuple[str, ...], passing: tuple[str, ...]
    ) -> Mapping[str, str] | Refusal:
        """Messages of the failing tests, once the tests of the task, run together, did what they are to do."""
        ids = (*failing, *passing)
        good = self._good.get(ids)
        if good is None:
            good = (await self.run({}, ids, phase="frozen tests")).passed
            self._good[ids] = good
        if set(ids) - good:
            return Refusal("its tests depend on others", sorted(set(ids) - good)[0], killed=True)
        run = await self.run(changes, ids, phase="frozen tests", explain=True)
        if (why := _unusable(run)) is not None:
            return why
        if set(run.passed) != set(passing):
            return Refusal("its tests depend on others", sorted(set(run.passed) ^ set(passing))[0], killed=True)
        return {name: run.messages.get(name, "") for name in failing}


def _unusable(run: SuiteRun) -> Refusal | None:
    """Why a run says nothing about single tests."""
    if run.ended != "done":
        return Refusal(_ENDED[run.ended], run.hung)
    if run.outcomes and not run.seconds:
        return Refusal("cannot be collected", next(iter(run.messages.values()), "")[:200])
    return None
