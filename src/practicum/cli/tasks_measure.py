"""`practicum tasks measure`: how hard tasks are for reference policies.

Owns: the command `measure`.
Invariant: what was judged is kept, also when the command is interrupted, and only the rest is attempted. Exit code 3
where attempts could not be judged, 2 where tasks are at fault, as of `eval`, 1 where a directory is no task.
Must not know: how attempts are made, what difficulty is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import BAD_INPUT, INFRASTRUCTURE, NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit
from practicum.errors import PolicyError, PolicyRefused

if TYPE_CHECKING:
    from practicum.curation.difficulty import Measured, Opinion
    from practicum.curation.features import Features
    from practicum.pipeline.agents import AgentChoice
    from practicum.records.task import Task
    from practicum.records.trajectory import Trajectory
    from practicum.records.tree import Change

_GIVE_UP_AFTER = 8  # attempts without a single answer: the policy is not there
_POLICY_FAULTS = {PolicyError.__name__, PolicyRefused.__name__}
_SHOWN = 40  # tasks told one by one, for people; --json has them all


def measure(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    policy: Annotated[
        list[str], typer.Option(metavar="POLICY", help="As of `eval`: an address, a run folder, … Repeatable.")
    ],
    samples: Annotated[int, typer.Option(min=1, metavar="K", help="Judged attempts of each policy at each task.")] = 8,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Model to ask an http address for.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="VAR", help="Variable that holds the address's key.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Sampling temperature of a model.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Carry out the golds too, and tell which sizes go with difficulty.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Attempts at once; twice the processors where not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the difficulty of TASKSET: attempts of each POLICY, kept in its .practicum/difficulty.jsonl.

    Attempts that are there already are not made again. A task is easy, medium or hard where the 95 % interval of its
    success rate says so; the strongest policy counts.
    """
    from practicum.curation.difficulty import difficulty_path, opinion, read_difficulty
    from practicum.curation.writers import sole_writer
    from practicum.pipeline.agents import parse_agent
    from practicum.tasks.taskset import read_taskset

    choices = [parse_agent(p, model=model, api_key_env=api_key_env, temperature=temperature) for p in policy]
    tasks, refused = read_taskset(taskset)
    path = difficulty_path(taskset)
    with sole_writer(path.parent, "measure"):
        golds = asyncio.run(_measure(tasks, choices, path, samples, seed, concurrency, explain=explain))
    known = read_difficulty(path)
    rows = [(task, known.get(task.digest, []), opinion(known.get(task.digest, []), task.difficulty)) for task in tasks]
    document: dict[str, Any] = {
        "tasks": len(tasks),
        "strata": dict(Counter(each.stratum for _, _, each in rows)),
        "standing": dict(Counter(each.standing for _, _, each in rows)),
        "stated_off": sum(each.stated_off for _, _, each in rows),
        "policies": _totals([each for _, measured, _ in rows for each in measured]),
        "results": [_result(task, measured, each) for task, measured, each in rows],
        "refused": refused,
    }
    features = _features(tasks, golds)
    if features:
        for result, task in zip(document["results"], tasks, strict=True):
            result["features"] = features[task.id].to_json()
        document["explained"] = _explained(features, rows)
    emit(document, "\n".join(_lines(document, path)), as_json=as_json)
    # What stands in the file from earlier calls, by other policies, is not this call's doing.
    asked = _asked(known, tasks, choices)
    if any(each.judged + each.invalid < samples for each in asked):
        raise typer.Exit(INFRASTRUCTURE)
    if any(each.invalid for each in asked):
        raise typer.Exit(BAD_INPUT)
    if refused:
        raise typer.Exit(NEGATIVE)


async def _measure(
    tasks: Sequence[Task],
    choices: Sequence[AgentChoice],
    path: Path,
    samples: int,
    seed: int,
    concurrency: int | None,
    *,
    explain: bool,
) -> Mapping[str, Sequence[Change]] | None:
    """Attempts of all policies, one after the other; the golds' changes where they are wanted."""
    from practicum.curation import measuring
    from practicum.curation.difficulty import read_difficulty
    from practicum.pipeline.agents import identity, open_agent
    from practicum.pipeline.execute import open_workshop

    async with open_workshop(concurrency) as workshop:
        for choice in choices:
            async with open_agent(choice) as agent:
                name, version = identity(choice)
                reference = measuring.Reference(name, version, agent)
                left = measuring.missing(read_difficulty(path), reference, tasks, samples=samples, seed=seed)
                watch = _Watch(name, len(left))
                await measuring.measure(workshop, reference, tasks, path, samples=samples, seed=seed, on_done=watch)
        return await measuring.golds(workshop, tasks) if explain else None


class _Watch:
    """Shows how far one policy is, and gives up where it does not answer at all."""

    def __init__(self, name: str, total: int) -> None:
        self._progress = Progress(f"attempts of {name}", total)
        self._done = self._unanswered = 0

    def __call__(self, trajectory: Trajectory) -> None:
        self._done += 1
        fault = trajectory.fault
        if fault is not None and fault.kind in _POLICY_FAULTS and not trajectory.turns:
            self._unanswered += 1
            if self._unanswered == self._done == _GIVE_UP_AFTER:
                raise PolicyError(
                    f"none of the first {self._done} attempts got an answer: {fault.message}",
                    fix="see that the policy is running, and that its address, model and key are right",
                )
        self._progress.advance()


