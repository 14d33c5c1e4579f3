"""Log-probabilities that a model gives to tokens that are already there.

Owns: `token_scores`, `token_streams`, `scored`.
Invariant: a token is scored from the hidden state before it, under the temperature that it was sampled at; the same
arithmetic serves the loss and the streams that are recorded for it.
Must not know: what a loss makes of them, optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches
from practicum.training.losses import TokenStreams
from practicum.training.precision import Precision, computing

Reading = Callable[[Decoder, MicroBatch, float], TokenStreams]
"""What a model is asked about a micro-batch, at a temperature: the streams that a loss is given."""


def token_scores(model: Decoder, batch: MicroBatch, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies [N] of the trained tokens of `batch`, with gradient."""
    hidden = model(batch.ids, batch.lengths)
    # The hidden state before a token predicts it; only trained tokens pay for the vocabulary.
    logits = model.logits(hidden[batch.trained - 1]) / temperature
    # In fewer bits than these log-probabilities would be off by more than a step changes them.
    logprobs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    entropies = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(-1, batch.ids[batch.trained, None]).squeeze(-1), entropies


def token_streams(model: Decoder, batch: MicroBatch, temperature: float) -> TokenStreams:
    """The streams of `batch` for the losses of a policy."""
    logprobs, entropies = token_scores(model, batch, temperature)
    return TokenStreams(
        logprobs,
        entropies,
        batch.behaviour_logprobs,
        batch.advantages,
        batch.rows,
        batch.reference_logprobs,
        batch.proximal_logprobs,
    )


@torch.no_grad()
def scored(
    model: Decoder,
    samples: Sequence[Sample],
    stream: Literal["reference", "proximal"],
    *,
    temperature: float = 1.0,
    batch_tokens: int = 1024,
    precision: Precision = "float32",
) -> list[Sample]:
    """`samples` in order, with `model`'s log-probabilities of their trained tokens as the named stream.

    `precision` is the one that they are compared at.
    """
    found: dict[int, list[float]] = {i: [0.0] * len(sample.input_ids) for i, sample in enumerate(samples)}
    for batch in micro_batches(samples, max_tokens=batch_tokens):
        with computing(precision):
            logprobs, _ = token_scores(model, batch, temperature)
        for row, column, value in zip(batch.rows.tolist(), batch.columns.tolist(), logprobs.tolist(), strict=True):
            found[batch.places[row]][column] = value
    if stream == "reference":
        return [replace(sample, reference_logprobs=tuple(found[i])) for i, sample in enumerate(samples)]
    return [replace(sample, proximal_logprobs=tuple(found[i])) for i, sample in enumerate(samples)]
