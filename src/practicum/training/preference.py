"""Losses over pairs of a chosen and a rejected answer, and the losses of models that give a number.

Owns: DPO, SimPO, Bradley–Terry, the value loss.
Invariant: swapping the two answers of a pair turns the sign of the margin and nothing else.
Must not know: models, optimisers, how pairs were made.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from practicum.errors import TrainerError
from practicum.training.losses import Loss, LossSum, TokenStreams
from practicum.training.surrogates import sequence_means, sequence_sums


def direct_preference(*, beta: float, label_smoothing: float = 0.0) -> Loss:
    """DPO (arXiv 2305.18290, eq. 7): `−log σ(β·m)`, m = how much more the chosen answer gained on the reference.

    `m = (Σ logprob − Σ reference)_chosen − (…)_rejected`. `label_smoothing` ε mixes in the loss of the swapped pair,
    for labels that are wrong with probability ε (cDPO).
    """

    def loss(streams: TokenStreams) -> LossSum:
        if streams.reference_logprobs is None:
            raise TrainerError("DPO needs the reference's log-probabilities")
        gained = sequence_sums(streams.logprobs - streams.reference_logprobs, streams.sequences)
        margin = beta * (gained[0::2] - gained[1::2])
        return _of_margin(margin, label_smoothing)

    return Loss(loss, unit="pair", needs=frozenset({"reference"}), name="dpo")


def simple_preference(*, beta: float, gamma: float) -> Loss:
    """SimPO (arXiv 2405.14734, eq. 6), without a reference: `−log σ(β·(mean logprob)_chosen − β·(…)_rejected − γ)`."""

    def loss(streams: TokenStreams) -> LossSum:
        means = sequence_means(streams.logprobs, streams.sequences)
        return _of_margin(beta * (means[0::2] - means[1::2]) - gamma, 0.0)

    return Loss(loss, unit="pair", name="simpo")


def bradley_terry(scores: Tensor, *, margin: float = 0.0) -> LossSum:
    """A reward model's loss over `scores` [2P], chosen and rejected in turn.

    `Σ −log σ(s_chosen − s_rejected − margin)`: Bradley and Terry (1952); Llama 2's margin (arXiv 2307.09288, eq. 2).
    """
    return _of_margin(scores[0::2] - scores[1::2] - margin, 0.0)


bradley_terry_loss = Loss(lambda streams: bradley_terry(streams.logprobs), unit="pair", name="bradley-terry")
"""`bradley_terry` for a trainer that reads scores in place of log-probabilities (`reward_model.read_scores`)."""


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, *, clip: float) -> LossSum:
    """A critic's loss, all [N]: `Σ ½·max((v − R)², (clip(v, old ± clip) − R)²)`, as in PPO's own code."""
    held = old_values + (values - old_values).clamp(-clip, clip)
    squares = torch.maximum((values - returns) ** 2, (held - returns) ** 2)
    with torch.no_grad():
        outside = float(((values - old_values).abs() > clip).float().sum())
    return LossSum(0.5 * squares.sum(), {"value_clip_fraction": outside})


def _of_margin(margin: Tensor, smoothing: float) -> LossSum:
    total = -((1 - smoothing) * F.logsigmoid(margin) + smoothing * F.logsigmoid(-margin)).sum()
    seen = margin.detach()
    return LossSum(total, {"margin": float(seen.sum()), "accuracy": float((seen > 0).float().sum())})
