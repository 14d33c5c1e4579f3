"""Learning from what is there already, in a run: demonstrations, the run's own judged attempts, or a file's rows.

Owns: `gather`, `sample_groups`, `sampled`, `study`; what a run's `[study]` turns into a lesson.
Invariant: the lesson is read from what the run folder holds, so that a resumed run learns from what the unbroken one
did; rows of attempts are the ids that were sampled, only a file's are text.
Must not know: how losses are made, how boxes are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from practicum.config.learning import StudyConfig
from practicum.errors import TrainerError
from practicum.pipeline.learn import publish, watch
from practicum.pipeline.orders import Order
from practicum.pipeline.prepare import ask_demonstrations, hear_demonstrations, supervised_sample, varied_sample
from practicum.pipeline.quarantine import recorded
from practicum.pipeline.rows import ROWS_FILE, Turns, keep_rows, read_rows_of
from practicum.pipeline.run import Run, specs_of
from practicum.policies.contract import Message
from practicum.policies.local.trainee import held
from practicum.records.trajectory import Trajectory
from practicum.training.demonstrations import Demonstration, demonstration_of
from practicum.training.lessons import Lesson, Unit, pair_of, row_of, take_steps
from practicum.training.losses import Loss
from practicum.training.methods import STUDIES
from practicum.training.schedules import warmup_cosine
from practicum.training.scoring import scored
from practicum.training.trainer import Trainer
from practicum.trajectories.selection import pairs, successes

SAMPLED = "sampled"
"""Phase of the attempts that version 0 made for a study or a reward model."""
WATCHED = ("loss", "entropy", "margin", "accuracy", "grad_norm", "lr", "tokens")


def gather(run: Run) -> None:
    """Have made, and store, what the run's study or reward model learns from; version 0 is published."""
    study, rewards = run.config.study, run.config.reward.model
    if rewards is not None:
        sample_groups(run, rewards.groups)
    if study is None:
        return
    if study.source == "demonstrations":
        run.console.phase(f"{study.demonstrations} demonstrations to learn from")
        for order in ask_demonstrations(run, study.demonstrations):
            hear_demonstrations(run, order)
    elif study.source == "attempts":
        sample_groups(run, study.groups)
    elif study.rows is not None:
        keep_rows(run.folder, study.rows)


def sample_groups(run: Run, count: int) -> None:
    """Have version 0 make `count` groups of attempts at the training tasks, and store them as `SAMPLED`."""
    tasks, rollout = run.tasks["train"], run.config.rollout
    run.console.phase(f"{count} groups of {rollout.group_size} attempts by version 0")
    groups = [(f"{SAMPLED}-{number:04d}", tasks[number % len(tasks)]) for number in range(count)]
    specs = specs_of(run.config.seed, groups, size=rollout.group_size, temperature=rollout.temperature)
    with run.meter.span("sample"):
        run.process.send(Order(SAMPLED, "model", specs, 0))
        trajectories = run.account(run.process.wait(SAMPLED), update=0)
    run.folder.store.append(SAMPLED, 0, trajectories)


def sampled(run: Run) -> list[Trajectory]:
    """The attempts of `sample_groups`, but for those at tasks that have been set apart since."""
    gone = recorded(run.folder)
    return [attempt for attempt in run.folder.store.read(SAMPLED) if attempt.task_id not in gone]


