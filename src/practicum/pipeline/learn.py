"""The loop of reinforcement learning: dispatch, wait, update, publish, watch.

Owns: pacing of batches against updates, the watched split, the choice of the best version.
Invariant: batch b is sampled by version max(0, b − max_staleness) and trained by the update that makes b + 1, in
an overlapped run as in a synchronous or a resumed one; the test split is looked at only when the caller of
`evaluate` asks for it.
Must not know: how boxes are made or a model computes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from practicum.evaluation.evaluate import EvalResult, summarise
from practicum.pipeline.canaries import CanaryGuard
from practicum.pipeline.orders import Done, Order
from practicum.pipeline.rewards import Rewards
from practicum.pipeline.run import Run, specs_of
from practicum.policies.local.saved import files_of
from practicum.records.trajectory import Trajectory
from practicum.scheduling.pacing import StalenessGate
from practicum.tasks.sampler import Outcome, choose
from practicum.training.losses import clipped_policy_gradient
from practicum.training.policy_gradient import Selection, select, update
from practicum.training.schedules import linear
from practicum.training.trainer import Trainer


def learn(run: Run, trainer: Trainer, guard: CanaryGuard, rewards: Rewards) -> None:
    """All updates that are left, from `run.state.version` on. Raises `CanaryDeviated`."""
    rl, state = run.config.rl, run.state
    gate = StalenessGate(run.config.rollout.max_staleness)
    trainer.set_weight_decay(rl.weight_decay)
    dispatched = state.version
    if state.version < rl.updates:
        run.console.phase(f"Reinforcement learning: {rl.updates} updates")
    while state.version < rl.updates:
        while dispatched < rl.updates and gate.may_dispatch(dispatched, state.version):
            if dispatched not in run.replay:
                _dispatch(run, dispatched, gate.needed_version(dispatched))
            if guard.due(dispatched):
                guard.ask(f"after-batch-{dispatched}")
            dispatched += 1
        batch = state.version
        with run.meter.span("wait for rollouts"):
            done = run.replay.take(batch) if batch in run.replay else run.process.wait(f"rl-{batch}")
        trajectories = run.account(done, update=batch + 1)
        with run.meter.span("records"):
            run.folder.store.append("rl", batch + 1, trajectories)
        if guard.due(batch):
            guard.hear(f"after-batch-{batch}", update=batch + 1)
        start = time.perf_counter()
        with run.meter.span("update"):
            trained = rewards.corrected(trajectories, run.show, update=batch + 1)
            selection = select(trained)
            metrics = _update(run, trainer, selection, batch)
        row = _row(batch, done, trajectories, selection, metrics, time.perf_counter() - start)
        if run.config.reward.correction != "none":
            row["reward_corrected"] = _mean([t.reward for t in trained if t.reward is not None])
        with run.meter.span("records"):
            publish(run, trainer, batch + 1)
        run.show(row)
        state.version = batch + 1
        state.learned += bool(selection.samples)
        state.outcomes += _outcomes(batch, trajectories)
        if state.version % run.config.evaluation.every == 0 or state.version == rl.updates:
            watch(run)
        run.commit()
        # A resume begins at the newest, or at the last that is trusted, and samples from versions behind it.
        keep = {0, state.best_version}
        for newest in (state.version, state.trusted):
            keep.update(range(newest - gate.max_staleness, newest + 1))
        run.versions.prune(keep)


def publish(run: Run, trainer: Trainer, version: int) -> None:
    """Write the trainer's weights and its state as `version`."""
    files = files_of(trainer.model, run.tokenizer)
    run.versions.publish(version, trainer.state(), files, extra=trainer.save)


def watch(run: Run) -> None:
    """Look at the validation tasks, and keep the best version; later versions win ties."""
    state = run.state
    result = evaluate(run, "validation", state.version, run.config.evaluation.validation_samples)
    if result.rate >= state.best_rate:
        state.best_version, state.best_rate = state.version, result.rate


