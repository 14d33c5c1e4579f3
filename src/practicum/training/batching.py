"""Samples packed into micro-batches by token budget, without padding.

Owns: which samples share a micro-batch, and the flat row that they become.
Invariant: every token of every sample is in exactly one micro-batch, once, and nothing else is; samples that belong
together are in the same one, side by side. A micro-batch holds at most the budget's tokens unless what belongs together
exceeds it alone.
Must not know: losses, models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from practicum.errors import TrainerError
from practicum.records.sample import Sample


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """`ids` [T]: sequences of `lengths` one after the other, each a sample; `places` are theirs among those given.

    `rows` [N] say to which sequence each trained token belongs, `columns` [N] where it stands in it, and `trained` [N]
    where in `ids`. The other streams [N] belong to those tokens, None where no sample has them.
    """

    ids: Tensor
    lengths: tuple[int, ...]
    places: tuple[int, ...]
    rows: Tensor
    columns: Tensor
    trained: Tensor
    behaviour_logprobs: Tensor
    advantages: Tensor
    reference_logprobs: Tensor | None
    proximal_logprobs: Tensor | None


def micro_batches(samples: Sequence[Sample], *, max_tokens: int, together: int = 1) -> list[MicroBatch]:
    """Pack `samples` into micro-batches of at most `max_tokens` tokens, from short to long.

    Every `together` samples that follow one another stay side by side, in order. Samples without a token to train on
    cost a pass and teach nothing: they are left out. Raises `TrainerError` where a sample's first token is to train
    (nothing precedes it, so nothing predicts it), where samples that belong together are not all there or hold no token
    to train on, or where only some samples have a further stream.
    """
    if any(sample.loss_mask[:1] == (1,) for sample in samples):
        raise TrainerError("a sample's first token cannot train: no token precedes it")
    teaches = [any(sample.loss_mask) for sample in samples]
    if together > 1:
        if len(samples) % together:
            raise TrainerError(f"{len(samples)} samples cannot be taken {together} at a time")
        if not all(teaches):
            raise TrainerError("an answer of a pair holds no token to train on")
    units = [range(start, start + together) for start in range(0, len(samples), together) if teaches[start]]
    tokens = {unit.start: sum(len(samples[i].input_ids) for i in unit) for unit in units}
    groups: list[list[int]] = []
    room = 0
    for unit in sorted(units, key=lambda unit: (tokens[unit.start], unit.start)):
        if not groups or tokens[unit.start] > room:
            groups.append([])
            room = max_tokens
        groups[-1] += unit
        room -= tokens[unit.start]
    return [_pack(samples, group) for group in groups]


def _pack(everything: Sequence[Sample], group: Sequence[int]) -> MicroBatch:
    samples = [everything[i] for i in group]
    lengths = tuple(len(sample.input_ids) for sample in samples)
    starts = torch.tensor([0, *accumulate(lengths)])
    places = [(row, column) for row, s in enumerate(samples) for column, m in enumerate(s.loss_mask) if m]
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
        torch.tensor([i for sample in samples for i in sample.input_ids], dtype=torch.long),
        lengths,
        tuple(group),
        rows,
        columns,
        starts[rows] + columns,
        stream([sample.behaviour_logprobs for sample in samples]),
        stream([sample.advantages for sample in samples]),
        further("reference", [sample.reference_logprobs for sample in samples]),
        further("proximal", [sample.proximal_logprobs for sample in samples]),
    )
