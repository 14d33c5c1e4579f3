"""Log-probabilities that a model gives to tokens that are already there.

Owns: `token_scores`, `scored`.
Invariant: a token is scored from the hidden state before it, under the temperature that it was sampled at; the same
arithmetic serves the loss and the streams that are recorded for it.
Must not know: losses, optimisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches


def token_scores(model: Decoder, batch: MicroBatch, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies [N] of the trained tokens of `batch`, with gradient."""
    hidden = model(batch.ids)
    # The hidden state before a token predicts it; only trained tokens pay for the vocabulary.
    logits = model.logits(hidden[batch.rows, batch.columns - 1]) / temperature
    logprobs = logits.log_softmax(-1)
    entropies = -(logprobs.exp() * logprobs).sum(-1)
    targets = batch.ids[batch.rows, batch.columns]
    return logprobs.gather(-1, targets[:, None]).squeeze(-1), entropies


@torch.no_grad()
def scored(
    model: Decoder,
    samples: Sequence[Sample],
    stream: Literal["reference", "proximal"],
    *,
    temperature: float = 1.0,
    batch_tokens: int = 1024,
) -> list[Sample]:
    """`samples` in order, with `model`'s log-probabilities of their trained tokens as the named stream."""
    found: dict[int, list[float]] = {i: [0.0] * len(sample.input_ids) for i, sample in enumerate(samples)}
    for batch in micro_batches(samples, max_tokens=batch_tokens):
        logprobs, _ = token_scores(model, batch, temperature)
        for row, column, value in zip(batch.rows.tolist(), batch.columns.tolist(), logprobs.tolist(), strict=True):
            found[batch.places[row]][column] = value
    if stream == "reference":
        return [replace(sample, reference_logprobs=tuple(found[i])) for i, sample in enumerate(samples)]
    return [replace(sample, proximal_logprobs=tuple(found[i])) for i, sample in enumerate(samples)]
