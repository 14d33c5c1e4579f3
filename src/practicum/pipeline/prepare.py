"""Before anything is learned: the run's tasks on disk, their admission, the tokenizer, the warm start.

Owns: `lay_tasks`, `Laid`, `read_tasks`, `train_tokenizer`, admission, demonstrations, `warm_start`.
Invariant: tasks are read back from their directories, so what trains is what stands on disk; a task that was not
seen to pass with its gold and to fail without is not used.
Must not know: reinforcement learning.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from practicum.config.sections import TasksConfig
from practicum.curation.admission import admit
from practicum.curation.difficulty import difficulty_path
from practicum.errors import ConfigError, StoreError, TaskError, TrainerError
from practicum.pipeline.choosing import choose_tasks
from practicum.pipeline.orders import Order
from practicum.pipeline.run import Run, specs_of, split_of
from practicum.policies.demonstrator import demonstration
from practicum.policies.local.model import use_threads
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.tokenizer import Tokenizer
from practicum.records.sample import Sample
from practicum.records.task import Task
from practicum.tasks.harbor import save_task
from practicum.tasks.taskset import load_taskset
from practicum.training.demonstrations import (
    Demonstration,
    demonstration_of,
    renamed,
    spoken_sample,
    warm_start_sample,
)
from practicum.training.losses import cross_entropy
from practicum.training.schedules import warmup_cosine
from practicum.training.trainer import Trainer

VOCABULARY = 768
PART = 140
_HARNESS_TEXTS = ("[edited]", "[no output]", "[exit 1]", "ok\n", "FAIL : gave , want ", "TypeError ValueError")


@dataclass(frozen=True, slots=True)
class Laid:
    """What was laid. `left_out` says by id why tasks of the set were not; `release` is the digest of the set's."""

    left_out: Mapping[str, str] = field(default_factory=dict)
    release: str | None = None


