"""Losses as pure functions of per-token streams.

Owns: cross-entropy and the clipped policy gradient.
Invariant: a loss is a sum over exactly the tokens it is given; the caller divides by their number.
Must not know: models, optimisers, where log-probabilities come from.

All arguments are [N], one entry per trained token (those whose `loss_mask` is 1), unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TokenStreams:
    """What a loss may use, each [N]: trainer's log-probabilities (with gradient) and entropies, then the record."""

    logprobs: Tensor
    entropies: Tensor
    behaviour_logprobs: Tensor
    advantages: Tensor


@dataclass(frozen=True, slots=True)
class LossSum:
    """A loss summed over tokens, to be divided by the whole batch's token count, and sums of what to watch."""

    total: Tensor
    watched: dict[str, float]


Loss = Callable[[TokenStreams], LossSum]


def cross_entropy(streams: TokenStreams) -> LossSum:
    """Negative log-likelihood, each token weighted by its `advantages` entry (supervised fine-tuning)."""
    return LossSum(-(streams.advantages * streams.logprobs).sum(), {"entropy": float(streams.entropies.detach().sum())})


def clipped_policy_gradient(*, clip_low: float, clip_high: float, entropy_bonus: float = 0.0) -> Loss:
    """PPO's clipped surrogate (arXiv 1707.06347) with separate bounds (DAPO, arXiv 2503.14476), token-level.

    `ratio = exp(logprob − behaviour_logprob)`; per token `−min(ratio·A, clip(ratio, 1−low, 1+high)·A)`, minus
    `entropy_bonus` times the entropy. The denominator is the log-probability recorded when the token was sampled,
    so stale samples are corrected, not assumed on-policy.
    """

    def loss(streams: TokenStreams) -> LossSum:
        log_ratio = streams.logprobs - streams.behaviour_logprobs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
        surrogate = torch.minimum(ratio * streams.advantages, clipped * streams.advantages)
        total = -(surrogate + entropy_bonus * streams.entropies).sum()
        with torch.no_grad():
            outside = (ratio * streams.advantages > clipped * streams.advantages).float()
            watched = {
                "entropy": float(streams.entropies.sum()),
                "kl": float((ratio - 1 - log_ratio).sum()),  # k3 estimator of KL(behaviour ‖ trainer)
                "clip_fraction": float(outside.sum()),
            }
        return LossSum(total, watched)

    return loss
