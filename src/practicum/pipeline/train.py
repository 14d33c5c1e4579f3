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
from practicum.pipeline.canaries import CanaryGuard, forget_suspect, suspect
from practicum.pipeline.choosing import choose_tasks
from practicum.pipeline.console import RunConsole
from practicum.pipeline.feasibility import check_feasible
from practicum.pipeline.finishing import finish
from practicum.pipeline.learn import evaluate, learn, not_taken, publish, watch
from practicum.pipeline.orders import Told, WorkerSetup
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
from practicum.pipeline.proxy import open_proxy
from practicum.pipeline.quarantine import SET_APART, Quarantine, WentBack
from practicum.pipeline.report import write_report
from practicum.pipeline.rescoring import begin_rescored, finish_laying, open_replay
from practicum.pipeline.resuming import Source, check_unfinished, said_of, take_changes
from practicum.pipeline.rewards import Rewards, open_rewards
from practicum.pipeline.rollout_process import RolloutProcess
from practicum.pipeline.run import Run, RunState, last_state, split_of
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.signals import check_judge
from practicum.pipeline.study import gather, study
from practicum.pipeline.trainee import adapted, base_of, check_model, own_decoder
from practicum.policies.local.model import use_threads
from practicum.policies.local.trainee import Trainee
from practicum.records.task import Task
from practicum.training.precision import computing
from practicum.training.trainer import Trainer
from practicum.weights.store import VersionStore

TASKS_FOLDER = "tasks"


def train(
    config: RunConfig,
    *,
    root: Path,
    resume: Path | None,
    console: RunConsole,
    rescored: bool = False,
    source: Source | None = None,
) -> dict[str, Any]:
    """Run `config`, read from `source`, in a new folder under `root`, or continue that in `resume`: the summary.

    With `rescored`, the run in `resume` goes back to its first version and on with its re-scored rewards.
    Raises `PracticumError` subclasses, and `KeyboardInterrupt` with the line that continues the run.
    """
    started = time.perf_counter()
    use_threads(1)
    check_before(config)
    if resume is None:
        folder = RunFolder.create(root, config, source=None if source is None else source._asdict())
    else:
        folder = RunFolder.open(resume, write=True)
    with folder:
        console.note(f"run folder: {folder.path}")
        if resume is not None:
            finish_laying(folder)
            if not rescored:
                check_unfinished(folder)
            for change in take_changes(folder, config):
                console.note(said_of(change))
        try:
            if rescored:
                begin_rescored(folder)
            resumed = resume is not None
            while True:
                try:
                    return _run(folder, config, console, resumed=resumed, started=started)
                except WentBack as back:
                    console.note(f"attempts at {back.task} had trained: the run goes back to update {back.trusted}")
                    resumed = True
        except CanaryDeviated:
            write_report(folder)
            console.note(f"the run stopped here; see {folder.report_path}")
            raise
        except KeyboardInterrupt:
            folder.audit("interrupted")
            raise KeyboardInterrupt(f"stopped cleanly; continue with: practicum train --resume {folder.path}") from None


def check_before(config: RunConfig) -> None:
    """Raises `PracticumError` for what can be known to fail before anything is made: a model, a processor without the
    numbers that are asked for, or a choice of tasks."""
    check_model(config.policy)
    computing(config.trainer.precision)
    if config.tasks.path is not None or config.tasks.family == "functions":
        choose_tasks(config.tasks, demonstrated=_demonstrated(config))


def _run(folder: RunFolder, config: RunConfig, console: RunConsole, *, resumed: bool, started: float) -> dict[str, Any]:
    began, state = time.perf_counter(), _where_to_start(folder, resumed=resumed)
    tasks_folder = folder.path / TASKS_FOLDER
    if not tasks_folder.is_dir():
        console.phase("Tasks")
        laid = lay_tasks(config.tasks, tasks_folder, demonstrated=_demonstrated(config))
        folder.audit("tasks_laid", path=config.tasks.path, release=laid.release, left_out=laid.left_out)
        for task, why in laid.left_out.items():
            console.note(f"task {task} is not trained on: {why}")
    tasks = read_tasks(tasks_folder)
    check_feasible(config, tasks)
    if (note := check_judge(config.judge, tasks)) is not None:
        console.note(note)
    rewards = open_rewards(folder, config.reward)
    trainee = _trainee(config, tasks)
    process = RolloutProcess(
        _worker(folder, config, trainee),
        on_progress=lambda p: console.doing(f"{p.order}: {p.done}/{p.total}"),
        on_told=lambda told: _note(folder, console, told),
    )
    with process:
        run = Run(folder, config, console, process, trainee, {}, open_replay(folder), state or RunState(trusted=-1))
        run.meter.seconds["preparing"] += time.perf_counter() - began
        quarantine = Quarantine(run, tasks)
        guard = CanaryGuard(run, tasks_folder, quarantine)
        trainee.model.recompute = config.trainer.recompute
        trainer = Trainer(
            trainee.model,
            grad_clip=config.rl.grad_clip,
            precision=config.trainer.precision,
            tell=lambda reason: not_taken(run, reason),
        )
        if state is None:
            guard.check("start", update=-1)
            _begin(run, trainer, tasks, rewards)
            publish(run, trainer, 0)
            evaluate(run, "test", 0, config.evaluation.test_samples)
            watch(run)
            gather(run)
            guard.begin()
            guard.check("baseline", update=0)
            run.commit()
        else:
            run.tasks = _admitted(folder, tasks)
            guard.begin()
            guard.check(f"resumed-{state.version}", update=state.version)
            _take_back(run, trainer, state.version)
        _learn(run, trainer, guard, quarantine, rewards, resumed=resumed)
        if run.state.best_version != 0:
            evaluate(run, "test", run.state.best_version, config.evaluation.test_samples, when=run.state.version)
        guard.check("end", update=run.state.version)
        closed = process.stop()
    run.state.boxes_leaked += closed.leaked
    return finish(run, closed, time.perf_counter() - started, {task.id: task for task in tasks}, quarantine.names)


