"""Where candidates are tried: mutants under the tests that reach them, and the task that comes of one.

Owns: `Workbench`.
Invariant: a test is named as failing only if it passed before and failed by itself, never by the clock; a task's tests
were seen to fail on its files and to pass on its gold, all run together.
Must not know: strategies, the order of candidates.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from practicum.curation.projects.building import build_task, choose_passing
from practicum.curation.projects.steadiness import Sentinels
from practicum.curation.projects.suiterun import SuiteRun
from practicum.curation.projects.testbed import Testbed
from practicum.curation.synthesis.asking import told_in_full
from practicum.curation.synthesis.excerpts import shown_tests
from practicum.curation.synthesis.strategy import Candidate, Changes, Ground, Refusal, Settings, Trial
from practicum.curation.synthesis.strength import weakness
from practicum.errors import TaskError
from practicum.records.task import Task

_QUICK_S = 1.0  # of tests before the first look
_QUICK_TESTS = 40
_GRACE_S, _LEAST_CPU_S = 2.0, 1.0
_SLACK = 4.0  # times what tests took on the untouched project
_ENDED = {
    "timeout": "timed out",
    "endless": "does not end",
    "crashed": "crashed",
    "oom": "out of memory",
    "flood": "wrote without end",
}


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
        usual_s = baseline.overhead_s + baseline.duration(ids)
        deadline_s = _GRACE_S + _SLACK * usual_s
        cpu_s = math.ceil(_LEAST_CPU_S + _SLACK * usual_s)
        deadline_s *= max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # who waits for a processor hangs not
        run = await self.testbed.run(changes, ids=ids, timeout_s=deadline_s, cpu_s=cpu_s, tests=tests, explain=explain)
        self._phases[phase] = self._phases.get(phase, 0.0) + run.seconds_all
        return run

    async def trial(
        self,
        changes: Changes,
        reach: Mapping[str, frozenset[int]],
        around: Mapping[str, frozenset[int]] | None = None,
    ) -> Trial | Refusal:
        baseline = self.ground.baseline
        reaching = baseline.reaching(reach)
        if not reaching:
            return Refusal("reached by no test")
        passed, failed, asked = set[str](), set[str](), set[str]()

        async def look(ids: Sequence[str], phase: str) -> Refusal | None:
            if not ids:
                return None
            run = await self.run(changes, ids, phase=phase)
            passed.update(run.passed)
            failed.update(run.failed)
            asked.update(ids)
            return _unusable(run) or (self._too_many(failed) if around is not None else None)

        first = baseline.within(reaching, _QUICK_S, _QUICK_TESTS)
        why = await look(first, "mutants")
        if why is None and not failed:
            why = await look(reaching[len(first) :], "mutants")
        if why is None and not failed:
            why = Refusal("survived")
        if why is None and around is not None:
            why = await look(baseline.fastest_first({*reaching, *baseline.reaching(around)} - asked), "neighbours")
        if why is not None:
            return why
        passing = passed | (baseline.steady - asked if around is not None else frozenset())
        return Trial(tuple(sorted(failed)), tuple(sorted(passing)), {})

    def _too_many(self, failed: set[str]) -> Refusal | None:
        steady = self.ground.baseline.steady
        if len(failed) <= self.settings.most_failing * len(steady):
            return None
        return Refusal("fails too many tests", f"{len(failed)} of {len(steady)}", killed=True)

    async def repair(
        self,
        candidate: Candidate,
        instruction: Callable[[Trial, Sequence[str]], str | Refusal],
        *,
        domain: str,
        must: Sequence[str] = (),
    ) -> Task | Refusal:
        trial = await self.trial(candidate.changes, candidate.reach, candidate.around or candidate.reach)
        if isinstance(trial, Refusal):
            return trial
        if missing := sorted(set(must) - set(trial.failing)):
            return Refusal("one bug hides another", missing[0], killed=True)
        failing, passing = self._frozen(candidate, trial, must)
        confirmed = await self._confirmed(candidate.changes, failing, passing)
        if isinstance(confirmed, Refusal):
            return confirmed
        trial = Trial(trial.failing, trial.passing, confirmed)
        project = self.ground.project
        made, visible = shown_tests(project, failing[: self.settings.visible])
        text = instruction(trial, tuple(made))
        if isinstance(text, Refusal):
            return text
        if (weak := await weakness(self, candidate, (*failing, *passing))) is not None:
            return weak
        try:
            task = build_task(
                project,
                id=f"{project.name}-{candidate.key[:12]}",
                files=project.state(candidate.changes),
                gold={path: project.files[path].data for path in candidate.changes},
                fail_to_pass=sorted(failing),
                pass_to_pass=sorted(passing),
                visible=visible,
                tests={**project.tests, **made},
                seconds=self.ground.baseline.seconds,
                instruction=text,
                provenance=self.provenance(candidate),
                domain=domain,
            )
        except TaskError as error:
            return Refusal("cannot be written as a task", error.message, killed=True)
        stated = told_in_full(task, candidate.changes, project.files)
        return stated if isinstance(stated, Refusal) else await self._guarded(stated)

    async def _guarded(self, task: Task) -> Task | Refusal:
        """The task with those of its tests named that bear no sentinels; none where nobody was given to find out."""
        if self._sentinels is None:
            return task
        ids = (*task.verification.fail_to_pass, *task.verification.pass_to_pass)
        start = time.monotonic()
        seen = await self._sentinels.of(ids)
        self._phases["sentinels"] = self._phases.get("sentinels", 0.0) + time.monotonic() - start
        if failed := sorted(set(ids) - set(seen.steady)):
            return Refusal("the judge does not pass its tests", failed[0], killed=True)
        return replace(task, verification=replace(task.verification, unguarded=seen.unguarded))

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
