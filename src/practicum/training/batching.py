"""Samples to padded micro-batches by token budget.

Owns: grouping by length and padding.
Invariant: every sample is in exactly one micro-batch; the cost of a micro-batch (rows × longest) stays within the
budget unless a single sample exceeds it.
Must not know: losses, models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from practicum.errors import TrainerError
from practicum.records.sample import Sample


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """`ids` [B, T], right-padded with 0. `rows`, `columns` [N] point at the trained tokens in it; the other
    streams [N] belong to those tokens."""

    ids: Tensor
    rows: Tensor
    columns: Tensor
    behaviour_logprobs: Tensor
    advantages: Tensor


def micro_batches(samples: Sequence[Sample], *, max_tokens: int) -> list[MicroBatch]:
    """Split `samples` into micro-batches of at most `max_tokens` padded tokens, similar lengths together.

    Raises `TrainerError` where a sample's first token is to train: nothing precedes it, so nothing predicts it.
    """
    if any(sample.loss_mask[:1] == (1,) for sample in samples):
        raise TrainerError("a sample's first token cannot train: no token precedes it")
    order = sorted(range(len(samples)), key=lambda i: (len(samples[i].input_ids), i))
    groups: list[list[Sample]] = []
    for i in order:
        longest = len(samples[i].input_ids)
        if groups and (len(groups[-1]) + 1) * longest <= max_tokens:
            groups[-1].append(samples[i])
        else:
            groups.append([samples[i]])
    return [_pad(group) for group in groups]


def _pad(samples: Sequence[Sample]) -> MicroBatch:
    longest = max(len(sample.input_ids) for sample in samples)
    ids = torch.zeros((len(samples), longest), dtype=torch.long)
    places = [(row, column) for row, s in enumerate(samples) for column, m in enumerate(s.loss_mask) if m]
    for row, sample in enumerate(samples):
        ids[row, : len(sample.input_ids)] = torch.tensor(sample.input_ids)
    rows, columns = torch.tensor(places, dtype=torch.long).reshape(-1, 2).unbind(1)
    behaviour = torch.tensor([samples[r].behaviour_logprobs[c] for r, c in places], dtype=torch.float32)
    advantages = torch.tensor([samples[r].advantages[c] for r, c in places], dtype=torch.float32)
    return MicroBatch(ids, rows, columns, behaviour, advantages)
