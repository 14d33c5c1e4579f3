"""Small models on one thread, and samples to train them on."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from practicum.policies.local.model import Decoder, ModelShape
from practicum.records.sample import Sample

torch.set_num_threads(1)

SHAPE = ModelShape(vocabulary=17, layers=1, width=16, heads=2, context=32)


@pytest.fixture
def make_model() -> Callable[[], Decoder]:
    return lambda: Decoder(SHAPE, seed=2)


@pytest.fixture
def samples() -> list[Sample]:
    rng = random.Random(0)
    made: list[Sample] = []
    for _ in range(7):
        length = rng.randint(2, 12)
        mask = [0, *(rng.randint(0, 1) for _ in range(length - 2)), 1]
        ids = tuple(rng.randrange(SHAPE.vocabulary) for _ in range(length))
        logprobs = tuple(m * rng.uniform(-3.2, -2.4) for m in mask)
        made.append(Sample(ids, tuple(mask), logprobs, tuple(m * rng.uniform(-1, 1) for m in mask), 0))
    return made
