"""A model of rewards: it learns an order, depends on nothing later, and is read back as it was written."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from practicum.errors import StoreError
from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.lessons import Lesson, take_steps
from practicum.training.preference import bradley_terry_loss
from practicum.training.reward_model import (
    last_alone,
    load_reward_model,
    read_scores,
    reward_model_of,
    save_reward_model,
    scores_of,
)
from practicum.training.trainer import Trainer


def row(*ids: int) -> Sample:
    return Sample(ids, (0, *(1 for _ in ids[1:])), (0.0,) * len(ids), (1.0,) * len(ids), 0)


def learnt(policy: Decoder) -> Decoder:
    """Told that rows which hold the id 5 are better than those that hold 6."""
    rng = random.Random(0)
    model = reward_model_of(policy)
    units = [
        tuple(last_alone(row(1, *(rng.randrange(7, 12) for _ in range(3)), word, 2)) for word in (5, 6))
        for _ in range(24)
    ]
    trainer = Trainer(model, read=read_scores)
    take_steps(trainer, Lesson.of(units), bradley_terry_loss, steps=range(40), batch_size=8, lr=lambda _: 1e-2, seed=0)
    return model


def test_it_learns_an_order(make_model: Callable[[], Decoder]) -> None:
    """Rows that it never saw are put in the order that it was told, and the policy's weights are as before."""
    policy = make_model()
    before = [each.clone() for each in policy.parameters()]
    model = learnt(policy)
    better, worse = scores_of(model, [row(1, 12, 13, 5, 2), row(1, 12, 13, 6, 2)])
    assert better > worse + 1.0
    assert all(torch.equal(left, right) for left, right in zip(policy.parameters(), before, strict=True))


def test_before_it_learns_all_are_alike(make_model: Callable[[], Decoder]) -> None:
    """A fresh model gives 0 to everything."""
    assert scores_of(reward_model_of(make_model()), [row(1, 5, 2), row(1, 6, 7, 2)]) == [0.0, 0.0]


def test_nothing_after_the_last_sampled_token_counts(make_model: Callable[[], Decoder]) -> None:
    """What was seen after the last thing said does not change the number; what was said does."""
    model = learnt(make_model())
    said = row(1, 8, 5)
    seen = replace(said, input_ids=(*said.input_ids, 6, 6), loss_mask=(*said.loss_mask, 0, 0))
    scores = scores_of(model, [said, seen, row(1, 8, 6)])
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert scores[0] != pytest.approx(scores[2], abs=1e-2)


def test_it_is_read_back(make_model: Callable[[], Decoder], tmp_path: Path) -> None:
    """A saved model gives the same numbers after loading; a damaged file is refused."""
    policy = make_model()
    model = learnt(policy)
    save_reward_model(model, tmp_path / "model.safetensors")
    again = load_reward_model(policy, tmp_path / "model.safetensors")
    rows = [row(1, 5, 2), row(1, 6, 7, 2)]
    assert scores_of(again, rows) == scores_of(model, rows)
    (tmp_path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(StoreError, match="reward model"):
        load_reward_model(policy, tmp_path / "model.safetensors")
