"""Measuring how often verdicts are wrong: known submissions judged again and again under changing conditions.

Owns: `Condition`, `conditions`, `verifier_under`, `slowed`, `busy`, `measure`, `Submissions`, the file `noise.json`.
Invariant: what was varied is named, and so is what could not be; a verdict that decided nothing is counted apart, as
neither right nor wrong.
Must not know: how rates follow from counts, who trains on them.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from practicum.curation.soundness.clock import OtherDay
from practicum.errors import ConfigError, VerifierError
from practicum.records.task import Limits, Task
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.agents import oracle_agent
from practicum.rollouts.workshop import Workshop, run_specs, specs_for
from practicum.sandboxes.contract import BoxSpec, SandboxProvider
from practicum.trajectories.durable import write_atomic
from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.noise import Evidence, NoiseEstimate, estimate, read_estimate
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.judging import judge_all
from practicum.verification.submission import submission_from_patch

SCHEMA = 1
AXES = (
    "order and fresh cases (the judge's seed)",
    "PYTHONHASHSEED",
    "time zone, and so the local date (TZ, 26 hours apart)",
    "locale (LC_ALL)",
    "load (half a processor; where boxes cannot limit it, a busy process in a box beside)",
    "the time of day, by days and years, as tests of pytest and unittest see it",
)
NOT_VARIED = ("the time of day for runners other than pytest and unittest: their boxes show the host's",)
_SHIFTS_S = (0, 191 * 86400 + 25380, -3 * 86400 - 40000, 5 * 365 * 86400 + 7000)
_ZONES = ("UTC0", "EAST-14", "WEST+12", "HALF-5:30")  # POSIX: needs no table of zones in the layer
_LOCALES = ("C.UTF-8", "C", "POSIX")
_BUSY_S = 3600.0


@dataclass(frozen=True, slots=True)
class Condition:
    """One way in which everything is judged once. `clock_s` is by how many seconds the time of day is moved."""

    seed: int
    env: Mapping[str, str]
    load: bool
    clock_s: int = 0


@dataclass(frozen=True, slots=True)
class Submissions:
    """Submissions to one task whose truth is known. Doing nothing is always among the wrong ones."""

    right: tuple[Submission, ...] = ()
    wrong: tuple[Submission, ...] = ()


def conditions(repeat: int, *, seed: int = 0) -> list[Condition]:
    """`repeat` conditions; the first is the judge's own, and the others differ from it on every axis. Pure."""
    rng = random.Random(f"conditions-{seed}")
    made = [Condition(seed, {}, False)]
    for number in range(1, repeat):
        env = {
            "PYTHONHASHSEED": str(rng.randrange(1, 2**32)),
            "TZ": _ZONES[number % len(_ZONES)],
            "LC_ALL": _LOCALES[number % len(_LOCALES)],
        }
        made.append(Condition(seed + number, env, number % 2 == 1, _SHIFTS_S[number % len(_SHIFTS_S)]))
    return made


def verifier_under(judge: ExecutionVerifier, condition: Condition) -> ExecutionVerifier:
    """`judge` under `condition`, but for the load, which is `slowed` or `busy`."""
    shift_s = condition.clock_s
    return judge.under(
        condition.env, seed=condition.seed, boxes=(lambda own: OtherDay(own, shift_s)) if shift_s else None
    )


async def measure(
    provider: SandboxProvider,
    tasks: Sequence[Task],
    *,
    repeat: int,
    further: Mapping[str, Submissions] | None = None,
    seed: int = 0,
    concurrent: int = 2,
    on_done: Callable[[Verdict], None] | None = None,
) -> list[NoiseEstimate]:
    """An estimate for each task, from its gold, its untouched state and `further` submissions by task id.

    A task without a gold has nothing that shows how often right work is rejected, and its bounds say so. Raises
    `VerifierError` where a gold could not be carried out of its box.
    """
    golds = await _golds(provider, tasks, concurrent)
    known: list[tuple[Task, Submission, bool]] = []
    for task in tasks:
        more = (further or {}).get(task.id, Submissions())
        known += [(task, each, True) for each in dict.fromkeys((*golds.get(task.id, ()), *more.right))]
        known += [(task, each, False) for each in dict.fromkeys((Submission(()), *more.wrong))]
    judge = ExecutionVerifier(provider, max_concurrent=concurrent)
    rounds: list[list[Verdict]] = []
    for condition in conditions(repeat, seed=seed):
        verifier = verifier_under(judge, condition)
        less = condition.load and slows(provider)
        work = [(slowed(task) if less else task, each) for task, each, _ in known]
        async with busy(provider) if condition.load and not less else AsyncExitStack():
            rounds.append(await judge_all(verifier, work, on_done=on_done))
    verdicts = list(zip(known, zip(*rounds, strict=True), strict=True))
    return [
        estimate(task.id, task.digest, count([(right, seen) for (t, _, right), seen in verdicts if t is task]))
        for task in tasks
    ]


