"""Methods by name: each is reachable from the configuration, and each makes another update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
import torch

from practicum.config.learning import RlConfig
from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.advantages import group_advantages
from practicum.training.losses import clipped_policy_gradient
from practicum.training.methods import ADVANTAGES, IMPORTANCE, LOSSES, method_of
from practicum.training.policy_gradient import update
from practicum.training.scoring import scored
from practicum.training.trainer import Trainer

GROUPS: list[list[float | None]] = [[1.0, 0.0, None, 0.25], [0.5, 0.5], [0.0, 1.0, 1.0, 0.9]]


def after(make_model: Callable[[], Decoder], samples: list[Sample], rl: RlConfig) -> torch.Tensor:
    """Weights after one update by the method of `rl`, stale by the difference of another model."""
    trainer, loss = Trainer(make_model()), method_of(rl).loss
    behind = Decoder(trainer.model.shape, seed=9)
    if "proximal" in loss.needs:
        samples = scored(trainer.model, samples, "proximal")
    if "reference" in loss.needs:
        samples = scored(behind, samples, "reference")
    update(trainer, samples, loss, minibatches=2, lr=1e-2, seed=0)
    return torch.cat([value.flatten() for value in trainer.state().values()])


@pytest.mark.parametrize(("key", "table"), [("loss", LOSSES), ("advantage", ADVANTAGES), ("importance", IMPORTANCE)])
def test_every_name_of_the_configuration_stands_for_something(key: str, table: dict[str, object]) -> None:
    """The names that a configuration may use and those of the table are the same."""
    assert set(get_args(RlConfig.model_fields[key].annotation)) == set(table)


def test_defaults_are_the_method_that_always_was(make_model: Callable[[], Decoder], samples: list[Sample]) -> None:
    """Without a word of method, the update is the clipped policy gradient on group advantages, bit for bit."""
    rl = RlConfig()
    trainer = Trainer(make_model())
    loss = clipped_policy_gradient(clip_low=rl.clip_low, clip_high=rl.clip_high, entropy_bonus=rl.entropy_bonus)
    update(trainer, samples, loss, minibatches=2, lr=1e-2, seed=0)
    old = torch.cat([value.flatten() for value in trainer.state().values()])
    assert torch.equal(after(make_model, samples, rl), old)
    assert method_of(rl).advantages(GROUPS) == [group_advantages(group) for group in GROUPS]


def test_every_loss_and_correction_makes_another_update(
    make_model: Callable[[], Decoder], samples: list[Sample]
) -> None:
    """No two settings of the method lead to the same weights where samples are stale."""
    stale = [
        replace(s, behaviour_logprobs=tuple(factor * x for x in s.behaviour_logprobs))
        for s, factor in zip(samples, (0.6, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1), strict=True)
    ]
    choices = [
        *({"loss": name} for name in LOSSES),
        {"reference_kl": 0.5},
        *({"importance": name, "importance_bound": 1.3} for name in IMPORTANCE if name != "none"),
        {"importance": "token-truncate", "importance_bound": 1.01},
        {"loss": "gspo", "reference_kl": 0.5, "importance": "sequence-mask"},
    ]
    found = [after(make_model, stale, RlConfig.model_validate(choice)) for choice in choices]
    for i, one in enumerate(found):
        for j, other in enumerate(found[:i]):
            assert not torch.equal(one, other), (choices[i], choices[j])


def test_every_advantage_gives_other_credit() -> None:
    """The four ways to compare attempts differ on one batch, and all mask what has no reward."""
    credits = {name: give(GROUPS) for name, give in ADVANTAGES.items()}
    assert all(given[0][2] is None for given in credits.values())
    assert all([len(group) for group in given] == [4, 2, 4] for given in credits.values())
    distinct = {str(given) for given in credits.values()}
    assert len(distinct) == len(ADVANTAGES)
