"""One training run, from its configuration to the report.

Owns: the order of the stages, resuming, the summary.
Invariant: a run that trained nothing does not end well; an interrupted one can be continued from its last commit.
Must not know: how a stage works.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from practicum.config import RunConfig
from practicum.errors import CanaryDeviated, NothingLearned
from practicum.evaluation.evaluate import EvalResult, compare, summarise
from practicum.pipeline.canaries import CanaryGuard, forget_suspect, suspect
from practicum.pipeline.console import RunConsole
from practicum.pipeline.learn import evaluate, learn, publish, watch
from practicum.pipeline.orders import Closed, WorkerSetup
from practicum.pipeline.prepare import (
    ask_admission,
    ask_demonstrations,
    complete,
    hear_admission,
    lay_tasks,
    read_tasks,
    train_tokenizer,
    warm_start,
)
from practicum.pipeline.report import write_report
from practicum.pipeline.rescoring import begin_rescored, finish_laying, open_replay
from practicum.pipeline.rewards import Rewards, open_rewards
from practicum.pipeline.rollout_process import RolloutProcess
from practicum.pipeline.run import Run, RunState, last_state, split_of
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.signals import check_judge
from practicum.policies.local.model import Decoder, ModelShape, use_threads
from practicum.policies.local.tokenizer import Tokenizer
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.training.trainer import Trainer
from practicum.weights.store import VersionStore

TASKS_FOLDER = "tasks"


def train(
    config: RunConfig, *, root: Path, resume: Path | None, console: RunConsole, rescored: bool = False
) -> dict[str, Any]:
    """Run `config` in a new folder under `root`, or continue the run in `resume`; returns the summary.

    With `rescored`, the run in `resume` goes back to its first version and on with its re-scored rewards.
    Raises `PracticumError` subclasses, and `KeyboardInterrupt` with the line that continues the run.
    """
    started = time.perf_counter()
    use_threads(1)
    folder = RunFolder.create(root, config) if resume is None else RunFolder.open(resume, write=True)
    with folder:
        console.note(f"run folder: {folder.path}")
        try:
            if rescored:
                begin_rescored(folder)
            return _run(folder, config, console, resumed=resume is not None, started=started)
        except CanaryDeviated:
            write_report(folder)
            console.note(f"the run stopped here; see {folder.report_path}")
            raise
        except KeyboardInterrupt:
            folder.audit("interrupted")
            raise KeyboardInterrupt(f"stopped cleanly; continue with: practicum train --resume {folder.path}") from None


def _run(folder: RunFolder, config: RunConfig, console: RunConsole, *, resumed: bool, started: float) -> dict[str, Any]:
    state = _where_to_start(folder, config, resumed=resumed)
    tasks_folder = folder.path / TASKS_FOLDER
    if not tasks_folder.is_dir():
        console.phase("Tasks")
        lay_tasks(config.tasks, tasks_folder)
    tasks = read_tasks(tasks_folder)
    if (note := check_judge(config.judge, tasks)) is not None:
        console.note(note)
    rewards = open_rewards(folder, config.reward)
    tokenizer = train_tokenizer(tasks)
    setup = WorkerSetup(
        run_id=folder.id,
        seed=config.seed,
        sandbox=config.sandbox,
        rollout=config.rollout,
        correct_rate=config.sft.correct_rate,
        tokenizer=tokenizer.to_json(),
        checkpoints=folder.checkpoints,
        snapshots=folder.path / "snapshots",
        judge=config.judge,
    )
    process = RolloutProcess(setup, on_progress=lambda p: console.doing(f"{p.order}: {p.done}/{p.total}"))
    with process:
        run = Run(folder, config, console, process, tokenizer, {}, open_replay(folder), state or RunState(trusted=-1))
        guard = CanaryGuard(run, tasks_folder)
        trainer = _trainer(config, tokenizer)
        if state is None:
            guard.check("start", update=-1)
            _begin(run, trainer, tasks, rewards)
            publish(run, trainer, 0)
            evaluate(run, "test", 0, config.evaluation.test_samples)
            watch(run)
            guard.begin()
            guard.check("baseline", update=0)
            run.commit()
        else:
            guard.begin()
            guard.check(f"resumed-{state.version}", update=state.version)
            run.tasks = _admitted(folder, tasks)
            _take_back(trainer, run.versions, state.version)
        updates_before = run.state.version
        learn(run, trainer, guard, rewards)
        if run.state.version == updates_before and resumed:
            raise NothingLearned(
                f"{folder.path} has made all its {config.rl.updates} updates",
                fix="start a new run with more: --set rl.updates=N",
            )
        if run.state.best_version != 0:
            evaluate(run, "test", run.state.best_version, config.evaluation.test_samples, when=run.state.version)
        guard.check("end", update=run.state.version)
        closed = process.stop()
    run.state.boxes_leaked += closed.leaked
    return _finish(run, closed, time.perf_counter() - started, {task.id: task for task in tasks})


def _begin(run: Run, trainer: Trainer, tasks: Sequence[Task], rewards: Rewards) -> None:
    """Admission and warm start. The held-out tasks are vetted while the first steps are made."""
    run.console.phase("Admission: the gold must pass, doing nothing must fail")
    training = rewards.fit(split_of(tasks, "train"), run.show)
    held_out = [task for task in tasks if task.split != "train"]
    with run.meter.span("admission"):
        ask_admission(run, "train", training)
        run.tasks = complete({"train": hear_admission(run, "train", training)})
    orders = ask_demonstrations(run)
    ask_admission(run, "held-out", held_out)
    warm_start(run, trainer, orders)
    with run.meter.span("admission"):
        admitted = hear_admission(run, "held-out", held_out)
        run.tasks |= complete({split: split_of(admitted, split) for split in ("validation", "test")})


def _where_to_start(folder: RunFolder, config: RunConfig, *, resumed: bool) -> RunState | None:
    """The state to continue from; what was recorded after it is set apart. None to start from the beginning."""
    if not resumed:
        return None
    finish_laying(folder)
    if folder.summary() is not None:
        raise NothingLearned(
            f"{folder.path} is finished: {config.rl.updates} updates were made",
            fix="start a new run with more: --set rl.updates=N",
        )
    versions = VersionStore(folder.checkpoints)
    doubt = suspect(folder)
    if doubt is not None:  # what followed the last good look does not train, and neither do weights that saw it
        versions.prune([version for version in versions.versions() if version <= doubt["trusted"]])
    state = last_state(versions)
    folder.truncate_after(state.version if state else -1)
    if doubt is not None:
        folder.audit("suspect_set_apart", trusted=doubt["trusted"], batches=doubt["batches"])
        forget_suspect(folder)
    folder.audit("resumed", version=state.version if state else None)
    return state


def _trainer(config: RunConfig, tokenizer: Tokenizer) -> Trainer:
    policy = config.policy
    shape = ModelShape(tokenizer.size, policy.layers, policy.width, policy.heads, policy.context)
    return Trainer(Decoder(shape, seed=config.seed), grad_clip=config.rl.grad_clip)


def _take_back(trainer: Trainer, versions: VersionStore, version: int) -> None:
    trainer.model.load_state_dict(versions.fetch(version))
    trainer.load(versions.path(version))


def _admitted(folder: RunFolder, tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Tasks by split that the run admitted when it started."""
    admitted = {row["task"] for row in folder.metrics() if row["kind"] == "admission" and row["admitted"]}
    splits: dict[str, list[Task]] = {"train": [], "validation": [], "test": []}
    for task in tasks:
        if task.id in admitted:
            splits[task.split].append(task)
    return complete(splits)


