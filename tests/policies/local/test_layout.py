"""Weights in the order of others, against Hugging Face's own arithmetic written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.layout import config_of, from_llama, shape_of, to_llama
from practicum.policies.local.model import Decoder
from practicum.policies.local.tiny import tiny_model, tiny_shape

CONFIG = config_of(tiny_shape())


@pytest.mark.parametrize("tied", [True, False])
def test_there_and_back(tied: bool) -> None:
    """Weights that were put in Llama's order and back are the same bit for bit, and so is the shape."""
    made = tiny_model(tied=tied)
    theirs = to_llama(made.state_dict(), made.shape)
    ours = from_llama(theirs, made.shape, "test")
    assert ours.keys() == made.state_dict().keys()
    assert all(torch.equal(ours[name], value) for name, value in made.state_dict().items())
    assert shape_of(config_of(made.shape), "test") == made.shape


def llama(weights: dict[str, Tensor], ids: list[int]) -> np.ndarray:
    """Hidden states [T, width] by Llama's own arithmetic: pairs of dimensions i and i + half are turned."""
    at, w = tiny_shape(), {name: value.double().numpy() for name, value in weights.items()}
    width = at.head_width

    def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = x / np.sqrt((x**2).mean(-1, keepdims=True) + at.epsilon) * weight
        return scaled

    def turned(x: np.ndarray) -> np.ndarray:  # [T, heads, width]
        angles = np.arange(len(x))[:, None] * at.theta ** (-np.arange(width // 2) / (width // 2))
        cos, sin = (np.concatenate([f(angles), f(angles)], -1)[:, None] for f in (np.cos, np.sin))
        halves = np.concatenate([-x[..., width // 2 :], x[..., : width // 2]], -1)
        out: np.ndarray = x * cos + halves * sin
        return out

    x = w["model.embed_tokens.weight"][ids]
    for layer in range(at.layers):
        of = f"model.layers.{layer}."
        inner = norm(x, w[of + "input_layernorm.weight"])
        q, k, v = (
            (inner @ w[f"{of}self_attn.{name}_proj.weight"].T).reshape(len(ids), -1, width) for name in ("q", "k", "v")
        )
        q, k = turned(q), turned(k)
        k, v = (np.repeat(each, at.heads // at.key_heads, axis=1) for each in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(width)
        scores = np.where(np.tril(np.ones(scores.shape[1:], dtype=bool)), scores, -np.inf)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        attended = np.einsum("hqk,khd->qhd", share, v).reshape(len(ids), -1)
        x = x + attended @ w[of + "self_attn.o_proj.weight"].T
        inner = norm(x, w[of + "post_attention_layernorm.weight"])
        gate, up = (inner @ w[f"{of}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[of + "mlp.down_proj.weight"].T
    return norm(x, w["model.norm.weight"])


def test_it_computes_what_llama_computes() -> None:
    """The decoder on rearranged weights gives what Llama's arithmetic gives on the weights as they came."""
    made = tiny_model()
    theirs = to_llama(made.state_dict(), made.shape)
    ids = [5, 3, 200, 17, 17, 42, 9]
    again = Decoder(made.shape)
    again.load_state_dict(from_llama(theirs, made.shape, "test"))
    with torch.no_grad():
        found = again(torch.tensor([ids]))[0].numpy()
    np.testing.assert_allclose(found, llama(theirs, ids), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "qwen2"}, "model_type is 'qwen2'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "rope_type is 'llama3'"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"head_dim": 128}, "head_dim is 128"),
        ({"num_attention_heads": 5}, "does not go into 5 heads"),
        ({"intermediate_size": None}, "intermediate_size is missing"),
    ],
)
def test_another_computation_is_refused(change: dict[str, Any], said: str) -> None:
    """A config that this decoder would compute otherwise is refused by the name of the key."""
    with pytest.raises(PolicyRefused, match=said):
        shape_of({**CONFIG, **change}, "config.json")


def test_weights_that_do_not_fit() -> None:
    """A weight that is missing, of another size or left over is named."""
    made = tiny_model()
    good = to_llama(made.state_dict(), made.shape)
    name = "model.layers.1.mlp.up_proj.weight"
    with pytest.raises(PolicyRefused, match=f"{name} is missing"):
        from_llama({k: v for k, v in good.items() if k != name}, made.shape, "here")
    with pytest.raises(PolicyRefused, match=f"{name} is of size"):
        from_llama({**good, name: good[name][:1]}, made.shape, "here")
    with pytest.raises(PolicyRefused, match="extra has no place"):
        from_llama({**good, "extra": torch.zeros(1)}, made.shape, "here")
