"""A model as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.folder import save_folder
from practicum.policies.local.lora import Adapters, adapter_state, add_adapters
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.saved import Base, Saved, adapter_files, files_of
from practicum.policies.local.tiny import tiny_model, tiny_tokenizer
from practicum.policies.local.tokenizer import Tokenizer

TOKENIZER = Tokenizer(["total", " = "])


def saved(files: Mapping[str, str], weights: Mapping[str, Tensor]) -> Saved:
    return Saved(lambda _, name: files[name], lambda _: weights)


def test_round_trip() -> None:
    """The files and weights of a model make the same model and tokenizer."""
    model = Decoder(ModelShape(TOKENIZER.size, layers=1, width=16, heads=2, context=8), seed=4)
    again, renderer = saved(files_of(model, TOKENIZER), model.state_dict()).build(0)
    assert again.shape == model.shape
    assert isinstance(renderer, LocalRenderer)
    assert renderer.tokenizer.pieces == TOKENIZER.pieces
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(again(ids), model(ids))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.json", json.dumps({"architecture": "other"})),
        ("model.json", json.dumps({"architecture": "practicum-decoder-1", "vocabulary": 7, "depth": 3})),
        ("model.json", json.dumps({"architecture": "practicum-decoder-1", "vocabulary": 7})),
        ("model.json", "{"),
        ("model.json", "[]"),
        ("tokenizer.json", "{}"),
    ],
    ids=["architecture", "unknown key", "wrong shape", "not JSON", "no table", "tokenizer"],
)
def test_files_that_do_not_fit(name: str, text: str) -> None:
    """Files that are damaged, or do not fit the weights, are refused by name."""
    model = Decoder(ModelShape(TOKENIZER.size, layers=1, width=16, heads=2, context=8))
    files = files_of(model, TOKENIZER) | {name: text}
    with pytest.raises(PolicyRefused, match=name):
        saved(files, model.state_dict()).build(0)


@pytest.fixture
def base(tmp_path: Path) -> Base:
    model = tiny_model()
    save_folder(model, tiny_tokenizer(), tmp_path, model.state_dict())
    return Base(tmp_path, context=48, speech="fence")


def test_adapters_upon_a_base(base: Base) -> None:
    """What stands on a pretrained model comes back as one plain decoder that computes the same, version by version."""
    adapters = Adapters(rank=2, alpha=4.0, targets=("qkv", "down"))
    model, _, renderer = base.load()
    add_adapters(model, adapters, seed=3)
    files, versions = adapter_files(base, base.digest, adapters), {0: adapter_state(model)}
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1)
    versions[1] = adapter_state(model)
    kept = Saved(lambda _, name: files[name], versions.__getitem__)
    ids = torch.tensor([renderer.encode("the end")])
    first, _ = kept.build(0)
    second, again = kept.build(1)
    with torch.no_grad():
        assert torch.equal(first(ids), tiny_model()(ids))
        torch.testing.assert_close(second(ids), model(ids), rtol=1e-4, atol=1e-5)
    assert first.shape.context == 48
    assert again.encode("the end") == renderer.encode("the end")  # type: ignore[attr-defined]


def test_adapters_upon_another_base(base: Base) -> None:
    """A base that is no longer what it was, a speech that there is not and adapters that do not fit are refused."""
    adapters = Adapters(rank=2, alpha=4.0)
    model, _, _ = base.load()
    add_adapters(model, adapters)
    state = adapter_state(model)
    with pytest.raises(PolicyRefused, match="not the model that these adapters"):
        saved(adapter_files(base, "0" * 64, adapters), state).build(0)
    with pytest.raises(PolicyRefused, match="'mime'"):
        saved(adapter_files(replace(base, speech="mime"), base.digest, adapters), state).build(0)
    with pytest.raises(PolicyRefused, match="does not fit"):
        saved(adapter_files(base, base.digest, adapters), {k: v[:1] for k, v in state.items()}).build(0)