def count(judged: Iterable[tuple[bool, Sequence[Verdict]]]) -> Evidence:
    """Evidence from verdicts on submissions of known truth, one sequence for each submission. Pure."""
    totals = {True: Rate(), False: Rate()}
    distinct = {True: Rate(), False: Rate()}
    undecided = 0
    for right, verdicts in judged:
        decided = [verdict for verdict in verdicts if verdict.status == "valid"]
        undecided += len(verdicts) - len(decided)
        errors = sum(verdict.passed != right for verdict in decided)
        totals[right] += Rate(errors, len(decided))
        distinct[right] += Rate(int(errors > 0), int(bool(decided)))
    return Evidence(totals[False], totals[True], distinct[False], distinct[True], undecided)


async def _golds(provider: SandboxProvider, tasks: Sequence[Task], concurrent: int) -> dict[str, tuple[Submission]]:
    agent = oracle_agent()
    specs = [replace(spec, judged=False) for spec in specs_for([task for task in tasks if task.solution], agent)]
    workshop = Workshop(provider, ExecutionVerifier(provider), concurrent)
    golds: dict[str, tuple[Submission]] = {}
    for trajectory in await run_specs(workshop, agent, specs):
        if trajectory.submission is None or trajectory.fault is not None:
            said = trajectory.fault.message if trajectory.fault else "it submitted nothing"
            raise VerifierError(f"task {trajectory.task_id}: its gold could not be carried out: {said}")
        golds[trajectory.task_id] = (trajectory.submission,)
    return golds


def slows(provider: SandboxProvider) -> bool:
    """Whether `slowed` has a meaning there."""
    return "cpu-limit" in provider.capabilities


def slowed(task: Task) -> Task:
    """`task` with half as much of a processor: what a busy host leaves of one, at no one's cost."""
    return replace(task, limits=replace(task.limits, cpus=task.limits.cpus / 2))


@asynccontextmanager
async def busy(provider: SandboxProvider) -> AsyncIterator[None]:
    """A process that uses one processor all the time, in a box with limits of its own, until the block is left."""
    limits = Limits(cpus=float(max(1, (os.cpu_count() or 1) // 2)), command_s=_BUSY_S)
    async with provider.create(BoxSpec(f"load-{uuid.uuid4().hex[:12]}", limits=limits)) as box:
        working = asyncio.create_task(box.run(["python3", "-S", "-c", "while True: pass"], timeout_s=_BUSY_S))
        try:
            yield
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def read_submissions(folder: Path, tasks: Sequence[Task]) -> dict[str, Submissions]:
    """Further submissions: `<task id>/right/*.patch` and `<task id>/wrong/*.patch` below `folder`, unified diffs.

    Raises `ConfigError` for a folder that belongs to no task, and `SubmissionError` for a patch that does not apply.
    """
    by_id = {task.id: task for task in tasks}
    found: dict[str, Submissions] = {}
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        task = by_id.get(place.name)
        if task is None:
            raise ConfigError(f"{place}: there is no task {place.name!r}", fix="name each folder like its task")
        found[task.id] = Submissions(*(_patches(task, place / kind) for kind in ("right", "wrong")))
    return found


def _patches(task: Task, folder: Path) -> tuple[Submission, ...]:
    return tuple(submission_from_patch(task, path.read_text("utf-8")) for path in sorted(folder.glob("*.patch")))


def write_noise(path: Path, estimates: Iterable[NoiseEstimate], **about: Any) -> None:
    """Write estimates by task digest, with what else is to be known `about` them. Raises `StoreError`."""
    document = {"schema": SCHEMA, **about, "tasks": {each.digest: each.to_json() for each in estimates}}
    write_atomic(path, json.dumps(document, indent=1).encode())


def read_noise(path: Path) -> dict[str, NoiseEstimate]:
    """Estimates by task digest. Raises `ConfigError` where `path` is no such file."""
    fix = "write it with: practicum verifier noise TASKSET"
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ConfigError(f"{path} has schema {document['schema']}, and {SCHEMA} is read here", fix=fix)
        return {str(digest): read_estimate(each) for digest, each in document["tasks"].items()}
    except OSError as error:
        raise ConfigError(f"cannot read error rates from {path}: {error.strerror or error}", fix=fix) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is no file of error rates: {error!r}", fix=fix) from error
