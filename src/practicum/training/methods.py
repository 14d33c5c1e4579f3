"""Which update is made: the names that a configuration uses, and what they stand for.

Owns: `LOSSES`, `ADVANTAGES`, `STUDIES`, `Method`, `method_of`.
Invariant: every name of the configuration is in a table here; what is laid around a loss is laid in one order, the
importance correction inside and the penalty for leaving the reference outside.
Must not know: models, how samples were made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from practicum.config.learning import RlConfig, StudyConfig
from practicum.training.advantages import Credits, Rewards, batch_advantages, group_advantages, leave_one_out
from practicum.training.losses import Loss, clipped_policy_gradient, cross_entropy
from practicum.training.preference import direct_preference, simple_preference
from practicum.training.surrogates import (
    Level,
    Mode,
    clipped_importance_sampling,
    corrected,
    group_sequence_policy,
    with_reference,
)

Advantages = Callable[[Sequence[Rewards]], list[Credits]]
"""From the rewards of the groups of a batch to their credits, in the same shape."""


def by_group(credit: Callable[[Rewards], Credits]) -> Advantages:
    """`credit` of each group by itself."""
    return lambda groups: [credit(rewards) for rewards in groups]


def _ppo(rl: RlConfig) -> Loss:
    return clipped_policy_gradient(clip_low=rl.clip_low, clip_high=rl.clip_high, entropy_bonus=rl.entropy_bonus)


LOSSES: Mapping[str, Callable[[RlConfig], Loss]] = {
    "ppo": _ppo,
    "gspo": lambda rl: group_sequence_policy(clip_low=rl.clip_low, clip_high=rl.clip_high),
    "cispo": lambda rl: clipped_importance_sampling(clip_low=rl.clip_low, clip_high=rl.clip_high),
}
STUDIES: Mapping[str, Callable[[StudyConfig], Loss]] = {
    "cross-entropy": lambda study: cross_entropy,
    "dpo": lambda study: direct_preference(beta=study.beta, label_smoothing=study.label_smoothing),
    "simpo": lambda study: simple_preference(beta=study.beta, gamma=study.gamma),
}
ADVANTAGES: Mapping[str, Advantages] = {
    "group": by_group(group_advantages),
    "group-unscaled": by_group(partial(group_advantages, scale=False)),
    "leave-one-out": by_group(leave_one_out),
    "batch": batch_advantages,
}
IMPORTANCE: Mapping[str, tuple[Level, Mode] | None] = {
    "none": None,
    "token-truncate": ("token", "truncate"),
    "token-mask": ("token", "mask"),
    "sequence-truncate": ("sequence", "truncate"),
    "sequence-mask": ("sequence", "mask"),
}


@dataclass(frozen=True, slots=True)
class Method:
    """How credit is given, and what is made small."""

    advantages: Advantages
    loss: Loss


def method_of(rl: RlConfig) -> Method:
    """What `rl` asks for."""
    loss = LOSSES[rl.loss](rl)
    how = IMPORTANCE[rl.importance]
    if how is not None:
        loss = corrected(loss, level=how[0], mode=how[1], bound=rl.importance_bound)
    if rl.reference_kl:
        loss = with_reference(loss, coefficient=rl.reference_kl)
    return Method(ADVANTAGES[rl.advantage], loss)
