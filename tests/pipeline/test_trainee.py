"""The model that a run trains: what is stored of it, taken back, and refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from practicum.config.learning import PolicyConfig
from practicum.errors import PolicyRefused
from practicum.pipeline.trainee import adapted, base_of, check_model, own_decoder
from practicum.policies.local.tokenizer import Tokenizer
from practicum.policies.local.trainee import Trainee, held
from practicum.tasks.functions import FunctionsSpec, generate_functions

if TYPE_CHECKING:
    from pipeline.conftest import Pretrain


@pytest.fixture
def folder(tmp_path: Path, pretrain: Pretrain) -> Path:
    """A pretrained model that knows nothing."""
    return pretrain(generate_functions(FunctionsSpec(train=1, validation=1, test=1))[:1], tmp_path / "model", steps=0)


def trainee_of(kind: str, folder: Path) -> Trainee:
    if kind == "own":
        small = PolicyConfig(layers=1, width=16, heads=2, context=32)
        return own_decoder(small, Tokenizer.train(["text"], size=300), seed=0)
    policy = PolicyConfig(model=str(folder), speech="fence", adapter_rank=2, context=64)
    base = base_of(policy)
    assert base is not None
    return adapted(policy, base, seed=0)


@pytest.mark.parametrize("kind", ["own", "adapted"])
def test_an_earlier_state_can_be_looked_at(kind: str, folder: Path) -> None:
    """While it is held the model computes what it did then, and afterwards it is what it was, bit for bit."""
    trainee, ids = trainee_of(kind, folder), torch.tensor([[1, 2, 3]])
    first, before = trainee.state(), trainee.model(ids)
    with torch.no_grad():
        for parameter in trainee.model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1)
    changed, after = trainee.state(), trainee.model(ids)
    assert not torch.equal(before, after)
    with held(trainee, first) as model:
        assert torch.equal(model(ids), before)
    assert torch.equal(trainee.model(ids), after)
    assert all(torch.equal(value, changed[name]) for name, value in trainee.state().items())


def test_only_adapters_are_the_state(folder: Path) -> None:
    """Of a pretrained model nothing is stored but the adapters, and the base is named by its digest."""
    trainee = trainee_of("adapted", folder)
    assert {name.rpartition(".")[2] for name in trainee.state()} == {"a", "b"}
    files = trainee.files()
    trainee.take(trainee.state(), files)
    other = {"model.json": files["model.json"].replace('"base_digest": "', '"base_digest": "0')}
    with pytest.raises(PolicyRefused, match="is not the model that this run was started upon"):
        trainee.take(trainee.state(), other)


@pytest.mark.parametrize("kind", ["own", "adapted"])
def test_another_process_speaks_alike(kind: str, folder: Path) -> None:
    """The renderer that a worker makes for itself gives the trainee's own ids."""
    trainee = trainee_of(kind, folder)
    said = trainee.speaker.renderer()
    assert said.encode("text") == trainee.renderer.encode("text")
    assert said.stop_ids == trainee.renderer.stop_ids


@pytest.mark.parametrize("missing", ["tokenizer.json", "config.json", "model.safetensors"])
def test_a_folder_that_lacks_a_part_is_refused(missing: str, folder: Path) -> None:
    """What cannot be loaded is refused by the name of what is missing, before anything is read."""
    policy = PolicyConfig(model=str(folder), context=64)
    check_model(policy)
    (folder / missing).unlink()
    with pytest.raises(PolicyRefused, match=missing):
        check_model(policy)


def test_a_context_that_is_too_long_is_refused(folder: Path) -> None:
    """A pretrained model is not stretched beyond what it was made for."""
    with pytest.raises(PolicyRefused, match="made for"):
        check_model(PolicyConfig(model=str(folder), context=10_000))