def study(run: Run, trainer: Trainer) -> None:
    """All updates of `[study]` that are left, from `run.state.version` on. Raises `TrainerError`."""
    config, state = run.config.study, run.state
    if config is None or state.version >= config.updates:
        return
    loss = STUDIES[config.loss](config)
    with run.meter.span("study"):
        lesson = _lesson(run, trainer, config, loss)
    unit = "pairs" if loss.unit == "pair" else "rows"
    run.console.phase(f"Study: {lesson.size} {unit}, {config.loss}, {config.updates} updates of {config.steps} steps")
    trainer.set_weight_decay(config.weight_decay)
    total = config.updates * config.steps
    while state.version < config.updates:
        start, first = time.perf_counter(), state.version * config.steps
        with run.meter.span("study"):
            metrics = take_steps(
                trainer,
                lesson,
                loss,
                steps=range(first, first + config.steps),
                batch_size=config.batch_size,
                lr=lambda step: warmup_cosine(step, total, peak=config.lr, warmup=min(20, total // 4)),
                seed=run.config.seed,
                temperature=run.config.rollout.temperature if config.source == "attempts" else 1.0,
            )
        number = state.version + 1
        with run.meter.span("records"):
            publish(run, trainer, number)
        row = {"kind": "update", "update": number, "phase": "study", unit: lesson.size}
        row["time"] = {"study": time.perf_counter() - start}
        run.show(row | {name: metrics[name] for name in WATCHED if name in metrics})
        state.version = number
        state.learned += 1
        if number % run.config.evaluation.every == 0 or number == config.updates:
            watch(run)
        run.commit()
        run.versions.prune({0, state.best_version, state.version, max(0, state.trusted)})


def _lesson(run: Run, trainer: Trainer, config: StudyConfig, loss: Loss) -> Lesson:
    if config.source == "demonstrations":
        return _demonstrated(run, config)
    if config.source == "attempts":
        units = _units(sampled(run), paired=loss.unit == "pair", seed=run.config.seed)
    else:
        read = read_rows_of(run.folder.path / ROWS_FILE, paired=loss.unit == "pair")
        units = [
            tuple(supervised_sample(run, _conversation(turns), config.prompt_weight) for turns in row) for row in read
        ]
    if not units:
        wanted = "no task had a success and a failure" if loss.unit == "pair" else "no attempt succeeded"
        raise TrainerError(f"{wanted}: there is nothing to learn from", fix="study.groups, or a better version 0")
    return Lesson.of(_with_reference(run, trainer, units) if "reference" in loss.needs else units)


def _demonstrated(run: Run, config: StudyConfig) -> Lesson:
    by_id = {task.id: task for task in run.tasks["train"]}
    known = [t for t in run.folder.store.read("demonstration") if t.fault is None]
    if not known:
        raise TrainerError("no demonstration came to an end without a fault, so there is nothing to imitate")
    shown = [
        demonstration_of(t, by_id[t.task_id].instruction, by_id[t.task_id].provenance.get("renamings", ()))
        for t in known
    ]

    def draw(place: int, rng: random.Random) -> Unit:
        return (varied_sample(run, shown[place], config.rename_rate, rng, config.prompt_weight),)

    return Lesson(len(shown), draw)


def _units(attempts: Sequence[Trajectory], *, paired: bool, seed: int) -> list[Unit]:
    """Successes as rows, or successes beside failures; attempts that are not one row of ids are left out. Pure."""
    if paired:
        both = (pair_of(pair.chosen, pair.rejected) for pair in pairs(attempts, seed=seed))
        return [unit for unit in both if unit is not None]
    rows = (row_of(attempt) for attempt in successes(attempts))
    return [(row,) for row in rows if row is not None]


def _with_reference(run: Run, trainer: Trainer, units: Sequence[Unit]) -> list[Unit]:
    """`units` with the log-probabilities of version 0, which they are compared with."""
    temperature = run.config.rollout.temperature if run.config.study and run.config.study.source == "attempts" else 1.0
    flat = [sample for unit in units for sample in unit]
    with held(run.trainee, run.versions.fetch(0)) as first:
        rows = iter(
            scored(
                first,
                flat,
                "reference",
                temperature=temperature,
                batch_tokens=trainer.batch_tokens,
                precision=trainer.precision,
            )
        )
    return [tuple(next(rows) for _ in unit) for unit in units]


def _conversation(turns: Turns) -> Demonstration:
    said = [Message("assistant" if place % 2 else "observation", text) for place, text in enumerate(turns)][1:]
    return Demonstration((Message("task", turns[0]), *said, Message("observation", "")))
