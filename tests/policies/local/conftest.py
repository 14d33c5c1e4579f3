"""Small models on one thread: they are faster so, and two test processes do not fight for the cores."""

from __future__ import annotations

import pytest
import torch

from practicum.policies.local.model import Decoder, ModelShape

torch.set_num_threads(1)

SHAPE = ModelShape(vocabulary=40, layers=2, width=32, heads=4, context=48)


@pytest.fixture
def model() -> Decoder:
    return sharp(Decoder(SHAPE, seed=1))


def sharp(model: Decoder) -> Decoder:
    """Weights far enough from zero that positions, prompts and temperatures make a difference."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8.0)
    return model
