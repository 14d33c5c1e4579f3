"""One update: who trains, and in how many steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.verdict import Verdict
from practicum.training.losses import Loss, cross_entropy
from practicum.training.policy_gradient import select, update
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
