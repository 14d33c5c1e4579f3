"""What a gate is, and what it has to work with.

Owns: `Gate`, `Found`, `NotAssessed`, `Settings`, `Surroundings`, `Bench`, `Case`, `together`.
Invariant: a gate passes on evidence only; a verdict that the host kept from being reached is never taken for an
answer, it ends the gate as not assessed. However many tasks are checked at once, no more work than the bench has
permits for goes on, and seconds count work, not waiting for it.
Must not know: which gates there are, what is decided from them.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from practicum.curation.gates.starving import starved
from practicum.curation.soundness.order import without_pass_to_pass
from practicum.records.assessment import Decision, GateResult
from practicum.records.recipe import Recipe
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.agents import Agent, oracle_agent
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.workshop import Workshop, run_specs
from practicum.verification.contract import Verifier
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.judging import judge_all
from practicum.verification.runners.drivers import Drivers
from practicum.verification.trial import Trials

T = TypeVar("T")
_LONG = 4  # tests of pass_to_pass from which it is worth asking for the others first
_HANGS, _LEAST_CPU_S = 5, 2  # times the processor seconds of the gold, and at least so many
_TRIALS = 12  # sets of rewritten tests that are kept of one task
Cost = Literal["reading", "one box", "boxes"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is tried, and where the lines are.

    `repeat` judgements of the gold and of doing nothing; `attacks` of the red team (None: all that apply); at most
    `mutants` and `equivalents`; a task is refused where less than `kill_rate` of at least `min_mutants` mutants fail;
    the gold must do with `margin` of each limit. `rounds` are the changed conditions that a verdict must bear, and
    `more_rounds` what is added where the code at work speaks of chance or time.
    """

    repeat: int = 3
    attacks: int | None = 8
    mutants: int = 8
    min_mutants: int = 3
    kill_rate: float = 0.6
    equivalents: int = 3
    rounds: int = 4
    more_rounds: int = 8
    margin: float = 0.5
    require_difficulty: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What a gate saw. `evidence` is JSON data; `doubtful` in it says that a failure is for a person to judge."""

    passed: bool
    reason: str
    evidence: Mapping[str, Any]


class NotAssessed(Exception):
    """It could not be found out. `fault`: the host is to blame, and another day may tell."""

    def __init__(self, reason: str, *, fault: bool = False, evidence: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fault = fault
        self.evidence = dict(evidence or {})


@dataclass(frozen=True, slots=True)
class Gate:
    """One rung. `version` changes whenever the same task could come out otherwise.

    `failing` is what a task becomes that fails it: rejected where the task is at fault, quarantined where that is for
    a person to say. `needs` names gates without which asking makes no sense. `parameters` are the settings, by name,
    that change what is found. `of_set`: the finding also rests on what stands beside the task (the other tasks, records
    of attempts), so it is asked last, and each time anew.
    """

    name: str
    version: str
    cost: Cost
    failing: Decision
    assess: Callable[[Case], Awaitable[Found]]
    needs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    of_set: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """Where gates work: boxes that are leased again and again, `fresh` ones made for one judgement each, permits.

    `leased` judges in the former, and is the workshop's; `fresh` in the latter. `layer_of` gives the digest of a layer.
    """

    workshop: Workshop
    leased: ExecutionVerifier
    fresh: ExecutionVerifier
    drivers: Drivers
    permits: asyncio.Semaphore
    layer_of: Callable[[str | Recipe], str]
    listings: dict[str, Any] = field(default_factory=dict)
    """What boxes of a layer hold beside the task, by digest of the layer."""


@dataclass(slots=True)
class Surroundings:
    """What is known of a task beside itself: the set that it stands in, protected sets, measured pass rates.

    `tasks` are all of the set; `protected` maps a name to the tasks of a set that nothing may be like. `state` is the
    folder of the set's records. `kept` are ids of tasks that have passed everything so far.
    """

    tasks: Sequence[Task] = ()
    protected: Mapping[str, Sequence[Task]] = field(default_factory=dict)
    state: Path | None = None
    kept: set[str] = field(default_factory=set)
    known: dict[str, Any] = field(default_factory=dict)
    """What set gates worked out once for all tasks."""


class Case:
    """One task under check: what has been found so far, and its gold once it was carried out."""

    def __init__(self, task: Task, bench: Bench, settings: Settings, around: Surroundings) -> None:
        self.task, self.bench, self.settings, self.around = task, bench, settings, around
        self.results: dict[str, GateResult] = {}
        self.seconds = 0.0
        self.gold_verdict: Verdict | None = None
        """The one on the gold, of those that a gate of this check has reached, that used the processor most."""
        self.cut_verdict: Verdict | None = None
        """One by which the gold passed with its limits cut down."""
        self._gold: Trajectory | None = None
        self._trials = Trials(_TRIALS)

    def steady(
        self, number: int = 0, judge: ExecutionVerifier | None = None, *, once: bool = True, cpu_s: int | None = None
    ) -> ExecutionVerifier:
        """`judge` (by default the one with leased boxes) with the lots of set `number` each time.

        For code that gates bring: it cannot know them. `once`: it tries no luck, and only whether it passes counts.
        A suite fails that uses more than `cpu_s` seconds of a processor.
        """
        judge, nonce = judge or self.bench.leased, f"{self.task.digest}-{self.settings.seed}-{number}"
        return judge.repeating(nonce, self._trials, once=once, cpu_s=cpu_s)

    @property
    def hanging_s(self) -> int | None:
        """From how many seconds of a processor wrong work seems to hang: some that does would use all of its time.

        By those that the gate `gold` saw, in a process that had to load everything; None where it saw none, or where
        no runner would stop it.
        """
        used = self.results["gold"].evidence.get("cpu_s") if "gold" in self.results else None
        stops = self.task.verification.runner in ("pytest", "unittest")
        return math.ceil(max(_LEAST_CPU_S, _HANGS * used)) if used and stops else None

    @property
    def required(self) -> Task:
        """The task judged by fail_to_pass alone, where pass_to_pass is long: what fails by it fails by the whole."""
        alone = without_pass_to_pass(self.task) if len(self.task.verification.pass_to_pass) > _LONG else None
        return alone or self.task

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A permit to work; what is done in it counts as work."""
        async with self.bench.permits:
            start = time.monotonic()
            try:
                yield
            finally:
                self.seconds += time.monotonic() - start

    async def attempt(self, agent: Agent, spec: AttemptSpec, *, verifier: Verifier | None = None) -> Trajectory:
        """One attempt, in its turn, judged by `verifier` where one is given."""
        workshop = self.bench.workshop
        async with self.turn():
            (trajectory,) = await run_specs(
                replace(workshop, verifier=verifier) if verifier else workshop, agent, [spec]
            )
        return trajectory

    async def gold_attempt(self) -> Trajectory:
        """The oracle's attempt, made once; not judged."""
        if self._gold is None:
            agent = oracle_agent()
            name = f"gold-{self.task.id}"
            spec = AttemptSpec(self.task, name, seed=self.settings.seed, with_solution=True, judged=False)
            self._gold = await self.attempt(agent, spec)
        return self._gold

    async def gold(self) -> Submission:
        """What the oracle left behind. Raises `NotAssessed` where there is nothing."""
        if not self.task.solution:
            raise NotAssessed("there is no solution/solve.sh, so nothing shows that the task can be done")
        attempt = await self.gold_attempt()
        if attempt.fault is not None:
            raise NotAssessed(f"the gold could not be carried out: {attempt.fault.message}", fault=True)
        if attempt.submission is None:
            raise NotAssessed("the gold left nothing behind")
        return attempt.submission

    def forget(self) -> None:
        """Let the gold go: it is not needed any more."""
        self._gold = self.gold_verdict = self.cut_verdict = None

    async def judge(
        self,
        submission: Submission,
        *,
        verifier: Verifier | None = None,
        task: Task | None = None,
        right: bool = False,
        beside: AbstractAsyncContextManager[object] | None = None,
    ) -> Verdict:
        """A verdict, by the leased boxes where no other `verifier` is given. `NotAssessed` where there is none.

        A submission that is known to be `right` and ran out of time on a host that was too busy says nothing either.
        What goes on `beside` it begins once it is its turn.
        """
        async with self.turn(), beside or nullcontext():
            (verdict,) = await judge_all(verifier or self.bench.workshop.verifier, [(task or self.task, submission)])
        if verdict.status == "unscorable":
            raise NotAssessed(f"a judgement could not be made: {verdict.reason}", fault=True)
        if right and not verdict.passed:
            not_starved(verdict)
        return verdict

    async def judge_each(self, submissions: Sequence[Submission], verifier: Verifier | None = None) -> list[Verdict]:
        """Verdicts in order."""
        return await together(self.judge(each, verifier=verifier) for each in submissions)

    async def judge_wrong(self, submission: Submission, cpu_s: int | None = None) -> Verdict:
        """A verdict on a wrong variant, by all tests only where those of fail_to_pass pass."""
        judge = self.steady(cpu_s=cpu_s)
        verdict = await self.judge(submission, verifier=judge, task=self.required)
        if self.required is self.task or (verdict.status == "valid" and not verdict.passed):
            return verdict
        return await self.judge(submission, verifier=judge)


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of `work`, in order. The first failure ends the rest, and goes on as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [each.result() for each in running]