def _held_out(folder: RunFolder, *, first: bool) -> list[Trajectory]:
    """The attempts at the held-out tasks before (`first`) or after learning."""
    batches = sorted(folder.store.batches("test"), key=lambda batch: batch.update)
    return folder.store.load(batches[0 if first else -1])


def _finish(run: Run, closed: Closed, wall_s: float, tasks: dict[str, Task]) -> dict[str, Any]:
    folder, state = run.folder, run.state
    with run.meter.span("report"):
        before, after = _held_out(folder, first=True), _held_out(folder, first=False)
        difference = compare(before, after)
        rates = summarise(before), summarise(after)
    for stage, seconds in run.meter.seconds.items():
        state.seconds[stage] = state.seconds.get(stage, 0.0) + seconds
    total = max(wall_s, sum(state.seconds.values()))
    state.seconds["other"] = total - sum(state.seconds.values())
    summary: dict[str, Any] = {
        "run_dir": str(folder.path),
        "seed": run.config.seed,
        "wall_s": round(total, 1),
        "held_out": {
            "n": rates[1].samples,
            "before": _rate(rates[0]),
            "after": _rate(rates[1]),
            "difference": {"mean": difference.difference, "low": difference.low, "high": difference.high},
            "p_value": difference.p_value,
        },
        "updates": state.version,
        "chosen_update": state.best_version,
        "episodes": state.episodes,
        "boxes": {"created": state.boxes_created, "leaked": state.boxes_leaked},
        "faults": dict(state.faults),
        "faults_handled": {kind: {"masked": count} for kind, count in state.faults.items()},
        "signals_missing": dict(state.signals_missing),
        "time": {stage: round(seconds, 1) for stage, seconds in state.seconds.items()},
        "provenance": dict(run.process.host),
        "report": str(folder.report_path),
    }
    folder.write_summary(summary)
    write_report(folder, tasks)
    run.console.summary(summary)
    for note in closed.notes:
        run.console.note(note)
    if run.config.rl.updates and not state.learned:
        raise NothingLearned(
            f"none of the {state.version} updates had a group whose attempts differ in reward; see {folder.path}",
            fix="give the warm start more demonstrations or steps, or the run easier tasks",
        )
    return summary


def _rate(result: EvalResult) -> dict[str, float]:
    return {"successes": result.passed, "rate": result.rate, "low": result.low, "high": result.high}
