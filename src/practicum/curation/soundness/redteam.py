"""The audit of the verifier: attacks through whole attempts, right and wrong solutions straight to the judge.

Owns: `Scope`, `audit`.
Invariant: an attack goes the way of `rollout --agent script:FILE` and no other; whatever was tried is reported once.
Must not know: what attacks do, who prints the outcome.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from practicum.curation.soundness.redteam_report import Audit, Role, TaskAudit, Trial
from practicum.curation.soundness.scripts import run_scripts
from practicum.curation.soundness.solutions import sources_of, with_text
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.tree import unified_diff
from practicum.records.verdict import Submission
from practicum.rollouts.agents import oracle_agent
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.workshop import Workshop, run_specs, specs_for
from practicum.verification.redteam.catalogue import Attack, Catalogue
from practicum.verification.redteam.equivalents import equivalents_of
from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.redteam.render import Target, control_script, find_target, script_of, tried_on, why_not
from practicum.verification.redteam.variants import Source, Variant
from practicum.verification.submission import judged_files

OnDone = Callable[[int, int], None]
"""Called with how many trials are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to try: the attacks of `catalogue`; at most so many `mutants` and `equivalents` of each task's gold."""

    catalogue: Catalogue
    mutants: int = 16
    equivalents: int = 12
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Solution:
    """A right or wrong solution to judge."""

    role: Role
    name: str
    submission: Submission
    shown: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """One task's trials to come. `gold` is the oracle's submission where it passed."""

    task: Task
    target: Target
    gold: Submission | None
    problem: str | None
    scripts: Sequence[tuple[Attack, Role, str]]
    variants: Sequence[_Solution]
    left_out: dict[str, str]


async def audit(workshop: Workshop, tasks: Sequence[Task], scope: Scope, *, on_done: OnDone | None = None) -> Audit:
    """Try everything of `scope` on each of `tasks`. Raises data errors of a task, like any attempt does."""
    start = time.monotonic()
    oracle = oracle_agent()
    solved = [task for task in tasks if task.solution]
    golds = await run_specs(workshop, oracle, specs_for(solved, oracle, seed=scope.seed))
    by_id = {gold.task_id: gold for gold in golds}
    plans = [_plan(task, by_id.get(task.id), scope) for task in tasks]
    total = sum(len(plan.scripts) + len(plan.variants) for plan in plans)
    done = 0

    def count(_: object = None) -> None:
        nonlocal done
        done += 1
        if on_done is not None:
            on_done(done, total)

    attempts = await _attempt_scripts(workshop, plans, scope, count)
    judged = await _judge_variants(workshop, plans, count)
    results = [
        TaskAudit(plan.task, [*attempts[plan.task.id], *judged[plan.task.id]], plan.problem, plan.left_out)
        for plan in plans
    ]
    version = workshop.verifier.version
    return Audit(results, version, scope.seed, time.monotonic() - start, scope.catalogue.without)


def _plan(task: Task, attempt: Trajectory | None, scope: Scope) -> _Plan:
    gold, problem = None, None
    if attempt is None:
        problem = "there is no solution/solve.sh"
    elif attempt.fault is not None or attempt.verdict is None or attempt.submission is None:
        problem = f"the gold could not be judged: {attempt.fault.message if attempt.fault else 'no verdict'}"
    elif attempt.verdict.status != "valid":
        problem = f"the gold has no valid verdict: {attempt.verdict.reason}"
    else:
        gold = attempt.submission
        problem = None if attempt.verdict.passed else f"the gold does not pass: {attempt.verdict.outcome}"
    target = find_target(task, judged_files(task, gold) if gold else None)
    scripts: list[tuple[Attack, Role, str]] = []
    left_out: dict[str, str] = {}
    for attack in scope.catalogue.attacks:
        reason = why_not(attack, task, target)
        if reason is not None:
            left_out[attack.id] = reason
            continue
        scripts.append((attack, "attack", script_of(attack, task, target)))
        if problem is None and not attack.residue:
            scripts.append((attack, "control", control_script(attack, task, target)))
    variants = _variants(task, gold, scope) if gold is not None else []
    if problem is not None:  # variants of a gold that fails say nothing; that it fails does
        variants = [variant for variant in variants if variant.submission is gold]
    return _Plan(task, target, gold, problem, scripts, variants, left_out)


def _variants(task: Task, gold: Submission, scope: Scope) -> list[_Solution]:
    """The gold itself and its equivalents; the untouched task and mutants of the gold."""
    kinds: list[tuple[Role, Callable[[Source, int, str], list[Variant]], int]] = [
        ("equivalent", equivalents_of, scope.equivalents),
        ("mutant", mutants_of, scope.mutants),
    ]
    found: list[_Solution] = []
    if scope.equivalents:
        found.append(_Solution("equivalent", "the gold itself", gold))
    if scope.mutants:
        found.append(_Solution("mutant", "the untouched task", Submission(())))
    sources = sources_of(task, gold)
    for number, (change, source) in enumerate(sources):
        for role, make, most in kinds:
            share = (most + len(sources) - 1 - number) // len(sources)
            for variant in make(source, share, f"{scope.seed}-{task.id}-{change.path}"):
                name = f"{change.path}:{variant.line}" if variant.line else change.path
                submission = with_text(gold, change, variant.text)
                found.append(_Solution(role, f"{name}: {variant.name}", submission, variant.shown(source)))
    return found


async def _attempt_scripts(
    workshop: Workshop, plans: Sequence[_Plan], scope: Scope, count: Callable[[object], None]
) -> dict[str, list[Trial]]:
    """Attacks and controls, each by an attempt of its own."""
    specs: list[AttemptSpec] = []
    wanted: list[tuple[_Plan, Attack, Role, str]] = []
    for plan in plans:
        for attack, role, script in plan.scripts:
            wanted.append((plan, attack, role, script))
            specs.append(
                AttemptSpec(
                    tried_on(attack, plan.task),
                    f"{plan.task.id}:{attack.id}",
                    index=int(role == "control"),
                    seed=scope.seed,
                    with_solution=role == "control",
                )
            )
    scripts = [(spec, script) for spec, (_, _, _, script) in zip(specs, wanted, strict=True)]
    attempts = await run_scripts(workshop, scripts, on_done=count)
    trials: dict[str, list[Trial]] = {plan.task.id: [] for plan in plans}
    for attempt, (plan, attack, role, script) in zip(attempts, wanted, strict=True):
        fault = attempt.fault.message if attempt.fault else None
        expected = attack.expected(plan.task.verification.runner)
        trials[plan.task.id].append(
            Trial(plan.task.id, role, attack.id, script, attempt.verdict, fault, attack.kind, expected)
        )
    return trials


async def _judge_variants(
    workshop: Workshop, plans: Sequence[_Plan], count: Callable[[object], None]
) -> dict[str, list[Trial]]:
    """Right and wrong solutions, as many at a time as the workshop takes."""
    permits = asyncio.Semaphore(workshop.max_concurrent)

    async def one(task: Task, solution: _Solution) -> Trial:
        async with permits:
            verdict = await workshop.verifier.verify(task, solution.submission)
        count(verdict)
        work = unified_diff(task.files, solution.submission.changes)
        return Trial(task.id, solution.role, solution.name, work, verdict, shown=solution.shown)

    async with asyncio.TaskGroup() as group:
        running = {
            plan.task.id: [group.create_task(one(plan.task, solution)) for solution in plan.variants] for plan in plans
        }
    return {task_id: [task.result() for task in tasks] for task_id, tasks in running.items()}