def lay_tasks(config: TasksConfig, folder: Path, *, demonstrated: bool = True) -> Laid:
    """Put the run's tasks into `folder` as task directories, all or none, and what was measured on them beside it.

    Where the set has a ledger, only what it admits is used. `demonstrated`: tasks to train on that cannot be
    demonstrated are refused. Raises `TaskError`, `ConfigError` or `StoreError`.
    """
    chosen = choose_tasks(config, demonstrated=demonstrated)
    # Laid aside and renamed: a folder that an interruption left half-filled would pass for a smaller taskset.
    draft = folder.with_name(f".tmp-{folder.name}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        for task in chosen.tasks:
            save_task(task, draft / task.id)
        if chosen.home is not None and (measured := difficulty_path(chosen.home)).is_file():
            shutil.copyfile(measured, folder.with_name(measured.name))
        draft.rename(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StoreError(
            f"cannot write the tasks into {folder}: {error.strerror or error}",
            fix="free some disk, then start again",
        ) from error
    return Laid(chosen.left_out, chosen.release)


def read_tasks(folder: Path) -> list[Task]:
    """The run's tasks, read from their directories."""
    return load_taskset(folder)


def train_tokenizer(tasks: Sequence[Task]) -> Tokenizer:
    """A tokenizer over the texts of the training tasks and of the harness."""
    texts: list[str] = list(_HARNESS_TEXTS) * 2
    for task in split_of(tasks, "train"):
        texts += [task.instruction, *(file.data.decode("utf-8", "replace") for file in task.files.values())]
        texts += demonstration(task, seed=0, correct_rate=1.0)
    return Tokenizer.train(texts, size=VOCABULARY)


def ask_admission(run: Run, name: str, tasks: Sequence[Task]) -> None:
    """Have the gold and the untouched state of every task judged; `hear_admission` takes the answer."""
    for who in ("oracle", "noop"):
        groups = [(f"admission-{who}-{task.id}", task) for task in tasks]
        gold = who == "oracle"
        drawn = specs_of(run.config.seed, groups)
        specs = tuple(replace(spec, with_solution=gold, untouched=not gold) for spec in drawn)
        run.process.send(Order(f"admission-{name}-{who}", who, specs, most=run.config.sandbox.verify_concurrent * 2))


def hear_admission(run: Run, name: str, tasks: Sequence[Task]) -> list[Task]:
    """Those of `tasks` whose gold passes and on which doing nothing fails; a metrics row for each."""
    both = []
    for who in ("oracle", "noop"):
        both.append(run.account(run.process.wait(f"admission-{name}-{who}"), update=0))
        run.folder.store.append("admission", 0, both[-1])
    admitted = []
    for task, gold, noop in zip(tasks, *both, strict=True):
        decision = admit(task, gold, noop)
        row = {"kind": "admission", "task": task.id, "split": task.split, "admitted": decision.admitted}
        run.show(row | {"reason": decision.reason})
        if decision.admitted:
            admitted.append(task)
    return admitted


def complete(tasks: dict[str, list[Task]]) -> dict[str, list[Task]]:
    """`tasks` as given; raises `TaskError` if a split is empty."""
    for split, members in tasks.items():
        if not members:
            raise TaskError(f"no task of split {split!r} was admitted", fix="`practicum tasks check` shows why")
    return tasks


def ask_demonstrations(run: Run, count: int) -> list[Order]:
    """Have the noisy demonstrator work, in boxes, in parts, so that learning can start on the first."""
    train = run.tasks["train"]
    orders = []
    for part, start in enumerate(range(0, count, PART)):
        numbers = range(start, min(start + PART, count))
        groups = [(f"demonstration-{number:04d}", train[number % len(train)]) for number in numbers]
        specs = tuple(replace(spec, judged=False) for spec in specs_of(run.config.seed, groups))
        most = run.config.sandbox.verify_concurrent * 2
        orders.append(Order(f"demonstrations-{part}", "demonstrator", specs, most=most))
        run.process.send(orders[-1])
    return orders


def hear_demonstrations(run: Run, order: Order) -> list[Demonstration]:
    """What the demonstrator did for `order`, stored; without those that met a fault."""
    with run.meter.span("wait for demonstrations"):
        trajectories = run.account(run.process.wait(order.id), update=0)
    run.folder.store.append("demonstration", 0, trajectories)
    kept = [(t, spec.task) for t, spec in zip(trajectories, order.specs, strict=True) if t.fault is None]
    return [demonstration_of(t, task.instruction, task.provenance.get("renamings", ())) for t, task in kept]


def warm_start(run: Run, trainer: Trainer, orders: Sequence[Order]) -> None:
    """Supervised steps on the demonstrations of `orders`: once through in the order they come, then shuffled.

    Nothing where the configuration wants no steps.
    """
    sft = run.config.sft
    if not sft.steps:
        return
    run.console.phase(f"Warm start: {sft.demonstrations} demonstrations, {sft.steps} steps")
    trainer.set_weight_decay(sft.weight_decay)
    rng = random.Random(f"warm-start-{run.config.seed}")
    demonstrations: list[Demonstration] = []
    parts = list(orders)
    queue: list[Demonstration] = []
    use_threads(sft.threads)
    for step in range(sft.steps):
        while len(queue) < sft.batch_size:
            fresh = hear_demonstrations(run, parts.pop(0)) if parts else demonstrations
            demonstrations += fresh if fresh is not demonstrations else []
            if not demonstrations and not parts:
                raise TrainerError("no demonstration came to an end without a fault, so there is nothing to imitate")
            queue = rng.sample(fresh, len(fresh)) + queue
        with run.meter.span("sft"):
            samples = [
                varied_sample(run, queue.pop(), sft.rename_rate, rng, sft.prompt_weight) for _ in range(sft.batch_size)
            ]
            lr = warmup_cosine(step, sft.steps, peak=sft.lr, warmup=20)
            metrics = trainer.step(samples, cross_entropy, lr=lr)
        row = {"kind": "sft", "step": step + 1, "loss": metrics.get("loss")}
        run.show(row | {"epoch": (step + 1) * sft.batch_size / sft.demonstrations})
    use_threads(1)
    for order in parts:  # fewer steps than demonstrations: the record still holds them all
        demonstrations += hear_demonstrations(run, order)


def supervised_sample(run: Run, demonstration: Demonstration, prompt_weight: float) -> Sample:
    """`demonstration` as a row in the run's own way of speaking; what was not said weighs `prompt_weight`."""
    renderer = run.renderer
    if isinstance(renderer, LocalRenderer):
        return warm_start_sample(demonstration, renderer, prompt_weight=prompt_weight)
    return spoken_sample(demonstration, renderer, prompt_weight=prompt_weight)


def varied_sample(
    run: Run, demonstration: Demonstration, rate: float, rng: random.Random, prompt_weight: float
) -> Sample:
    """`demonstration` as a row, under other names as `vary` says, or as it was where it would then be too long.

    Raises `ConfigError` where it is too long as it was.
    """
    sample = supervised_sample(run, vary(demonstration, rate, rng), prompt_weight)
    context = run.trainee.model.shape.context
    if len(sample.input_ids) > context:
        sample = supervised_sample(run, demonstration, prompt_weight)
    if len(sample.input_ids) > context:
        raise ConfigError(
            f"a demonstration has {len(sample.input_ids)} tokens, and policy.context is {context}",
            fix=f"set policy.context to {len(sample.input_ids)} or more (a larger vocabulary makes texts shorter, too)",
        )
    return sample


def vary(demonstration: Demonstration, rate: float, rng: random.Random) -> Demonstration:
    """`demonstration`, or with probability `rate` the same under other names, where it has such."""
    if demonstration.renamings and rng.random() < rate:
        return renamed(demonstration, rng.choice(demonstration.renamings))
    return demonstration
