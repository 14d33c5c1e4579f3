"""One policy-gradient update: trajectories in, a step on the weights.

Owns: from groups to samples with advantages, minibatches, the watched figures.
Invariant: a masked attempt reaches neither the statistics nor the loss; a group without signal is left out.
Must not know: boxes, how trajectories were made.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from practicum.records.sample import Sample, samples_from
from practicum.records.trajectory import Trajectory
from practicum.training.advantages import shaped_turns, turn_advantages
from practicum.training.losses import Loss
from practicum.training.methods import ADVANTAGES, Advantages
from practicum.training.trainer import Metrics, Trainer, mean_of


@dataclass(frozen=True, slots=True)
class Selection:
    """What may train of a batch. `with_signal` of `groups` have credit to give; `masked` attempts are left out.

    `partial` groups had too few unmasked attempts, and were left out whole. `trained` names the attempts of `samples`.
    """

    samples: list[Sample]
    groups: int
    with_signal: int
    masked: int
    partial: int = 0
    trained: frozenset[str] = frozenset()


def select(
    trajectories: Sequence[Trajectory], advantages: Advantages = ADVANTAGES["group"], *, size: int = 1
) -> Selection:
    """Samples of every group of `trajectories` to which `advantages` gives credit, in the order given.

    A group with fewer than `size` unmasked attempts does not train: what was lost need not be like what is left.
    """
    groups, rewards, partial = _groups(trajectories, size)
    samples, trained = list[Sample](), set[str]()
    with_signal = masked = 0
    for members, given, credits in zip(groups, rewards, advantages(rewards), strict=True):
        masked += given.count(None)
        with_signal += any(credit is not None for credit in credits)
        for member, advantage in zip(members, credits, strict=True):
            if advantage is not None:
                samples += samples_from(member, advantage)
                trained.add(member.id)
    return Selection(samples, len(groups), with_signal, masked, partial, frozenset(trained))


def select_by_turn(
    trajectories: Sequence[Trajectory], potentials: Mapping[str, Sequence[float] | None], *, size: int = 1
) -> Selection:
    """Samples with credit by turn: the outcome, paid at the end, shaped by differences of potential.

    `potentials` by id are those of the states before each turn and after the last; an attempt without is shaped by
    none. As in `select`, masked attempts are in no statistic, and groups of fewer than `size` unmasked do not train.
    """
    groups, given, partial = _groups(trajectories, size)
    samples, trained = list[Sample](), set[str]()
    with_signal = masked = 0
    for members, each in zip(groups, given, strict=True):
        rewards = [reward if member.turns else None for member, reward in zip(members, each, strict=True)]
        shaping = [shaped_turns(potentials.get(m.id) or [0.0] * (len(m.turns) + 1)) for m in members]
        credits = turn_advantages(rewards, shaping)
        masked += rewards.count(None)
        with_signal += any(credit is not None for credit in credits)
        for member, credit in zip(members, credits, strict=True):
            if credit is not None:
                samples += samples_from(member, credit)
                trained.add(member.id)
    return Selection(samples, len(groups), with_signal, masked, partial, frozenset(trained))


def _groups(
    trajectories: Sequence[Trajectory], size: int
) -> tuple[list[list[Trajectory]], list[list[float | None]], int]:
    """Groups in order, the rewards of each (none where it is partial), and how many are partial."""
    members: defaultdict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        members[trajectory.group_id].append(trajectory)
    groups, rewards, partial = list(members.values()), list[list[float | None]](), 0
    for group in groups:
        given = [member.reward for member in group]
        whole = len(given) - given.count(None) >= size
        partial += not whole
        rewards.append(given if whole else [None] * len(given))
    return groups, rewards, partial


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

    `temperature` is the one that `samples` were sampled at. Returns the mean of what the steps report that were taken;
    nothing where there are no samples.
    """
    order = list(samples)
    random.Random(seed).shuffle(order)
    parts = [part for part in (order[i::minibatches] for i in range(minibatches)) if part]
    return mean_of([trainer.step(part, loss, lr=lr, temperature=temperature) for part in parts])
