"""Losses over pairs and of models that give a number, against the same arithmetic in plain Python."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import TrainerError
from practicum.training.losses import TokenStreams
from practicum.training.preference import bradley_terry, direct_preference, simple_preference, value_loss

LOGPROB = st.floats(-4, -0.01)
ANSWER = st.lists(st.tuples(LOGPROB, LOGPROB), min_size=1, max_size=5)
PAIRS = st.lists(st.tuples(ANSWER, ANSWER), min_size=1, max_size=3)
Pairs = list[tuple[list[tuple[float, float]], list[tuple[float, float]]]]


def streams(pairs: Pairs, *, reference: bool = True) -> TokenStreams:
    rows = [answer for pair in pairs for answer in pair]
    flat = [token for row in rows for token in row]
    now = torch.tensor([token[0] for token in flat], dtype=torch.float64, requires_grad=True)
    ref = torch.tensor([token[1] for token in flat], dtype=torch.float64)
    zeros = torch.zeros_like(ref)
    sequences = torch.tensor([number for number, row in enumerate(rows) for _ in row])
    return TokenStreams(now, zeros, zeros, zeros, sequences, ref if reference else None)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


@settings(deadline=None)
@given(PAIRS, st.floats(0.05, 2), st.sampled_from([0.0, 0.1, 0.3]))
def test_dpo_by_hand(pairs: Pairs, beta: float, smoothing: float) -> None:
    """DPO is −log σ of β times how much more the chosen answer gained on the reference than the rejected one."""
    expected, margins = 0.0, []
    for chosen, rejected in pairs:
        margin = beta * (sum(n - r for n, r in chosen) - sum(n - r for n, r in rejected))
        margins.append(margin)
        expected -= (1 - smoothing) * log_sigmoid(margin) + smoothing * log_sigmoid(-margin)
    result = direct_preference(beta=beta, label_smoothing=smoothing)(streams(pairs))
    assert float(result.total.detach()) == pytest.approx(expected, rel=1e-9)
    assert result.watched["margin"] == pytest.approx(sum(margins), rel=1e-9, abs=1e-9)
    assert result.watched["accuracy"] == sum(margin > 0 for margin in margins)


@settings(deadline=None)
@given(PAIRS, st.floats(0.1, 3), st.floats(0, 1))
def test_simpo_by_hand(pairs: Pairs, beta: float, gamma: float) -> None:
    """SimPO compares mean log-probabilities, with a margin, and asks for no reference."""
    expected = 0.0
    for chosen, rejected in pairs:
        means = [sum(n for n, _ in answer) / len(answer) for answer in (chosen, rejected)]
        expected -= log_sigmoid(beta * (means[0] - means[1]) - gamma)
    loss = simple_preference(beta=beta, gamma=gamma)
    assert loss.unit == "pair"
    assert not loss.needs
    assert float(loss(streams(pairs, reference=False)).total.detach()) == pytest.approx(expected, rel=1e-9)


def test_dpo_pulls_the_answers_apart() -> None:
    """The chosen answer's tokens are pushed up and the rejected one's down, by the same amount."""
    given_ = streams([([(-1.0, -1.0), (-2.0, -2.0)], [(-0.5, -0.5)])])
    direct_preference(beta=0.4)(given_).total.backward()  # type: ignore[no-untyped-call]
    assert given_.logprobs.grad is not None
    assert given_.logprobs.grad.tolist() == pytest.approx([-0.2, -0.2, 0.2])


def test_dpo_needs_a_reference() -> None:
    """Without the reference's log-probabilities there is nothing to gain on."""
    with pytest.raises(TrainerError, match="reference"):
        direct_preference(beta=0.1)(streams([([(-1.0, -1.0)], [(-1.0, -1.0)])], reference=False))


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=5), st.floats(0, 1))
def test_bradley_terry_by_hand(pairs: list[tuple[float, float]], margin: float) -> None:
    """The loss is −log of the probability, σ(difference), that the chosen one wins; equal scores cost log 2."""
    scores = torch.tensor([value for pair in pairs for value in pair], dtype=torch.float64)
    expected = -sum(log_sigmoid(chosen - rejected - margin) for chosen, rejected in pairs)
    assert float(bradley_terry(scores, margin=margin).total) == pytest.approx(expected, rel=1e-9)
    assert float(bradley_terry(torch.tensor([1.5, 1.5])).total) == pytest.approx(math.log(2), rel=1e-6)


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.floats(-3, 3)] * 3), min_size=1, max_size=5), st.floats(0.05, 1))
def test_value_loss_by_hand(tokens: list[tuple[float, float, float]], clip: float) -> None:
    """The larger of the plain and the held square counts, so that a critic gains nothing by leaping."""
    expected = 0.0
    for value, old, target in tokens:
        held = old + min(max(value - old, -clip), clip)
        expected += 0.5 * max((value - target) ** 2, (held - target) ** 2)
    columns = [torch.tensor(column, dtype=torch.float64) for column in zip(*tokens, strict=True)]
    assert float(value_loss(columns[0], columns[1], columns[2], clip=clip).total) == pytest.approx(expected, abs=1e-9)
