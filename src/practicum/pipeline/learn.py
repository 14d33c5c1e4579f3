"""The loop of reinforcement learning: dispatch, wait, update, publish, watch.

Owns: pacing of batches against updates, the watched split, the choice of the best version.
Invariant: batch b is sampled by version max(0, b − max_staleness) and trained by the update that makes b + 1, in
an overlapped run as in a synchronous or a resumed one; the test split is looked at only when the caller of
`evaluate` asks for it.
Must not know: how boxes are made or a model computes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from practicum.evaluation.evaluate import EvalResult, summarise
from practicum.pipeline.accounting import coarse, figures
from practicum.pipeline.canaries import CanaryGuard
from practicum.pipeline.curriculum import equal_attempts, outcomes_of, plan_of
from practicum.pipeline.dispatching import Gathered, open_feed
from practicum.pipeline.orders import Order
from practicum.pipeline.process_rewards import selected
from practicum.pipeline.quarantine import Quarantine
from practicum.pipeline.rewards import Rewards
from practicum.pipeline.run import Run, specs_of
from practicum.policies.local.trainee import held
from practicum.records.sample import Sample
from practicum.tasks.sampler import observe, standings
from practicum.training.methods import Method, method_of
from practicum.training.policy_gradient import Selection, update
from practicum.training.schedules import linear
from practicum.training.scoring import scored
from practicum.training.trainer import Trainer


def learn(run: Run, trainer: Trainer, guard: CanaryGuard, quarantine: Quarantine, rewards: Rewards) -> None:
    """All updates that are left, from `run.state.version` on. Raises `CanaryDeviated`, `TaskError` and `WentBack`."""
    rl, state, plan = run.config.rl, run.state, plan_of(run)
    method = method_of(rl)
    feed = open_feed(run, plan)
    trainer.set_weight_decay(rl.weight_decay)
    if state.version < rl.updates:
        run.console.phase(f"Reinforcement learning: {rl.updates} updates")
    while not rewards.spent(run) and state.version < rl.updates:
        for drawn in feed.fill():
            if guard.due(drawn):
                guard.ask(f"after-batch-{drawn}")
        batch = state.version
        with run.meter.span("wait for rollouts"):
            gathered = feed.gather(batch)
        trajectories = gathered.trajectories
        with run.meter.span("records"):
            run.folder.store.append("rl", batch + 1, trajectories)
        if guard.due(batch):
            guard.hear(f"after-batch-{batch}", update=batch + 1)
        start = time.perf_counter()
        quarantine.weigh(batch, trajectories)
        with run.meter.span("update"):
            trained = rewards.corrected(quarantine.kept(trajectories), run.show, update=batch + 1)
            selection = selected(run, trained, method, batch)
            metrics = _update(run, trainer, method, selection, batch)
        row = _row(run, batch, gathered, selection, metrics, time.perf_counter() - start)
        if run.config.reward.correction != "none":
            row["reward_corrected"] = _mean([t.reward for t in trained if t.reward is not None])
        state.sampler = observe(plan, state.sampler, batch, outcomes_of(trained))
        row |= {"equal_attempts": equal_attempts(trained), "tasks": standings(plan, state.sampler)}
        state.attempts += len(trajectories)
        state.attempts_equal += row["equal_attempts"]
        with run.meter.span("records"):
            publish(run, trainer, batch + 1)
        run.show(row)
        state.version = batch + 1
        state.learned += bool(metrics)
        if state.version % run.config.evaluation.every == 0 or state.version == rl.updates:
            watch(run)
        run.commit()
        # A resume begins at the newest, or at the last that is trusted, and samples from versions behind it.
        keep = {0, state.best_version}
        for newest in (state.version, state.trusted):
            keep.update(range(newest - run.config.rollout.max_staleness, newest + 1))
        run.versions.prune(keep)


def publish(run: Run, trainer: Trainer, version: int) -> None:
    """Write what was trained and the trainer's state as `version`."""
    run.versions.publish(version, run.trainee.state(), run.trainee.files(), extra=trainer.save)


def not_taken(run: Run, reason: str) -> None:
    """Record that the trainer refused a step of the update that is being made."""
    number = run.state.version + 1
    run.show({"kind": "guard", "update": number, "reason": reason})
    run.console.note(f"a step of update {number} was not taken: {reason}")