def evaluate(run: Run, split: str, version: int, samples: int, *, when: int | None = None) -> EvalResult:
    """Attempts at every task of `split` under `version`; a metrics row and stored trajectories."""
    order, update_number = f"{split}-{version}", version if when is None else when
    groups = [(f"{order}-{task.id}", task) for task in run.tasks[split]]
    specs = specs_of(run.config.seed, groups, size=samples, temperature=run.config.rollout.temperature)
    with run.meter.span("evaluate"):
        run.process.send(Order(order, "model", specs, version))
        trajectories = run.account(run.process.wait(order), update=update_number)
    run.folder.store.append(split, update_number, trajectories)
    result = summarise(trajectories)
    row: dict[str, Any] = {"kind": "evaluation", "split": split, "update": update_number, "version": version}
    run.show(row | {"rate": result.rate, "low": result.low, "high": result.high, "n": result.samples})
    return result


def _dispatch(run: Run, batch: int, version: int) -> None:
    rollout = run.config.rollout
    by_id = {task.id: task for task in run.tasks["train"]}
    chosen = choose(
        list(by_id),
        (Outcome(*outcome) for outcome in run.state.outcomes),
        batch=batch,
        known_before=batch - rollout.max_staleness,
        size=rollout.tasks_per_update,
        seed=run.config.seed,
    )
    groups = [(f"rl-{batch}-{number}-{name}", by_id[name]) for number, name in enumerate(chosen)]
    specs = specs_of(run.config.seed, groups, size=rollout.group_size, temperature=rollout.temperature)
    run.process.send(Order(f"rl-{batch}", "model", specs, version))


def _outcomes(batch: int, trajectories: Sequence[Trajectory]) -> list[tuple[int, str, float]]:
    """Success rate of every task of the batch, over the attempts that are not masked."""
    passed: defaultdict[str, list[bool]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.reward is not None:
            passed[trajectory.task_id].append(trajectory.passed)
    return [(batch, task, sum(each) / len(each)) for task, each in passed.items()]


def _update(run: Run, trainer: Trainer, selection: Selection, batch: int) -> dict[str, float]:
    rl = run.config.rl
    loss = clipped_policy_gradient(clip_low=rl.clip_low, clip_high=rl.clip_high, entropy_bonus=rl.entropy_bonus)
    lr = linear(batch, rl.updates, first=rl.lr, last=rl.lr_final, warmup=3)
    return update(
        trainer,
        selection.samples,
        loss,
        minibatches=rl.minibatches,
        lr=lr,
        seed=run.config.seed + batch,
        temperature=run.config.rollout.temperature,
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _row(
    batch: int,
    done: Done,
    trajectories: Sequence[Trajectory],
    selection: Selection,
    metrics: dict[str, float],
    update_s: float,
) -> dict[str, Any]:
    rewards = [t.reward for t in trajectories if t.reward is not None]
    spent: defaultdict[str, float] = defaultdict(float)
    for trajectory in trajectories:
        cost = trajectory.cost
        spent["generate"] += cost["generate_s"]
        spent["act"] += sum(cost.get(f"{stage}_s", 0.0) for stage in ("lease", "act", "snapshot", "collect", "close"))
        spent["verify"] += cost.get("verify_s", 0.0)
    # Attempts run side by side: the batch's wall clock is shared out by what the attempts spent.
    total = sum(spent.values()) or 1.0
    seconds = {stage: done.seconds * value / total for stage, value in spent.items()}
    staleness = [batch - t.policy_version for t in trajectories if t.turns]
    return {
        "kind": "update",
        "update": batch + 1,
        "phase": "rl",
        "success": sum(t.passed for t in trajectories) / len(rewards) if rewards else None,
        "reward": _mean(rewards),
        "groups_with_signal": selection.with_signal / selection.groups if selection.groups else 0.0,
        "masked": selection.masked,
        "staleness": sum(staleness) / len(staleness) if staleness else None,
        "episodes": len(trajectories),
        "boxes_per_s": done.boxes / done.seconds,
        "turns": sum(len(t.turns) for t in trajectories) / len(trajectories),
        "time": {**seconds, "update": update_s},
        **{name: metrics.get(name) for name in ("loss", "entropy", "kl", "clip_fraction", "grad_norm", "lr", "tokens")},
    }