def not_starved(verdict: Verdict) -> None:
    """Raises `NotAssessed` where `verdict`, not the one that was to be expected, may be the busy host's doing."""
    if starved(verdict, os.getloadavg()[0] / (os.cpu_count() or 1)):
        raise NotAssessed("the host was too busy: tests ran out of time waiting for a processor", fault=True)


def brief(verdict: Verdict, most: int = 5) -> dict[str, Any]:
    """A verdict as evidence: what was decided, and the tests that did not pass."""
    wrong = [name for name, status in verdict.tests.items() if status != "passed"]
    said: dict[str, Any] = {"outcome": verdict.outcome or verdict.status, "reward": verdict.reward}
    if wrong:
        said["not_passed"] = wrong[:most] + ([f"and {len(wrong) - most} more"] if len(wrong) > most else [])
    if verdict.reason:
        said["reason"] = verdict.reason
    kinds = sorted({finding.kind for finding in verdict.findings})
    return said | ({"findings": kinds} if kinds else {})


def result_of(gate: Gate, found: Found, seconds: float) -> GateResult:
    """The record of what `gate` found."""
    return GateResult(gate.name, found.passed, found.reason, found.evidence, True, gate.version, round(seconds, 3))


def unassessed(gate: Gate, why: NotAssessed, seconds: float = 0.0) -> GateResult:
    """The record of a gate that could not be asked."""
    evidence = {**why.evidence, "fault": True} if why.fault else why.evidence
    return GateResult(gate.name, False, why.reason, evidence, False, gate.version, round(seconds, 3))