def watch(run: Run) -> None:
    """Look at the validation tasks, and keep the best version; later versions win ties."""
    state = run.state
    result = evaluate(run, "validation", state.version, run.config.evaluation.validation_samples)
    if result.rate >= state.best_rate:
        state.best_version, state.best_rate = state.version, result.rate


def evaluate(run: Run, split: str, version: int, samples: int, *, when: int | None = None) -> EvalResult:
    """Attempts at every task of `split` not withdrawn, under `version`; a metrics row and stored trajectories."""
    order, update_number = f"{split}-{version}", version if when is None else when
    tasks = [task for task in run.tasks[split] if task.id not in run.state.sampler.withdrawn]
    groups = [(f"{order}-{task.id}", task) for task in tasks]
    specs = specs_of(run.config.seed, groups, size=samples, temperature=run.config.rollout.temperature)
    with run.meter.span("evaluate"):
        run.process.send(Order(order, "model", specs, version))
        trajectories = run.account(run.process.wait(order), update=update_number)
    run.folder.store.append(split, update_number, trajectories)
    result = summarise(trajectories)
    row: dict[str, Any] = {"kind": "evaluation", "split": split, "update": update_number, "version": version}
    run.show(row | {"rate": result.rate, "low": result.low, "high": result.high, "n": result.samples})
    return result


def _update(run: Run, trainer: Trainer, method: Method, selection: Selection, batch: int) -> dict[str, float]:
    rl = run.config.rl
    lr = linear(batch, rl.updates, first=rl.lr, last=rl.lr_final, warmup=3)
    return update(
        trainer,
        _with_streams(run, trainer, method, selection.samples),
        method.loss,
        minibatches=rl.minibatches,
        lr=lr,
        seed=run.config.seed + batch,
        temperature=run.config.rollout.temperature,
    )


def _with_streams(run: Run, trainer: Trainer, method: Method, samples: list[Sample]) -> list[Sample]:
    """`samples` with the further log-probabilities that the loss needs; the reference is version 0."""
    temperature, most, precision = run.config.rollout.temperature, trainer.batch_tokens, trainer.precision
    if samples and "proximal" in method.loss.needs:
        samples = scored(
            trainer.model, samples, "proximal", temperature=temperature, batch_tokens=most, precision=precision
        )
    if samples and "reference" in method.loss.needs:
        with held(run.trainee, run.versions.fetch(0)) as first:
            samples = scored(
                first, samples, "reference", temperature=temperature, batch_tokens=most, precision=precision
            )
    return samples


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _row(
    run: Run,
    batch: int,
    gathered: Gathered,
    selection: Selection,
    metrics: dict[str, float],
    update_s: float,
) -> dict[str, Any]:
    trajectories = gathered.trajectories
    rewards = [t.reward for t in trajectories if t.reward is not None]
    parts = figures(
        run.config,
        batch,
        trajectories,
        selection.trained,
        seconds=max(gathered.seconds, update_s),
        update_s=update_s,
        queues=gathered.queues,
    )
    # Attempts run side by side: the batch's wall clock is shared out by what the attempts spent.
    seconds = {words: gathered.seconds * share for words, share in coarse(parts["episode_time"]).items()}
    staleness = [batch - t.policy_version for t in trajectories if t.turns]
    return {
        "kind": "update",
        "update": batch + 1,
        "phase": "rl",
        "success": sum(t.passed for t in trajectories) / len(rewards) if rewards else None,
        "reward": _mean(rewards),
        "groups_with_signal": selection.with_signal / selection.groups if selection.groups else 0.0,
        "masked": selection.masked,
        "partial_groups": selection.partial,
        "staleness": sum(staleness) / len(staleness) if staleness else None,
        "episodes": len(trajectories),
        "boxes_per_s": gathered.boxes / gathered.seconds,
        "turns": sum(len(t.turns) for t in trajectories) / len(trajectories) if trajectories else None,
        "time": {**seconds, "update": update_s},
        **parts,
        **{name: metrics.get(name) for name in ("loss", "entropy", "kl", "clip_fraction", "grad_norm", "lr", "tokens")},
        **{name: metrics[name] for name in ("reference_kl", "bounded") if name in metrics},
    }
