"""One update: who trains, and in how many steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from practicum.errors import TrainerError
from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.verdict import Verdict
from practicum.training.losses import Loss, LossSum, TokenStreams, cross_entropy
from practicum.training.policy_gradient import select, select_by_turn, update
from practicum.training.trainer import Metrics, Trainer


def attempt(group: str, reward: float | None, *, fault: bool = False, ident: int = 1) -> Trajectory:
    """An attempt that sampled one id; without a reward its verdict is unscorable."""
    turn = Turn(0, (2, 3), (ident,), (-1.0,), 0, "stop", "", Action("submit"), "", "", "")
    status = Verdict("unscorable", None, None) if reward is None else Verdict("valid", "failed", reward)
    broken = Fault("SandboxDied", "gone") if fault else None
    return Trajectory(f"{group}-{ident}", group, "task", "digest", (turn,), "submitted", broken, None, status)


def test_only_groups_with_signal_train() -> None:
    """Groups without a difference in reward are left out, and masked attempts are in no statistic."""
    chosen = select(
        [
            attempt("mixed", 1.0, ident=1),
            attempt("same", 0.5, ident=2),
            attempt("mixed", None, ident=3),
            attempt("mixed", 0.0, ident=4),
            attempt("same", 0.5, ident=5),
            attempt("lonely", 1.0, ident=6),
            attempt("lonely", 1.0, fault=True, ident=7),
            attempt("mixed", -1.0, fault=True, ident=8),
        ]
    )
    assert [(sample.input_ids[-1], sample.advantages[-1]) for sample in chosen.samples] == [(1, 1.0), (4, -1.0)]
    assert (chosen.groups, chosen.with_signal, chosen.masked) == (3, 1, 3)


def test_nothing_to_select() -> None:
    """A batch in which everything was masked has no samples, and says how much was masked."""
    chosen = select([attempt("a", None), attempt("a", 1.0, fault=True)])
    assert (chosen.samples, chosen.groups, chosen.with_signal, chosen.masked) == ([], 1, 0, 2)


@pytest.mark.parametrize(("minibatches", "steps"), [(1, 1), (3, 3), (7, 7), (20, 7)])
def test_minibatches(make_model: Callable[[], Decoder], samples: list[Sample], minibatches: int, steps: int) -> None:
    """Every sample is in one part, each part is one step, and no step is empty."""
    seen: list[int] = []

    class Counting(Trainer):
        def forward_backward(self, samples: Sequence[Sample], loss: Loss, *, temperature: float = 1.0) -> Metrics:
            seen.append(len(samples))
            return super().forward_backward(samples, loss, temperature=temperature)

    trainer = Counting(make_model())
    metrics = update(trainer, samples, cross_entropy, minibatches=minibatches, lr=1e-3, seed=0)
    assert (trainer.steps, sum(seen), len(seen)) == (steps, len(samples), steps)
    assert metrics["lr"] == pytest.approx(1e-3)
    assert metrics["tokens"] == pytest.approx(sum(sum(s.loss_mask) for s in samples) / steps)


def test_same_seed_same_weights(make_model: Callable[[], Decoder], samples: list[Sample]) -> None:
    """The seed decides the parts: the same gives the same weights bit for bit, another gives others."""

    def after(seed: int) -> torch.Tensor:
        trainer = Trainer(make_model())
        update(trainer, samples, cross_entropy, minibatches=3, lr=1e-2, seed=seed)
        return trainer.state()["embedding.weight"]

    assert torch.equal(after(1), after(1))
    assert not torch.equal(after(1), after(2))


def test_no_samples_no_step(make_model: Callable[[], Decoder]) -> None:
    """Without a sample nothing is reported and no step is taken."""
    trainer = Trainer(make_model())
    assert update(trainer, [], cross_entropy, minibatches=2, lr=1e-3, seed=0) == {}
    assert trainer.steps == 0


def test_refused_steps_are_left_out(make_model: Callable[[], Decoder], samples: list[Sample]) -> None:
    """What is reported is the mean of the steps that were taken, and nothing where none was."""

    def spoilt_from(number: int) -> Loss:
        calls = iter(range(100))

        def compute(streams: TokenStreams) -> LossSum:
            return LossSum(streams.logprobs.sum() * (math.nan if next(calls) >= number else 1.0), {})

        return Loss(compute)

    trainer = Trainer(make_model())
    metrics = update(trainer, samples, spoilt_from(2), minibatches=4, lr=1e-3, seed=0)
    assert trainer.steps == 2
    assert all(map(math.isfinite, metrics.values()))
    assert update(trainer, samples, spoilt_from(0), minibatches=1, lr=1e-3, seed=0) == {}
    with pytest.raises(TrainerError, match="steps in a row"):
        update(trainer, samples, spoilt_from(0), minibatches=1, lr=1e-3, seed=0)


def test_long_attempts_train_step_by_step(make_model: Callable[[], Decoder]) -> None:
    """Where a turn's prompt does not go on from the last, each part is a row; a cut attempt keeps its own end."""
    parts = [((2, 3), (4, 5)), ((2, 3, 4, 5, 6), (7,)), ((2, 9), (8, 8))]
    turns = tuple(
        Turn(number, prompt, sampled, (-1.0,) * len(sampled), 0, "length", "", Action("submit"), "", "", "")
        for number, (prompt, sampled) in enumerate(parts)
    )
    cut, other = replace(attempt("a", 1.0), turns=turns, stop_reason="token_limit"), attempt("a", 0.0, ident=2)
    chosen = select([cut, other])
    assert [sum(sample.loss_mask) for sample in chosen.samples] == [3, 2, 1]
    assert [sample.input_ids for sample in chosen.samples] == [(2, 3, 4, 5, 6, 7), (2, 9, 8, 8), (2, 3, 2)]
    metrics = update(
        Trainer(make_model(), batch_tokens=4), chosen.samples, cross_entropy, minibatches=1, lr=0.0, seed=0
    )
    assert metrics["tokens"] == 6
    assert cut.stop_reason == "token_limit"


def test_credit_by_turn_follows_the_potential() -> None:
    """Of two failures the one that got on and then undid it is blamed for the turn that undid it."""

    def tried(ident: int, reward: float) -> Trajectory:
        made = attempt("g", reward, ident=ident)
        turns = (Turn(0, (2,), (ident,), (-1.0,), 0, "stop", "", Action("bash"), "", "", ""),)
        return replace(made, turns=(*turns, replace(made.turns[0], index=1, prompt_ids=(2, ident, 3))))

    members = [tried(1, 0.0), tried(2, 0.0)]
    plain = select(members)
    assert plain.samples == []
    shaped = select_by_turn(members, {"g-1": [0.0, 1.0, 0.0], "g-2": [0.0, 0.0, 0.0]})
    assert shaped.with_signal == 1
    first, second = ([a for a, m in zip(s.advantages, s.loss_mask, strict=True) if m] for s in shaped.samples)
    # Both return to the same end, so what the first turn gained the second lost: its return is lower by the potential.
    assert first == [0.0, -0.5]
    assert second == [0.0, 0.5]


def test_credit_by_turn_without_potentials_is_by_outcome() -> None:
    """Where no state was judged, every turn of an attempt has the outcome's credit."""
    chosen = select_by_turn([attempt("g", 1.0, ident=1), attempt("g", 0.0, ident=2)], {"g-1": None})
    assert [sample.advantages[-1] for sample in chosen.samples] == [0.5, -0.5]
