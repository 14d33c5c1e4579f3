"""Further policy-gradient losses, and what may be laid around any of them.

Owns: GSPO, CISPO, importance correction, the penalty for leaving a reference.
Invariant: what wraps a loss leaves its unit and its bounds alone; a weight of 0 takes a token out of it altogether.
Must not know: models, optimisers, where log-probabilities come from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from practicum.errors import TrainerError
from practicum.training.losses import Loss, LossSum, TokenStreams, watched

Level = Literal["token", "sequence"]
Mode = Literal["truncate", "mask"]


def sequence_sums(values: Tensor, sequences: Tensor) -> Tensor:
    """[S] sums of `values` [N] by row; differentiable. S is the largest index + 1, and 0 where there is none."""
    count = int(sequences.max()) + 1 if len(sequences) else 0
    return values.new_zeros(count).index_add(0, sequences, values)


def sequence_means(values: Tensor, sequences: Tensor) -> Tensor:
    """[S] means of `values` [N] by row; 0 for a row without tokens."""
    return sequence_sums(values, sequences) / sequence_sums(torch.ones_like(values), sequences).clamp(min=1)


def group_sequence_policy(*, clip_low: float, clip_high: float) -> Loss:
    """GSPO (arXiv 2507.18071, eq. 5): the ratio is a sequence's, the geometric mean over its tokens.

    `s = exp(mean_t(logprob − behaviour_logprob))`; per sequence `−min(s·A, clip(s, 1−low, 1+high)·A)`, where A is the
    mean of its tokens' advantages. Averaged over sequences.
    """

    def loss(streams: TokenStreams) -> LossSum:
        log_ratio = streams.logprobs - streams.behaviour_logprobs
        ratio = sequence_means(log_ratio, streams.sequences).exp()
        advantages = sequence_means(streams.advantages, streams.sequences)
        clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
        surrogate = torch.minimum(ratio * advantages, clipped * advantages)
        with torch.no_grad():
            outside = (ratio * advantages > clipped * advantages).float()
        return LossSum(-surrogate.sum(), watched(streams, outside[streams.sequences]))

    return Loss(loss, unit="sequence")


def clipped_importance_sampling(*, clip_low: float, clip_high: float) -> Loss:
    """CISPO (arXiv 2506.13585, eq. 4): the weight is clipped and held fixed, and every token keeps its gradient.

    Per token `−sg(clip(ratio, 1−low, 1+high))·A·logprob`, where sg stops the gradient. `clip_low` 1 or more leaves
    the weight unbounded below, as the paper does.
    """

    def loss(streams: TokenStreams) -> LossSum:
        ratio = (streams.logprobs - streams.behaviour_logprobs).detach().exp()
        weight = ratio.clamp(max(0.0, 1 - clip_low), 1 + clip_high)
        total = -(weight * streams.advantages * streams.logprobs).sum()
        return LossSum(total, watched(streams, (weight != ratio).float()))

    return Loss(loss)


def importance_weights(
    proximal: Tensor, behaviour: Tensor, sequences: Tensor, *, level: Level, mode: Mode, bound: float
) -> Tensor:
    """[N] weights `w = π_proximal / π_behaviour` of stale or mismatched samples, held within `bound` > 1.

    `level` says whose ratio it is: a token's own, or its sequence's product. "truncate" takes `min(w, bound)`
    (truncated importance sampling, Ionides 2008); "mask" takes w inside [1/bound, bound] and 0 outside.
    """
    if not bound > 1:
        raise ValueError(f"the bound of importance weights is {bound}; it must be above 1")
    log_ratio = (proximal - behaviour).detach()
    if level == "sequence":
        log_ratio = sequence_sums(log_ratio, sequences)[sequences]
    ratio = log_ratio.exp()
    if mode == "truncate":
        return ratio.clamp(max=bound)
    return torch.where((ratio <= bound) & (ratio >= 1 / bound), ratio, torch.zeros_like(ratio))


def corrected(loss: Loss, *, level: Level, mode: Mode, bound: float) -> Loss:
    """`loss` against the trainer's own log-probabilities before the update, weighted back to the sampler's.

    The surrogate's ratio is `π / π_proximal`, so its bounds speak of the update alone, and `π_proximal / π_behaviour`
    goes into the advantages (decoupled PPO, arXiv 2110.00641). Watches the share of tokens that the bound changed.
    """

    def compute(streams: TokenStreams) -> LossSum:
        if streams.proximal_logprobs is None:
            raise TrainerError("importance correction needs the trainer's log-probabilities before the update")
        proximal, behaviour = streams.proximal_logprobs, streams.behaviour_logprobs
        weights = importance_weights(proximal, behaviour, streams.sequences, level=level, mode=mode, bound=bound)
        plain = importance_weights(
            proximal, behaviour, streams.sequences, level=level, mode="truncate", bound=float("inf")
        )
        result = loss(replace(streams, advantages=streams.advantages * weights, behaviour_logprobs=proximal))
        return replace(result, watched={**result.watched, "bounded": float((weights != plain).float().sum())})

    return Loss(compute, loss.unit, loss.needs | {"proximal"})


def with_reference(loss: Loss, *, coefficient: float) -> Loss:
    """`loss` plus `coefficient` times the k3 estimator of KL(trainer ‖ reference), by token.

    `k3 = exp(d) − d − 1` with `d = reference − logprob` (Schulman 2020; GRPO, arXiv 2402.03300, eq. 4): never
    negative, and 0 only where both agree. In a loss by sequence it is the mean over the sequence's tokens.
    """

    def compute(streams: TokenStreams) -> LossSum:
        if streams.reference_logprobs is None:
            raise TrainerError("a penalty for leaving the reference needs the reference's log-probabilities")
        result = loss(streams)
        difference = streams.reference_logprobs - streams.logprobs
        penalty = difference.exp() - difference - 1
        total = penalty.sum() if loss.unit == "token" else sequence_means(penalty, streams.sequences).sum()
        seen = {**result.watched, "reference_kl": float(penalty.detach().sum())}
        return LossSum(result.total + coefficient * total, seen)

    return Loss(compute, loss.unit, loss.needs | {"reference"})