def _learn(
    run: Run, trainer: Trainer, guard: CanaryGuard, quarantine: Quarantine, rewards: Rewards, *, resumed: bool
) -> None:
    """All updates that are left: of a study or by reinforcement, whichever the configuration has any of."""
    before = run.state.version
    use_threads(run.config.trainer.threads)
    rewards.proxy = open_proxy(run)
    study(run, trainer)
    learn(run, trainer, guard, quarantine, rewards)
    if run.state.version == before and resumed:
        raise NothingLearned(
            f"{run.folder.path} has made all its {run.config.updates} updates",
            fix="start a new run with more: --set rl.updates=N, or study.updates",
        )


def _worker(folder: RunFolder, config: RunConfig, trainee: Trainee) -> WorkerSetup:
    return WorkerSetup(
        run_id=folder.id,
        seed=config.seed,
        sandbox=config.sandbox,
        rollout=config.rollout,
        correct_rate=config.correct_rate,
        speaker=trainee.speaker,
        checkpoints=folder.checkpoints,
        snapshots=folder.path / "snapshots",
        journal=folder.journal_path,
        schedule=config.schedule,
        judge=config.judge,
    )


def _begin(run: Run, trainer: Trainer, tasks: Sequence[Task], rewards: Rewards) -> None:
    """Admission and warm start. The held-out tasks are vetted while the first steps are made."""
    run.console.phase("Admission: the gold must pass, doing nothing must fail")
    training = rewards.fit(split_of(tasks, "train"), run.show)
    held_out = [task for task in tasks if task.split != "train"]
    with run.meter.span("admission"):
        ask_admission(run, "train", training)
        run.tasks = complete({"train": hear_admission(run, "train", training)})
    orders = ask_demonstrations(run, run.config.sft.demonstrations)
    ask_admission(run, "held-out", held_out)
    warm_start(run, trainer, orders)
    with run.meter.span("admission"):
        admitted = hear_admission(run, "held-out", held_out)
        run.tasks |= complete({split: split_of(admitted, split) for split in ("validation", "test")})
    run.console.tell_counts()


def _where_to_start(folder: RunFolder, *, resumed: bool) -> RunState | None:
    """The state to continue from; what was recorded after it is set apart. None to start from the beginning."""
    if not resumed:
        return None
    versions = VersionStore(folder.checkpoints)
    doubt = suspect(folder)
    if doubt is not None:  # what followed the last good look does not train, and neither do weights that saw it
        folder.forget_flights()
        versions.prune([version for version in versions.versions() if version <= doubt["trusted"]])
    state = last_state(versions)
    folder.truncate_after(state.version if state else -1)
    if doubt is not None:
        folder.audit(SET_APART, trusted=doubt["trusted"], batches=doubt["batches"], task=doubt.get("task"))
        forget_suspect(folder)
    folder.audit("resumed", version=state.version if state else None)
    return state


def _demonstrated(config: RunConfig) -> bool:
    """Whether tasks must be such as can be demonstrated: for a warm start, or to train a tokenizer on."""
    acted = config.study is not None and config.study.source == "demonstrations"
    return acted or config.sft.steps > 0 or config.policy.model is None


def _trainee(config: RunConfig, tasks: Sequence[Task]) -> Trainee:
    base = base_of(config.policy)
    if base is None:
        return own_decoder(config.policy, train_tokenizer(tasks), seed=config.seed)
    return adapted(config.policy, base, seed=config.seed)


def _take_back(run: Run, trainer: Trainer, version: int) -> None:
    files = {"model.json": run.versions.read(version, "model.json")}
    run.trainee.take(run.versions.fetch(version), files)
    trainer.load(run.versions.path(version))


def _admitted(folder: RunFolder, tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Tasks by split that the run admitted when it started."""
    admitted = {row["task"] for row in folder.metrics() if row["kind"] == "admission" and row["admitted"]}
    splits: dict[str, list[Task]] = {"train": [], "validation": [], "test": []}
    for task in tasks:
        if task.id in admitted:
            splits[task.split].append(task)
    return complete(splits)


def _note(folder: RunFolder, console: RunConsole, told: Told) -> None:
    folder.append_metric(told.row)
    console.note(f"{told.row['kind']}: {told.row['reason']}")
