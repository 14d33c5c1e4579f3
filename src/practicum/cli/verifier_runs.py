"""`practicum verifier canary`, `noise` and `rescore`: the judge watched, measured, repeated.

Owns: these commands.
Invariant: where the judge differs from what is known or was said before, or is too noisy, the exit code is 1, and
3 where something could not be judged.
Must not know: how anything is judged.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import INFRASTRUCTURE, NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.pipeline.inspection import Inspection
    from practicum.records.task import Task
    from practicum.verification.calibration.noise import NoiseEstimate

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
TasksetArgument = Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")]


def canary(
    where: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN|TASKSET]", help="Whose tasks to look at too; its own canaries always are."),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="How many of the tasks to judge; all where not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Chooses which, with --tasks.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Judge submissions whose verdict is known, and say where the judge gives another."""
    from practicum.pipeline.inspection import inspect

    result = asyncio.run(inspect(where, most=tasks, seed=seed, progress=lambda total: Progress("verdicts", total)))
    emit(result.to_json(), _canary_text(result), as_json=as_json)
    if result.unscorable:
        raise typer.Exit(INFRASTRUCTURE)
    if result.deviations:
        raise typer.Exit(NEGATIVE)


def _canary_text(result: Inspection) -> str:
    from practicum.pipeline.wording import visible

    lines = [f"{result.judged} canaries judged by {result.verifier_version}, {result.tasks} tasks read again"]
    lines += [f"  ✗ {each.name}: {each.said}" for each in result.deviations]
    return visible("\n".join(lines if result.deviations else [f"{lines[0]}: all as they must be"]))


def noise(
    taskset: TasksetArgument,
    repeat: Annotated[int, typer.Option(min=1, metavar="K", help="Judge each submission K times.")] = 20,
    submissions: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="More of known truth: DIR/<task>/right/*.patch and DIR/<task>/wrong/*.patch."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the rates; noise.json with the tasks.")
    ] = None,
    min_youden: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Tasks whose lower bound of J is not above this are too noisy.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Measure how often verdicts are wrong: gold and untouched state of each task, judged under changing conditions."""
    from practicum.curation.soundness.noise import AXES, NOT_VARIED, write_noise
    from practicum.tasks.harbor import is_task
    from practicum.tasks.taskset import load_taskset
    from practicum.verification.calibration.noise import use_problem

    tasks = load_taskset(taskset)
    estimates = asyncio.run(_measure(tasks, repeat, submissions, seed))
    place = out or (taskset.parent if is_task(taskset) else taskset) / "noise.json"
    varied = list(AXES) if repeat > 1 else []
    about = {"repeat": repeat, "seed": seed, "varied": varied, "not_varied": list(NOT_VARIED)}
    write_noise(place, estimates, **about)
    problems = {each.task: use_problem(each, min_youden=min_youden) for each in estimates}
    refused = {task: problem for task, problem in problems.items() if problem is not None}
    document: dict[str, Any] = {**about, "file": str(place), "min_youden": min_youden, "refused": refused}
    document["tasks"] = [each.to_json() for each in estimates]
    emit(document, _noise_text(estimates, refused, about, place), as_json=as_json)
    if refused:
        raise typer.Exit(NEGATIVE)


async def _measure(tasks: list[Task], repeat: int, submissions: Path | None, seed: int) -> list[NoiseEstimate]:
    from practicum.curation.soundness.noise import Submissions, measure, read_submissions
    from practicum.pipeline.execute import open_boxes

    further = read_submissions(submissions, tasks) if submissions is not None else {}
    known = sum(2 + len(each.right) + len(each.wrong) for each in (further.get(t.id, Submissions()) for t in tasks))
    progress = Progress("verdicts, at most", repeat * known)
    async with open_boxes() as provider:
        return await measure(
            provider, tasks, repeat=repeat, further=further, seed=seed, on_done=lambda _: progress.advance()
        )


def _noise_text(estimates: list[NoiseEstimate], refused: dict[str, str], about: dict[str, Any], place: Path) -> str:
    lines = [f"{'task':<32} {'false positives':>24} {'false negatives':>24} {'J ≥':>7}"]
    for each in estimates:
        shown = [
            f"{rate.errors}/{rate.trials}, ≤ {bound.high:.1%}"
            for rate, bound in (
                (each.evidence.wrong, each.false_positive),
                (each.evidence.right, each.false_negative),
            )
        ]
        undecided = f"  {each.evidence.undecided} undecided" if each.evidence.undecided else ""
        lines.append(f"{each.task:<32} {shown[0]:>24} {shown[1]:>24} {each.youden_low:>7.2f}{undecided}")
    lines += [f"  ✗ {task}: {problem}" for task, problem in refused.items()]
    lines.append(f"varied: {'; '.join(about['varied']) or 'nothing (one judgement each)'}")
    lines.append(f"not varied: {'; '.join(about['not_varied'])}")
    lines.append("bounds hold for these submissions; attempts that differ from them may be misjudged more often")
    lines.append(f"wrote {place}; train by it with: --set reward.noise={place}")
    return "\n".join(lines)


def rescore(run: RunArgument, as_json: JsonOption = False) -> None:
    """Judge the stored submissions of RUN again, and say where the present verifier decides otherwise."""
    report = asyncio.run(_rescore(run))
    emit(report, _rescore_text(report, run), as_json=as_json)
    if report["unscorable"]:
        raise typer.Exit(INFRASTRUCTURE)
    if report["changed"]:
        raise typer.Exit(NEGATIVE)


async def _rescore(run: Path) -> dict[str, Any]:
    from practicum.pipeline.judging import open_judge
    from practicum.pipeline.rescoring import judgeable, rescore
    from practicum.pipeline.runfolder import RunFolder
    from practicum.tasks.taskset import load_taskset
    from practicum.verification.judging import judge_all

    with RunFolder.open(run, write=True) as folder:
        config = folder.config
        tasks = {task.id: task for task in load_taskset(folder.path / "tasks")}
        progress = Progress("verdicts", judgeable(folder, tasks))
        async with open_judge(seed=config.seed, concurrent=config.sandbox.verify_concurrent) as bench:
            return await rescore(folder, tasks, bench.verifier, judge_all, on_done=lambda _: progress.advance())


def _rescore_text(report: dict[str, Any], run: Path) -> str:
    from practicum.pipeline.wording import visible

    earlier = ", ".join(report["previous_versions"]) or "nobody"
    lines = [f"{report['judged']} submissions judged by {report['verifier_version']} (before: {earlier})"]
    lines += [f"  {count} not judged again: {reason}" for reason, count in sorted(report["not_judged"].items())]
    for title, key, name in (("task", "tasks", "task"), ("kind of finding", "findings", "kind")):
        rows = [row for row in report[key] if row["changed"]]
        if rows:
            lines.append(f"{title:<32} {'judged':>7} {'changed':>8} {'raised':>7} {'lowered':>8} {'mean reward':>18}")
        for row in rows:
            before, after = row["reward_before"], row["reward_after"]
            means = "–" if before is None else f"{before:+.3f} → {after:+.3f}"
            counts = f"{row['judged']:>7} {row['changed']:>8} {row['raised']:>7} {row['lowered']:>8}"
            lines.append(f"{row[name]:<32} {counts} {means:>18}")
    lines.append(f"{report['changed']} decisions differ; the new verdicts are in {report['folder']}")
    if any(each["phase"] == "rl" for each in report["changes"]):
        lines.append(f"train on them with: practicum train --resume {run} --rescored")
    return visible("\n".join(lines))
