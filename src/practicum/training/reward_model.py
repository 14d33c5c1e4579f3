"""A model of rewards: a decoder that reads an attempt and gives one number.

Owns: `reward_model_of`, `read_scores`, `scores_of`, saving and loading it.
Invariant: the number is read from the hidden state after the attempt's last sampled token, so it depends on nothing
that came later; the model that it is made from is not changed.
Must not know: where attempts come from, what the numbers are used for.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from practicum.errors import StoreError
from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches
from practicum.training.losses import TokenStreams

HEAD = "reward_head"


def reward_model_of(policy: Decoder) -> Decoder:
    """A copy of `policy` with a head that reads its hidden state out as one number, 0 at first."""
    model = copy.deepcopy(policy)
    head = nn.Linear(model.shape.width, 1, bias=False)
    nn.init.zeros_(head.weight)
    model.add_module(HEAD, head)
    return model


def last_alone(sample: Sample) -> Sample:
    """`sample` with its last sampled token alone in the mask: the place from which the number is read."""
    last = max(place for place, mask in enumerate(sample.loss_mask) if mask)
    return replace(sample, loss_mask=tuple(int(place == last) for place in range(len(sample.loss_mask))))


def read_scores(model: Decoder, batch: MicroBatch, temperature: float) -> TokenStreams:
    """A `Reading` that gives numbers [S] in place of log-probabilities, one for each row's token in the mask."""
    hidden = model(batch.ids, batch.lengths)
    scores = model.get_submodule(HEAD)(hidden[batch.trained]).squeeze(-1)
    return TokenStreams(scores, torch.zeros_like(scores), batch.behaviour_logprobs, batch.advantages, batch.rows)


@torch.no_grad()
def scores_of(model: Decoder, samples: Sequence[Sample], *, batch_tokens: int = 1024) -> list[float]:
    """The number that `model` gives to each of `samples`, in order."""
    found = [0.0] * len(samples)
    for batch in micro_batches([last_alone(sample) for sample in samples], max_tokens=batch_tokens):
        streams = read_scores(model, batch, 1.0)
        for row, score in zip(batch.rows.tolist(), streams.logprobs.tolist(), strict=True):
            found[batch.places[row]] = score
    return found


def save_reward_model(model: Decoder, path: Path) -> None:
    """Write the weights of `model` that were trained to the file `path`, whole or not at all."""
    from safetensors.torch import save_file

    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    tensors = {name: value.detach().clone() for name, value in model.state_dict().items() if name in trained}
    draft = path.with_name(f".tmp-{path.name}")
    save_file(tensors, draft)
    draft.rename(path)


def load_reward_model(policy: Decoder, path: Path) -> Decoder:
    """The model saved at `path`, upon `policy`, which it was made from. Raises `StoreError`."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    model = reward_model_of(policy)
    try:
        left = model.load_state_dict(load_file(path), strict=False)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise StoreError(f"cannot read the reward model {path}: {error}") from error
    if left.unexpected_keys:
        raise StoreError(f"the reward model {path} is of another model: it has {left.unexpected_keys[0]}")
    return model