def _asked(
    known: Mapping[str, Sequence[Measured]], tasks: Sequence[Task], choices: Sequence[AgentChoice]
) -> list[Measured]:
    """What is known of `tasks` by the policies of this call; nothing judged where a policy has no row of a task."""
    from practicum.curation.difficulty import Measured
    from practicum.pipeline.agents import identity

    found: list[Measured] = []
    for name, version in map(identity, choices):
        for task in tasks:
            rows = [each for each in known.get(task.digest, ()) if (each.policy, each.version) == (name, version)]
            # The same policy may have been measured under other budgets before; the fullest row is this call's.
            found.append(max(rows, key=lambda each: each.judged, default=Measured(task.digest, task.id, name, version)))
    return found


def _totals(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """What each policy came to over all tasks, with an interval that knows that attempts at one task are alike."""
    from practicum.evaluation.statistics import clustered_wilson

    found: list[dict[str, Any]] = []
    for name, version in sorted({(each.policy, each.version) for each in measured}):
        own = [each for each in measured if (each.policy, each.version) == (name, version)]
        judged, passed = sum(each.judged for each in own), sum(each.passed for each in own)
        low, high = clustered_wilson([(each.passed, each.judged) for each in own])
        total = {"policy": name, "version": version, "judged": judged, "passed": passed, "low": low, "high": high}
        more = {kind: sum(getattr(each, kind) for each in own) for kind in ("unscorable", "invalid")}
        found.append(total | {"rate": passed / judged if judged else None} | more)
    return found


def _result(task: Task, measured: Sequence[Measured], opinion: Opinion) -> dict[str, Any]:
    from practicum.curation.difficulty import stratum

    return {
        "task": task.id,
        "digest": task.digest,
        "stratum": opinion.stratum,
        "standing": opinion.standing,
        "stated": opinion.stated,
        "stated_off": opinion.stated_off,
        "reason": opinion.reason,
        "measured": [
            {
                "policy": each.policy,
                "version": each.version,
                "judged": each.judged,
                "passed": each.passed,
                "rate": each.rate,
                "low": each.interval[0],
                "high": each.interval[1],
                "pass_at": {str(k): each.pass_at(k) for k in _powers(each.judged)},
                "stratum": stratum(each),
                "unscorable": each.unscorable,
                "invalid": each.invalid,
                "harness": dict(each.harness),
                "date": each.date,
            }
            for each in measured
        ],
    }


def _powers(most: int) -> list[int]:
    return [2**n for n in range(most.bit_length()) if 2**n <= most]


def _features(tasks: Sequence[Task], golds: Mapping[str, Sequence[Change]] | None) -> dict[str, Features]:
    from practicum.curation.features import features_of

    return {} if golds is None else {task.id: features_of(task, golds.get(task.id)) for task in tasks}


def _explained(
    features: Mapping[str, Features], rows: Sequence[tuple[Task, Sequence[Measured], Opinion]]
) -> dict[str, float]:
    from practicum.curation.difficulty import references
    from practicum.curation.features import explain

    rated = [(task, references(measured)) for task, measured, _ in rows]
    return explain((features[task.id], best[0].rate or 0.0) for task, best in rated if best)


def _lines(document: Mapping[str, Any], path: Path) -> list[str]:
    from practicum.curation.difficulty import NO_REFERENCE
    from practicum.pipeline.wording import visible

    strata = ", ".join(f"{count} {name}" for name, count in sorted(document["strata"].items()))
    lines = [f"{document['tasks']} tasks measured: {strata}; kept in {path}"]
    for each in document["policies"]:
        lines.append(
            f"  {each['policy']} ({each['version']}): {each['passed']} of {each['judged']} attempts passed "
            f"(95 % interval {each['low']:.1%} to {each['high']:.1%}); not counted: {each['unscorable']} unscorable, "
            f"{each['invalid']} invalid"
        )
    results = document["results"]
    for result in results[:_SHOWN]:
        lines.append(f"  {result['stratum']:<13}{result['task']}: {result['reason']}")
    if len(results) > _SHOWN:
        lines.append(f"  … and {len(results) - _SHOWN} more: --json has them all")
    if results and all(each["policy"] in NO_REFERENCE for each in document["policies"]):
        lines.append(
            "A reference policy is one that has to find the work out itself: a model at an address, a run folder, a "
            f"script. {' and '.join(sorted(NO_REFERENCE))} do not count: they know the answer, or do nothing."
        )
    lines += [visible(f"  ✗ {name}: {why}") for name, why in document["refused"].items()]
    for name, said in (("park", "no attempt passed: to park"), ("retire", "every attempt passed: to retire")):
        found = [result["task"] for result in results if result["standing"] == name]
        if found:
            lines.append(f"{said}: {', '.join(found[:10])}{' …' if len(found) > 10 else ''}")
    if document["stated_off"]:
        lines.append(f"{document['stated_off']} stated difficulties are off by more than a quarter")
    for name, rho in sorted(document.get("explained", {}).items(), key=lambda item: -abs(item[1])):
        lines.append(f"  success goes with {name:<18}{rho:+.2f} (rank correlation)")
    return lines
