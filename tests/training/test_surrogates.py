"""Policy-gradient losses beside PPO's, against the papers' formulae in numpy and against finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from practicum.errors import TrainerError
from practicum.training.losses import Loss, TokenStreams, clipped_policy_gradient
from practicum.training.surrogates import (
    clipped_importance_sampling,
    corrected,
    group_sequence_policy,
    importance_weights,
    sequence_means,
    sequence_sums,
    with_reference,
)

LOGPROB = st.floats(-4, -0.01)
TOKEN = st.tuples(LOGPROB, LOGPROB, st.floats(-2, 2), LOGPROB, LOGPROB)
ROWS = st.lists(st.lists(TOKEN, min_size=1, max_size=5), min_size=1, max_size=4)
Rows = list[list[tuple[float, float, float, float, float]]]


def streams(rows: Rows) -> TokenStreams:
    flat = [token for row in rows for token in row]
    now, then, credit, reference, proximal = (
        torch.tensor(column, dtype=torch.float64) for column in zip(*flat, strict=True)
    )
    sequences = torch.tensor([number for number, row in enumerate(rows) for _ in row])
    return TokenStreams(now.requires_grad_(), torch.zeros_like(then), then, credit, sequences, reference, proximal)


def slope(loss: Loss, given_: TokenStreams) -> Tensor:
    loss(given_).total.backward()  # type: ignore[no-untyped-call]
    assert given_.logprobs.grad is not None
    return given_.logprobs.grad


@settings(deadline=None)
@given(ROWS)
def test_sums_and_means_by_sequence(rows: Rows) -> None:
    """Each row's sum and mean is that of its own tokens."""
    given_ = streams(rows)
    expected = [sum(token[1] for token in row) for row in rows]
    assert sequence_sums(given_.behaviour_logprobs, given_.sequences).tolist() == pytest.approx(expected)
    means = [total / len(row) for total, row in zip(expected, rows, strict=True)]
    assert sequence_means(given_.behaviour_logprobs, given_.sequences).tolist() == pytest.approx(means)
    assert sequence_sums(torch.zeros(0), torch.zeros(0, dtype=torch.long)).tolist() == []


@settings(deadline=None)
@given(ROWS, st.floats(0.01, 0.4), st.floats(0.01, 0.4))
def test_gspo_in_numpy(rows: Rows, low: float, high: float) -> None:
    """GSPO is the clipped surrogate of each sequence's geometric mean ratio, and moves its tokens equally."""
    expected, slopes = 0.0, []
    for row in rows:
        ratio = math.exp(np.mean([now - then for now, then, *_ in row]))
        credit = float(np.mean([token[2] for token in row]))
        bound = min(ratio, 1 + high) if credit >= 0 else max(ratio, 1 - low)
        expected -= bound * credit
        slopes += [-ratio * credit / len(row) if bound == ratio else 0.0] * len(row)
    loss, given_ = group_sequence_policy(clip_low=low, clip_high=high), streams(rows)
    assert loss.unit == "sequence"
    assert float(loss(given_).total.detach()) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert slope(loss, given_).tolist() == pytest.approx(slopes, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(ROWS, st.floats(0.01, 1.0), st.floats(0.01, 0.4))
def test_cispo_in_numpy(rows: Rows, low: float, high: float) -> None:
    """CISPO's slope is the clipped ratio times the credit on every token: none is ever cut off."""
    flat = [token for row in rows for token in row]
    weights = [min(max(math.exp(now - then), 1 - low), 1 + high) for now, then, *_ in flat]
    given_ = streams(rows)
    found = slope(clipped_importance_sampling(clip_low=low, clip_high=high), given_).tolist()
    expected = [-weight * token[2] for weight, token in zip(weights, flat, strict=True)]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: group_sequence_policy(clip_low=0.2, clip_high=0.28),
        lambda: with_reference(clipped_policy_gradient(clip_low=0.2, clip_high=0.28), coefficient=0.3),
        lambda: with_reference(group_sequence_policy(clip_low=0.2, clip_high=0.28), coefficient=0.3),
        lambda: corrected(
            clipped_policy_gradient(clip_low=0.2, clip_high=0.28), level="token", mode="truncate", bound=2
        ),
    ],
    ids=["gspo", "reference", "reference-by-sequence", "corrected"],
)
def test_slopes_by_finite_differences(make: Callable[[], Loss]) -> None:
    """The gradient that backward gives is the one that small steps measure."""
    rows: Rows = [[(-1.0, -1.1, 0.7, -0.9, -1.05), (-0.4, -0.3, 0.7, -0.5, -0.4)], [(-2.0, -1.9, -1.2, -2.2, -1.8)]]
    loss, given_ = make(), streams(rows)
    found, step = slope(loss, given_), 1e-6
    for token in range(3):
        values = []
        for sign in (1, -1):
            moved = given_.logprobs.detach().clone()
            moved[token] += sign * step
            values.append(float(loss(replace(given_, logprobs=moved)).total))
        assert float(found[token]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5, abs=1e-7)


