"""A model as files."""

from __future__ import annotations

import json

import pytest
import torch

from practicum.errors import PolicyRefused
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.saved import build, files_of
from practicum.policies.local.tokenizer import Tokenizer

TOKENIZER = Tokenizer(["total", " = "])


def test_round_trip() -> None:
    """The files and weights of a model make the same model and tokenizer."""
    model = Decoder(ModelShape(TOKENIZER.size, layers=1, width=16, heads=2, context=8), seed=4)
    again, tokenizer = build(files_of(model, TOKENIZER).__getitem__, model.state_dict())
    assert again.shape == model.shape
    assert tokenizer.pieces == TOKENIZER.pieces
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
        build(files.__getitem__, model.state_dict())
