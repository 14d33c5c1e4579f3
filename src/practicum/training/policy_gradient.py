"""One policy-gradient update: trajectories in, a step on the weights.

Owns: from groups to samples with advantages, minibatches, the watched figures.
Invariant: a masked attempt reaches neither the statistics nor the loss; a group without signal is left out.
Must not know: boxes, how trajectories were made.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from practicum.records.sample import Sample, samples_from
from practicum.records.trajectory import Trajectory
from practicum.training.losses import Loss
from practicum.training.methods import ADVANTAGES, Advantages
from practicum.training.trainer import Metrics, Trainer


@dataclass(frozen=True, slots=True)
class Selection:
    """What may train of a batch. `with_signal` of `groups` have credit to give; `masked` attempts are left out."""

    samples: list[Sample]
    groups: int
    with_signal: int
    masked: int


def select(trajectories: Sequence[Trajectory], advantages: Advantages = ADVANTAGES["group"]) -> Selection:
    """Samples of every group of `trajectories` to which `advantages` gives credit, in the order given."""
    groups: defaultdict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        groups[trajectory.group_id].append(trajectory)
    samples: list[Sample] = []
    with_signal = masked = 0
    rewards = [[member.reward for member in members] for members in groups.values()]
    for members, given, credits in zip(groups.values(), rewards, advantages(rewards), strict=True):
        masked += given.count(None)
        with_signal += any(credit is not None for credit in credits)
        for member, advantage in zip(members, credits, strict=True):
            if advantage is not None:
                samples += samples_from(member, advantage)
    return Selection(samples, len(groups), with_signal, masked)


def update(
    trainer: Trainer,
    samples: Sequence[Sample],
    loss: Loss,
    *,
    minibatches: int,
    lr: float,
    seed: int,
    temperature: float = 1.0,
) -> Metrics:
    """Shuffle `samples` by `seed` and take one optimiser step on each of `minibatches` parts.

    `temperature` is the one that `samples` were sampled at. Returns the mean of what the steps report; nothing
    where there are no samples.
    """
    order = list(samples)
    random.Random(seed).shuffle(order)
    parts = [part for part in (order[i::minibatches] for i in range(minibatches)) if part]
    sums: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        metrics = trainer.forward_backward(part, loss, temperature=temperature) | trainer.optim_step(lr)
        for name, value in metrics.items():
            sums[name] += value / len(parts)
    return dict(sums)
