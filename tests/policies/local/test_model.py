"""The decoder: with and without a cache, padded or not, the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from practicum.policies.local.model import Decoder, ModelShape, next_logprobs

SHAPE = ModelShape(vocabulary=40, layers=2, width=32, heads=4, context=48)


def ids_of(rows: int, steps: int, seed: int = 0) -> Tensor:
    return torch.randint(0, SHAPE.vocabulary, (rows, steps), generator=torch.Generator().manual_seed(seed))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 99))
def test_fed_in_pieces_or_whole(pieces: list[int], seed: int) -> None:
    """Feeding a conversation to the cache in any pieces gives the hidden states of the uncached pass."""
    model = Decoder(SHAPE, seed=seed)
    ids = ids_of(2, sum(pieces), seed)
    with torch.no_grad():
        whole = model(ids)
        cache, fed = model.empty_cache(2, sum(pieces)), 0
        for count in pieces:
            hidden = model.step(ids[:, fed : fed + count], cache, torch.full((2,), count))
            fed += count
            torch.testing.assert_close(hidden, whole[:, fed - 1], rtol=1e-4, atol=1e-5)
    assert cache.lengths.tolist() == [fed, fed]


def test_rows_of_different_lengths(model: Decoder) -> None:
    """Rows that are padded in one step, and go on from different places, are as if each had been alone."""
    lengths = [3, 9, 5]
    rows = [ids_of(1, length + 4, seed)[0] for seed, length in enumerate(lengths)]
    cache = model.empty_cache(3, 13)
    padded = torch.zeros((3, max(lengths)), dtype=torch.long)
    for row, length in enumerate(lengths):
        padded[row, :length] = rows[row][:length]
    with torch.no_grad():
        hidden = model.step(padded, cache, torch.tensor(lengths))
        for step in range(5):
            alone = [model(row[None, : length + step])[0, -1] for row, length in zip(rows, lengths, strict=True)]
            torch.testing.assert_close(hidden, torch.stack(alone), rtol=1e-4, atol=1e-4)
            if step < 4:
                fed = torch.stack([row[length + step] for row, length in zip(rows, lengths, strict=True)])
                hidden = model.step(fed[:, None], cache, torch.ones(3, dtype=torch.long))


def test_the_past_does_not_see_the_future(model: Decoder) -> None:
    """Changing a later id, or padding, leaves every earlier hidden state as it was."""
    ids = ids_of(1, 12)
    changed = ids.clone()
    changed[0, 7:] = 0
    with torch.no_grad():
        before, after = model(ids), model(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], rtol=0, atol=0)
    assert not torch.allclose(before[:, 7:], after[:, 7:])


def test_position_matters(model: Decoder) -> None:
    """The same ids in another order are another text."""
    with torch.no_grad():
        one, other = model(torch.tensor([[1, 2, 3]])), model(torch.tensor([[2, 1, 3]]))
    assert not torch.allclose(one[0, -1], other[0, -1])


def test_next_logprobs_by_hand(model: Decoder) -> None:
    """Log-probabilities are the log-softmax of the embedding's scores, one place before each id."""
    ids = ids_of(2, 6)
    with torch.no_grad():
        hidden, given = model(ids).double().numpy(), next_logprobs(model, ids).numpy()
    scores = hidden @ model.embedding.weight.detach().double().numpy().T
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    expected = [[logs[row, place, ids[row, place + 1]] for place in range(5)] for row in range(2)]
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "further",
    [{}, {"kv_heads": 1}, {"kv_heads": 1, "inner": 12, "theta": 500.0, "epsilon": 1e-2, "tied": False}],
    ids=["plain", "shared keys", "all that can differ"],
)
def test_attention_by_hand(further: dict[str, Any]) -> None:
    """One block of one layer equals the same arithmetic written out in numpy, rotary positions included."""
    shape = ModelShape(vocabulary=7, layers=1, width=8, heads=2, context=8, **further)
    model = Decoder(shape, seed=3)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    ids = [3, 1, 4, 1, 5]

    def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = x / np.sqrt((x**2).mean(-1, keepdims=True) + shape.epsilon) * weight
        return scaled

    def rotated(x: np.ndarray, position: int) -> np.ndarray:
        out = x.copy()
        for pair in range(2):
            angle = position * shape.theta ** (-pair / 2)
            a, b = x[2 * pair], x[2 * pair + 1]
            out[2 * pair] = a * np.cos(angle) - b * np.sin(angle)
            out[2 * pair + 1] = a * np.sin(angle) + b * np.cos(angle)
        return out

    x = weights["embedding.weight"][ids]
    qkv = norm(x, weights["blocks.0.attention_norm.weight"]) @ weights["blocks.0.qkv.weight"].T
    heads = qkv.reshape(5, -1, 4)
    q, k, v = heads[:, :2], heads[:, 2 : 2 + shape.key_heads], heads[:, 2 + shape.key_heads :]
    attended = np.zeros((5, 2, 4))
    for head in range(2):
        of = head * shape.key_heads // 2
        for t in range(5):
            query = rotated(q[t, head], t)
            scores = np.array([query @ rotated(k[s, of], s) / 2 for s in range(t + 1)])
            share = np.exp(scores) / np.exp(scores).sum()
            attended[t, head] = share @ v[: t + 1, of]
    x = x + attended.reshape(5, 8) @ weights["blocks.0.out.weight"].T
    inner = norm(x, weights["blocks.0.mlp_norm.weight"]) @ weights["blocks.0.gate_up.weight"].T
    gate, up = np.split(inner, 2, axis=-1)
    assert gate.shape[-1] == shape.hidden
    x = x + (gate / (1 + np.exp(-gate)) * up) @ weights["blocks.0.down.weight"].T
    expected = norm(x, weights["norm.weight"])
    readout = weights["embedding.weight" if shape.tied else "readout.weight"]
    with torch.no_grad():
        hidden = model(torch.tensor([ids]))
        np.testing.assert_allclose(hidden[0].numpy(), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(model.logits(hidden)[0].numpy(), expected @ readout.T, rtol=1e-4, atol=1e-4)


def test_shared_keys_are_cached_as_they_are() -> None:
    """With fewer heads of keys than of queries, the cached pass still gives what the uncached one does."""
    shape = ModelShape(vocabulary=11, layers=2, width=24, heads=6, context=16, kv_heads=2)
    model = Decoder(shape, seed=1)
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    cache = model.empty_cache(1, 8)
    with torch.no_grad():
        model.step(ids[:, :4], cache, torch.tensor([4]))
        last = model.step(ids[:, 4:], cache, torch.tensor([3]))
        torch.testing.assert_close(last[0], model(ids)[0, -1], rtol=1e-4, atol=1e-5)


def test_a_shape_says_what_is_not_as_usual() -> None:
    """The description names the sizes, and of the rest only what differs; it gives the same shape back."""
    plain = ModelShape(vocabulary=7, width=8, heads=2)
    assert set(plain.to_dict()) == {"vocabulary", "layers", "width", "heads", "context"}
    other = ModelShape(vocabulary=7, width=8, heads=2, kv_heads=1, theta=1e5, tied=False)
    assert set(other.to_dict()) - set(plain.to_dict()) == {"kv_heads", "theta", "tied"}
    assert ModelShape(**other.to_dict()) == other  # type: ignore[arg-type]


@pytest.mark.parametrize(("width", "hidden"), [(8, 32), (96, 256), (128, 352)])
def test_shape(width: int, hidden: int) -> None:
    """The inner width is 8/3 of the width, rounded up to 32."""
    assert ModelShape(vocabulary=7, width=width).hidden == hidden


def test_seed_decides_the_weights() -> None:
    """Same seed, same weights, whatever torch's global generator did before."""
    one = Decoder(SHAPE, seed=5).state_dict()
    torch.rand(3)
    same, other = Decoder(SHAPE, seed=5).state_dict(), Decoder(SHAPE, seed=6).state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["embedding.weight"], other["embedding.weight"])
