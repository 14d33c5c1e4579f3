"""Adapters: what they change, what they leave, and what they come to when they are merged."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from practicum.errors import PolicyRefused
from practicum.policies.local.lora import Adapters, adapter_state, add_adapters, load_adapters, merged
from practicum.policies.local.model import Decoder, ModelShape
from practicum.records.sample import Sample
from practicum.training.losses import cross_entropy
from practicum.training.trainer import Trainer

IDS = torch.tensor([[1, 5, 9, 2, 2, 7]])
MakeModel = Callable[[], Decoder]
ADAPTERS = Adapters(rank=3, alpha=6)


@pytest.fixture
def make_model() -> MakeModel:
    return lambda: Decoder(ModelShape(vocabulary=17, layers=1, width=16, heads=2, context=32), seed=2)


@pytest.fixture
def samples() -> list[Sample]:
    rng = random.Random(0)
    ids = [tuple(rng.randrange(17) for _ in range(8)) for _ in range(4)]
    return [Sample(each, (0,) * 3 + (1,) * 5, (0.0,) * 8, (0.0,) * 3 + (1.0,) * 5, 0) for each in ids]


def trained(model: Decoder, samples: list[Sample]) -> Decoder:
    add_adapters(model, ADAPTERS, seed=1)
    trainer = Trainer(model)
    for _ in range(3):
        trainer.forward_backward(samples, cross_entropy)
        trainer.optim_step(0.05)
    return model


def test_untrained_adapters_change_nothing(make_model: MakeModel) -> None:
    """Freshly added, they leave every hidden state as it was, bit for bit."""
    plain, adapted = make_model(), make_model()
    add_adapters(adapted, Adapters(4, 8))
    with torch.no_grad():
        assert torch.equal(plain(IDS), adapted(IDS))


def test_only_adapters_learn(make_model: MakeModel, samples: list[Sample]) -> None:
    """After some steps the base is what it was, the adapters are not, and the outcome differs."""
    plain, adapted = make_model(), trained(make_model(), samples)
    for name, value in plain.state_dict().items():
        there = name if name in adapted.state_dict() else name.replace(".weight", ".base.weight")
        assert torch.equal(adapted.state_dict()[there], value)
    assert all(float(value.abs().max()) > 0 for value in adapter_state(adapted).values())
    with torch.no_grad():
        assert not torch.allclose(plain(IDS), adapted(IDS), atol=1e-3)


def test_merged_weights_are_the_same_model(make_model: MakeModel, samples: list[Sample]) -> None:
    """A plain decoder with the merged weights computes what base and adapters do."""
    adapted, plain = trained(make_model(), samples), make_model()
    plain.load_state_dict(merged(plain.state_dict(), adapter_state(adapted), ADAPTERS), strict=True)
    with torch.no_grad():
        torch.testing.assert_close(plain(IDS), adapted(IDS), rtol=1e-4, atol=1e-5)


def test_adapters_are_put_back(make_model: MakeModel, samples: list[Sample]) -> None:
    """A fresh model with the state of trained adapters is the trained one; other states are refused."""
    adapted, again = trained(make_model(), samples), make_model()
    add_adapters(again, ADAPTERS, seed=9)
    load_adapters(again, adapter_state(adapted))
    with torch.no_grad():
        assert torch.equal(again(IDS), adapted(IDS))
    with pytest.raises(PolicyRefused, match="of another model"):
        load_adapters(again, {})
    wrong = {name: value[:1] for name, value in adapter_state(adapted).items()}
    with pytest.raises(PolicyRefused, match="is of size"):
        load_adapters(again, wrong)


def test_adapters_that_cannot_be(make_model: MakeModel) -> None:
    """An unknown projection, rank 0 and a second adapter are refused."""
    with pytest.raises(PolicyRefused, match="q_proj"):
        add_adapters(make_model(), Adapters(2, 2, ("q_proj",)))
    with pytest.raises(PolicyRefused, match="rank 0"):
        add_adapters(make_model(), Adapters(0, 2))
    model = make_model()
    add_adapters(model, Adapters(2, 2, ("qkv",)))
    with pytest.raises(PolicyRefused, match="adapter already"):
        add_adapters(model, Adapters(2, 2))
