"""A learnt model of rewards in a run: how it comes to be, what it says, and when it is no longer to be believed.

Owns: `Proxy`, `Look`, `open_proxy`, `over_optimised`; `reward_model.safetensors` in a run folder.
Invariant: the model learns from training tasks alone; success by execution on the validation tasks, which it never
saw, is measured beside its opinion at every look, and chooses the version. A masked attempt stays masked.
Must not know: how credit is given, how boxes are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from practicum.config.learning import RewardModelConfig
from practicum.errors import TrainerError
from practicum.pipeline.run import Run
from practicum.pipeline.study import sampled
from practicum.policies.local.model import Decoder
from practicum.policies.local.trainee import held
from practicum.records.sample import Sample, samples_from
from practicum.records.trajectory import Trajectory
from practicum.training.lessons import Lesson, Unit, pair_of, take_steps
from practicum.training.preference import bradley_terry_loss
from practicum.training.reward_model import (
    last_alone,
    load_reward_model,
    read_scores,
    reward_model_of,
    save_reward_model,
    scores_of,
)
from practicum.training.schedules import warmup_cosine
from practicum.training.trainer import Trainer
from practicum.trajectories.selection import Pair, pairs

FILE = "reward_model.safetensors"


@dataclass(frozen=True, slots=True)
class Look:
    """At the validation tasks after `update`: `gold`, the share that passed, and `proxy`, the model's mean opinion."""

    update: int
    gold: float
    proxy: float


def over_optimised(looks: Sequence[Look], *, fall: float, patience: int) -> bool:
    """Whether at each of the last `patience` looks success was below its best by more than `fall`, opinion above. Pure.

    What the policy then gains pleases the model and no longer solves tasks.
    """
    if len(looks) <= patience:
        return False
    for place in range(len(looks) - patience, len(looks)):
        best = max(looks[: place + 1], key=lambda look: look.gold)
        if not (looks[place].gold < best.gold - fall and looks[place].proxy > best.proxy):
            return False
    return True


class Proxy:
    """The model of rewards of one run, and what its looks came to."""

    def __init__(self, config: RewardModelConfig, model: Decoder, looks: Sequence[Look]) -> None:
        self._config = config
        self._model = model
        self._looks = list(looks)

    def replaced(
        self, trajectories: Sequence[Trajectory], show: Callable[[dict[str, Any]], None], *, update: int
    ) -> list[Trajectory]:
        """`trajectories` with the model's opinion as their reward; `show` gets a row with both means."""
        opinions = self._opinions(trajectories)
        told = [(t.passed, opinion) for t, opinion in zip(trajectories, opinions, strict=True) if opinion is not None]
        if told:
            show(_row("train", update, told))
        return [
            trajectory
            if opinion is None or trajectory.verdict is None
            else replace(trajectory, verdict=replace(trajectory.verdict, reward=opinion))
            for trajectory, opinion in zip(trajectories, opinions, strict=True)
        ]

    def spent(self, run: Run) -> bool:
        """Look at what validation attempts were made since, and say (and record) whether to stop here."""
        known = self._looks[-1].update if self._looks else -1
        for batch in run.folder.store.batches("validation"):
            if batch.update <= known:
                continue
            attempts = run.folder.store.load(batch)
            told = [
                (t.passed, opinion) for t, opinion in zip(attempts, self._opinions(attempts), strict=True)
                if opinion is not None
            ]  # fmt: skip
            if told:
                row = _row("validation", batch.update, told)
                run.show(row)
                self._looks.append(Look(batch.update, row["gold"], row["proxy"]))
        if not over_optimised(self._looks, fall=self._config.fall, patience=self._config.patience):
            return False
        best = run.state.best_version
        run.folder.audit("over_optimised", update=self._looks[-1].update, best=best)
        run.console.note(f"success falls while the reward model's opinion rises: learning stops, update {best} is kept")
        return True

    def _opinions(self, trajectories: Sequence[Trajectory]) -> list[float | None]:
        """None for what was not judged, or said nothing."""
        rows = [_last_row(trajectory) for trajectory in trajectories]
        scores = iter(scores_of(self._model, [row for row in rows if row is not None]))
        return [None if row is None else next(scores) for row in rows]


def open_proxy(run: Run) -> Proxy | None:
    """The run's model of rewards, trained once on the attempts of version 0 and read from the folder after that.

    None where the configuration has none. Raises `TrainerError` where there is nothing to tell apart, or `StoreError`.
    """
    config, path = run.config.reward.model, run.folder.path / FILE
    if config is None:
        return None
    with held(run.trainee, run.versions.fetch(0)) as first:
        model = load_reward_model(first, path) if path.is_file() else reward_model_of(first)
    if not path.is_file():
        with run.meter.span("reward model"):
            _learn(run, config, model)
        save_reward_model(model, path)
    looks = [row for row in run.folder.metrics() if row["kind"] == "proxy" and row["split"] == "validation"]
    return Proxy(config, model, [Look(row["update"], row["gold"], row["proxy"]) for row in looks])


def _learn(run: Run, config: RewardModelConfig, model: Decoder) -> None:
    found = pairs(sampled(run), seed=run.config.seed)
    tasks = sorted({pair.chosen.task_id for pair in found})
    random.Random(f"held-back-{run.config.seed}").shuffle(tasks)
    kept = set(tasks[: round(config.held_back * len(tasks))])
    back, lesson = _units(found, lambda task: task in kept), _units(found, lambda task: task not in kept)
    if not lesson or not back:
        raise TrainerError(
            f"{len(tasks)} tasks had a success and a failure: too few for a model of rewards",
            fix="more reward.model.groups, or a version 0 that succeeds at times",
        )
    run.console.phase(f"Reward model: {len(lesson)} pairs, {len(back)} held back, {config.steps} steps")
    metrics = take_steps(
        Trainer(model, grad_clip=run.config.rl.grad_clip, read=read_scores, precision=run.config.trainer.precision),
        Lesson.of(lesson),
        bradley_terry_loss,
        steps=range(config.steps),
        batch_size=config.batch_size,
        lr=lambda step: warmup_cosine(step, config.steps, peak=config.lr, warmup=min(20, config.steps // 4)),
        seed=run.config.seed,
    )
    right = [better > worse for better, worse in _apart(scores_of(model, [row for unit in back for row in unit]))]
    row = {"kind": "reward_model", "update": 0, "pairs": len(lesson), "held_back": len(right)}
    accuracy = sum(right) / len(right)
    run.show(row | {"accuracy": accuracy, "accuracy_training": metrics["accuracy"], "loss": metrics["loss"]})
    run.console.note(f"the reward model tells {sum(right)} of {len(right)} held-back pairs apart")


def _units(found: Sequence[Pair], wanted: Callable[[str], bool]) -> list[Unit]:
    units = (pair_of(pair.chosen, pair.rejected) for pair in found if wanted(pair.chosen.task_id))
    return [tuple(last_alone(sample) for sample in unit) for unit in units if unit is not None]


def _apart(scores: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(scores[0::2], scores[1::2], strict=True))


def _last_row(trajectory: Trajectory) -> Sample | None:
    rows = [] if trajectory.reward is None else samples_from(trajectory, 1.0)
    return rows[-1] if rows else None


def _row(split: str, update: int, told: Sequence[tuple[bool, float]]) -> dict[str, Any]:
    gold = sum(passed for passed, _ in told) / len(told)
    proxy = sum(opinion for _, opinion in told) / len(told)
    return {"kind": "proxy", "split": split, "update": update, "gold": gold, "proxy": proxy, "n": len(told)}
