"""What a step takes of rows and pairs, and that steps teach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st

from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.lessons import Lesson, places, take_steps
from practicum.training.losses import cross_entropy
from practicum.training.preference import direct_preference
from practicum.training.scoring import scored
from practicum.training.trainer import Trainer


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12))
def test_every_unit_is_taken_once_before_any_twice(size: int, batch: int, steps: int) -> None:
    """After any number of steps no unit was taken more than once oftener than another."""
    taken = Counter(place for step in range(steps) for place in places(size, step, batch_size=batch, seed=1))
    assert sum(taken.values()) == steps * batch
    assert set(taken) <= set(range(size))
    assert max(taken.values()) - min(taken[place] for place in range(size)) <= 1


def test_steps_in_parts_are_the_steps_at_once(make_model: Callable[[], Decoder], samples: list[Sample]) -> None:
    """Two halves end with the weights of the whole, bit for bit, also where units vary by the step's generator."""
    units = [(sample,) for sample in samples]
    lesson = Lesson(len(units), lambda place, rng: units[(place + rng.randrange(2)) % len(units)])

    def weights(*parts: range) -> list[torch.Tensor]:
        trainer = Trainer(make_model())
        for part in parts:
            take_steps(trainer, lesson, cross_entropy, steps=part, batch_size=3, lr=lambda _: 1e-2, seed=4)
        return list(trainer.model.parameters())

    whole, parts = weights(range(6)), weights(range(2), range(2, 6))
    assert all(torch.equal(left, right) for left, right in zip(whole, parts, strict=True))


def test_dpo_learns_to_tell_pairs_apart(make_model: Callable[[], Decoder], samples: list[Sample]) -> None:
    """Steps on pairs raise the share that is told apart from chance to all, and the margin with it."""
    first = make_model()
    rows = scored(first, [replace(s, advantages=(1.0,) * len(s.input_ids)) for s in samples[:6]], "reference")
    lesson = Lesson.of([(rows[0], rows[1]), (rows[2], rows[3]), (rows[4], rows[5])])
    trainer, loss = Trainer(make_model()), direct_preference(beta=0.5)

    def steps(first: int, last: int) -> dict[str, float]:
        return take_steps(trainer, lesson, loss, steps=range(first, last), batch_size=3, lr=lambda _: 1e-2, seed=0)

    before = steps(0, 1)
    steps(1, 30)
    after = steps(30, 31)
    assert before["margin"] == 0.0
    assert after["accuracy"] == 1.0
    assert after["loss"] < before["loss"]
