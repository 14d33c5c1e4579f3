"""What a loss is given and gives, and the two plainest losses over tokens.

Owns: `TokenStreams`, `LossSum`, `Loss`, cross-entropy and the clipped policy gradient.
Invariant: a loss is a sum over exactly the tokens it is given; the caller divides by the number of the loss's units in
the whole batch, so that accumulating micro-batches gives the gradient of the batch.
Must not know: models, optimisers, where log-probabilities come from.

All streams are [N], one entry per trained token (those whose `loss_mask` is 1), unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import torch
from torch import Tensor

Unit = Literal["token", "sequence", "pair"]


@dataclass(frozen=True, slots=True)
class TokenStreams:
    """What a loss may use, each [N]: trainer's log-probabilities (with gradient) and entropies, then the record.

    `sequences` [N] says to which row of the micro-batch a token belongs, 0 … S−1, in order; with pairs row 2i is the
    chosen and row 2i + 1 the rejected one. `reference_logprobs` are those of a fixed reference model, and
    `proximal_logprobs` the trainer's own before the update began; None where they were not asked for.
    """

    logprobs: Tensor
    entropies: Tensor
    behaviour_logprobs: Tensor
    advantages: Tensor
    sequences: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    reference_logprobs: Tensor | None = None
    proximal_logprobs: Tensor | None = None

    def of_rows(self, rows: Sequence[int]) -> TokenStreams:
        """Those of `rows`, which are in order; each keeps its number."""
        kept = torch.isin(self.sequences, torch.tensor(rows, device=self.sequences.device))
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: value[kept] for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True)
class LossSum:
    """A loss summed over its units, to be divided by the whole batch's count of them, and sums of what to watch."""

    total: Tensor
    watched: dict[str, float]


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss as data: `compute`, the unit over which the batch averages it, and the further streams that it needs.

    Losses of one `name` are of one scale: a step's is compared with those of the steps before it. Without a name the
    value says nothing of how well the model does (a surrogate's, whose sign and size are those of the advantages).
    """

    compute: Callable[[TokenStreams], LossSum]
    unit: Unit = "token"
    needs: frozenset[Literal["reference", "proximal"]] = frozenset()
    name: str = ""

    def __call__(self, streams: TokenStreams) -> LossSum:
        return self.compute(streams)


def _cross_entropy(streams: TokenStreams) -> LossSum:
    return LossSum(-(streams.advantages * streams.logprobs).sum(), {"entropy": float(streams.entropies.detach().sum())})


cross_entropy = Loss(_cross_entropy, name="cross-entropy")
"""Negative log-likelihood, each token weighted by its `advantages` entry (supervised fine-tuning)."""


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
        return LossSum(total, watched(streams, outside))

    return Loss(loss)


@torch.no_grad()
def watched(streams: TokenStreams, outside: Tensor) -> dict[str, float]:
    """Sums over tokens: entropy, the k3 estimator of KL(behaviour ‖ trainer), and how many are `outside` the bounds."""
    log_ratio = streams.logprobs - streams.behaviour_logprobs
    return {
        "entropy": float(streams.entropies.sum()),
        "kl": float((log_ratio.exp() - 1 - log_ratio).sum()),
        "clip_fraction": float(outside.sum()),
    }
