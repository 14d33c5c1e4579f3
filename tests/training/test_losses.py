"""Losses against the same arithmetic done by hand and by numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.training.losses import TokenStreams, clipped_policy_gradient, cross_entropy


def streams(
    logprobs: list[float], behaviour: list[float], advantages: list[float], entropies: list[float] | None = None
) -> TokenStreams:
    first = torch.tensor(logprobs, dtype=torch.float64, requires_grad=True)
    rest = (torch.tensor(values, dtype=torch.float64) for values in (entropies or [0.0] * len(logprobs), behaviour))
    entropy, sampled = rest
    return TokenStreams(first, entropy, sampled, torch.tensor(advantages, dtype=torch.float64))


def gradient(token: TokenStreams) -> list[float]:
    grad = token.logprobs.grad
    assert grad is not None
    values: list[float] = grad.tolist()
    return values


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.0, -2.0, 2.0, 2.0),
        (1.2, 2.0, -2.4, -2.4),  # within the bounds: −ratio·A, slope −ratio·A
        (1.5, 2.0, -2.56, 0.0),  # above 1.28 and wanted: clipped, no more push
        (1.5, -2.0, 3.0, 3.0),  # above and unwanted: pushed back in full
        (0.5, 2.0, -1.0, -1.0),  # below and wanted: pushed back in full
        (0.5, -2.0, 1.6, 0.0),  # below 0.8 and unwanted: clipped
        (0.5, 0.0, 0.0, 0.0),
    ],
)
def test_clipped_policy_gradient_by_hand(ratio: float, advantage: float, loss: float, slope: float) -> None:
    """Each side of each bound gives the loss and the slope of PPO's surrogate with bounds 0.2 and 0.28."""
    token = streams([-1.0 + math.log(ratio)], [-1.0], [advantage])
    result = clipped_policy_gradient(clip_low=0.2, clip_high=0.28)(token)
    result.total.backward()  # type: ignore[no-untyped-call]
    assert float(result.total.detach()) == pytest.approx(loss)
    assert gradient(token) == pytest.approx([slope])
    assert result.watched["clip_fraction"] == float(slope == 0.0 and advantage != 0.0)


TOKEN = st.tuples(st.floats(-6, 0), st.floats(-6, 0), st.floats(-2, 2), st.floats(0, 3))


@settings(deadline=None)
@given(st.lists(TOKEN, min_size=1, max_size=8), st.floats(0.05, 0.5), st.floats(0.05, 0.5), st.floats(0, 0.1))
def test_clipped_policy_gradient_in_numpy(
    tokens: list[tuple[float, float, float, float]], low: float, high: float, bonus: float
) -> None:
    """The sum over tokens, the watched sums and the entropy bonus are those of an independent derivation."""
    now, then, advantage, entropy = (np.array(column) for column in zip(*tokens, strict=True))
    ratio = np.exp(now - then)
    bound = np.where(advantage >= 0, np.minimum(ratio, 1 + high), np.maximum(ratio, 1 - low))
    expected = -(bound * advantage).sum() - bonus * entropy.sum()
    loss = clipped_policy_gradient(clip_low=low, clip_high=high, entropy_bonus=bonus)
    result = loss(streams(now.tolist(), then.tolist(), advantage.tolist(), entropy.tolist()))
    assert float(result.total.detach()) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert result.watched["kl"] == pytest.approx((ratio - 1 - (now - then)).sum(), rel=1e-9, abs=1e-9)
    assert result.watched["kl"] >= -1e-9
    assert result.watched["entropy"] == pytest.approx(entropy.sum())


def test_on_policy_it_is_the_policy_gradient() -> None:
    """Where nothing has changed since sampling, the slope of each token is −A, and nothing is clipped."""
    token = streams([-0.1, -2.0, -5.0], [-0.1, -2.0, -5.0], [1.0, -0.5, 2.0])
    result = clipped_policy_gradient(clip_low=0.2, clip_high=0.2)(token)
    result.total.backward()  # type: ignore[no-untyped-call]
    assert gradient(token) == pytest.approx([-1.0, 0.5, -2.0])
    assert result.watched == {"entropy": 0.0, "kl": 0.0, "clip_fraction": 0.0}


def test_cross_entropy() -> None:
    """Each token's negative log-likelihood counts by its weight; one of weight 0 pulls at nothing."""
    token = streams([-0.5, -2.0, -3.0], [0.0] * 3, [1.0, 0.5, 0.0])
    result = cross_entropy(token)
    result.total.backward()  # type: ignore[no-untyped-call]
    assert float(result.total.detach()) == pytest.approx(0.5 + 1.0)
    assert gradient(token) == pytest.approx([-1.0, -0.5, 0.0])
