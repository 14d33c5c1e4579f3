"""Samples to padded micro-batches by token budget.

Owns: grouping by length and padding.
Invariant: every sample is in exactly one micro-batch, and samples that belong together in the same one, side by side;
the cost of a micro-batch (rows × longest) stays within the budget unless what belongs together exceeds it.
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
    streams [N] belong to those tokens, None where no sample has them. `places` [B] are the rows' places among the
    samples that were given."""

    ids: Tensor
    rows: Tensor
    columns: Tensor
    behaviour_logprobs: Tensor
    advantages: Tensor
    reference_logprobs: Tensor | None
    proximal_logprobs: Tensor | None
    places: tuple[int, ...]


def micro_batches(samples: Sequence[Sample], *, max_tokens: int, together: int = 1) -> list[MicroBatch]:
    """Split `samples` into micro-batches of at most `max_tokens` padded tokens, similar lengths together.

    Every `together` samples that follow one another stay side by side, in order. Raises `TrainerError` where a sample's
    first token is to train (nothing precedes it, so nothing predicts it), where samples that belong together are not
    all there or hold no token to train on, or where only some samples have a further stream.
    """
    if any(sample.loss_mask[:1] == (1,) for sample in samples):
        raise TrainerError("a sample's first token cannot train: no token precedes it")
    if together > 1:
        if len(samples) % together:
            raise TrainerError(f"{len(samples)} samples cannot be taken {together} at a time")
        if not all(any(sample.loss_mask) for sample in samples):
            raise TrainerError("an answer of a pair holds no token to train on")
    units = [range(start, start + together) for start in range(0, len(samples), together)]
    longest = {unit.start: max(len(samples[i].input_ids) for i in unit) for unit in units}
    groups: list[list[int]] = []
    for unit in sorted(units, key=lambda unit: (longest[unit.start], unit.start)):
        if groups and (len(groups[-1]) + together) * longest[unit.start] <= max_tokens:
            groups[-1] += unit
        else:
            groups.append([*unit])
    return [_pad(samples, group) for group in groups]


def _pad(everything: Sequence[Sample], group: Sequence[int]) -> MicroBatch:
    samples = [everything[i] for i in group]
    longest = max(len(sample.input_ids) for sample in samples)
    ids = torch.zeros((len(samples), longest), dtype=torch.long)
    places = [(row, column) for row, s in enumerate(samples) for column, m in enumerate(s.loss_mask) if m]
    for row, sample in enumerate(samples):
        ids[row, : len(sample.input_ids)] = torch.tensor(sample.input_ids)
    rows, columns = torch.tensor(places, dtype=torch.long).reshape(-1, 2).unbind(1)

    def stream(values: Sequence[tuple[float, ...]]) -> Tensor:
        return torch.tensor([values[r][c] for r, c in places], dtype=torch.float32)

    def further(name: str, values: Sequence[tuple[float, ...]]) -> Tensor | None:
        if not any(values):
            return None
        if not all(values):
            raise TrainerError(f"only some samples of a batch have {name} log-probabilities")
        return stream(values)

    return MicroBatch(
        ids,
        rows,
        columns,
        stream([sample.behaviour_logprobs for sample in samples]),
        stream([sample.advantages for sample in samples]),
        further("reference", [sample.reference_logprobs for sample in samples]),
        further("proximal", [sample.proximal_logprobs for sample in samples]),
        tuple(group),
    )