@settings(deadline=None)
@given(ROWS, st.floats(1.05, 3), st.sampled_from(["token", "sequence"]), st.sampled_from(["truncate", "mask"]))
def test_importance_weights_in_numpy(rows: Rows, bound: float, level: str, mode: str) -> None:
    """A weight is the ratio of its token or its whole sequence, cut at the bound or 0 outside of it."""
    expected = []
    for row in rows:
        logs = [proximal - then for _, then, _, _, proximal in row]
        for log in logs:
            ratio = math.exp(log if level == "token" else sum(logs))
            inside = 1 / bound <= ratio <= bound
            expected.append(min(ratio, bound) if mode == "truncate" else ratio * inside)
    given_ = streams(rows)
    assert given_.proximal_logprobs is not None
    found = importance_weights(
        given_.proximal_logprobs,
        given_.behaviour_logprobs,
        given_.sequences,
        level=level,  # type: ignore[arg-type]
        mode=mode,  # type: ignore[arg-type]
        bound=bound,
    )
    assert found.tolist() == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(ROWS, st.floats(1.05, 3))
def test_correction_in_numpy(rows: Rows, bound: float) -> None:
    """The corrected surrogate is clipped by the update's own ratio and weighted by how stale a token is."""
    expected = 0.0
    for now, then, credit, _, proximal in [token for row in rows for token in row]:
        weight, ratio = min(math.exp(proximal - then), bound), math.exp(now - proximal)
        expected -= weight * min(ratio * credit, min(max(ratio, 0.8), 1.28) * credit)
    plain = clipped_policy_gradient(clip_low=0.2, clip_high=0.28)
    loss = corrected(plain, level="token", mode="truncate", bound=bound)
    assert loss.needs == {"proximal"}
    assert float(loss(streams(rows)).total.detach()) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_correction_of_fresh_samples_changes_nothing() -> None:
    """Where the trainer samples with its own log-probabilities, the corrected loss is the loss."""
    rows: Rows = [[(-1.0, -1.2, 0.5, 0.0, -1.2), (-0.5, -0.4, 0.5, 0.0, -0.4)]]
    plain = clipped_policy_gradient(clip_low=0.2, clip_high=0.28)
    given_ = streams(rows)
    for level in ("token", "sequence"):
        wrapped = corrected(plain, level=level, mode="mask", bound=1.5)(given_)
        assert float(wrapped.total.detach()) == pytest.approx(float(plain(given_).total.detach()))
        assert wrapped.watched["bounded"] == 0.0


def test_masked_tokens_do_not_pull() -> None:
    """A token whose weight is out of bounds has no slope at all."""
    rows: Rows = [[(-1.0, -3.0, 0.5, 0.0, -1.0), (-0.5, -0.4, 0.5, 0.0, -0.4)]]
    loss = corrected(clipped_policy_gradient(clip_low=0.2, clip_high=0.28), level="token", mode="mask", bound=2)
    assert [value != 0 for value in slope(loss, streams(rows)).tolist()] == [False, True]


@settings(deadline=None)
@given(ROWS, st.floats(0, 1))
def test_reference_penalty_in_numpy(rows: Rows, coefficient: float) -> None:
    """The penalty is k3 by token, never negative, and 0 where trainer and reference agree."""
    flat = [token for row in rows for token in row]
    k3 = sum(math.exp(ref - now) - (ref - now) - 1 for now, _, _, ref, _ in flat)
    plain = clipped_policy_gradient(clip_low=0.2, clip_high=0.28)
    given_ = streams(rows)
    result = with_reference(plain, coefficient=coefficient)(given_)
    added = float((result.total - plain(given_).total).detach())
    assert added == pytest.approx(coefficient * k3, rel=1e-7, abs=1e-9)
    assert result.watched["reference_kl"] == pytest.approx(k3, rel=1e-7, abs=1e-9)
    same = replace(given_, reference_logprobs=given_.logprobs.detach())
    assert float((with_reference(plain, coefficient=1)(same).total - plain(same).total).detach()) == 0.0


def test_streams_that_are_missing() -> None:
    """A loss that needs a stream says so, and refuses to run without it."""
    bare = replace(streams([[(-1.0, -1.0, 1.0, 0.0, 0.0)]]), reference_logprobs=None, proximal_logprobs=None)
    plain = clipped_policy_gradient(clip_low=0.2, clip_high=0.2)
    with pytest.raises(TrainerError, match="reference"):
        with_reference(plain, coefficient=0.1)(bare)
    with pytest.raises(TrainerError, match="before the update"):
        corrected(plain, level="token", mode="mask", bound=2)(bare)
    with pytest.raises(ValueError, match="above 1"):
        importance_weights(bare.logprobs, bare.logprobs, bare.sequences, level="token", mode="mask", bound=1.0)
