"""The trainer: gradients, steps, and states that are saved and go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from practicum.errors import StepRefused, StoreError, TrainerError
from practicum.policies.contract import SamplingParams
from practicum.policies.local.generator import Generator, Request
from practicum.policies.local.model import Decoder, next_logprobs
from practicum.records.sample import Sample
from practicum.training.losses import Loss, LossSum, TokenStreams, clipped_policy_gradient, cross_entropy
from practicum.training.preference import direct_preference, simple_preference
from practicum.training.scoring import scored
from practicum.training.surrogates import corrected, group_sequence_policy, with_reference
from practicum.training.trainer import Trainer, mean_of

MakeModel = Callable[[], Decoder]
CLIPPED = clipped_policy_gradient(clip_low=0.2, clip_high=0.28, entropy_bonus=0.01)


def gradients(model: Decoder) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def assert_close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-7)


def with_streams(model: Decoder, samples: list[Sample]) -> list[Sample]:
    """Six of the samples, with a reference's and the trainer's own log-probabilities."""
    other = Decoder(model.shape, seed=9)
    return scored(model, scored(other, samples[:6], "reference"), "proximal")


@pytest.mark.parametrize(
    "loss",
    [
        cross_entropy,
        CLIPPED,
        group_sequence_policy(clip_low=0.2, clip_high=0.28),
        with_reference(corrected(CLIPPED, level="sequence", mode="truncate", bound=2.0), coefficient=0.1),
        direct_preference(beta=0.3),
        simple_preference(beta=2.0, gamma=0.5),
    ],
    ids=["cross-entropy", "clipped", "gspo", "corrected", "dpo", "simpo"],
)
def test_accumulation_equals_one_batch(make_model: MakeModel, samples: list[Sample], loss: Loss) -> None:
    """However small the micro-batches, gradient, loss and watched figures are those of one big batch."""
    samples = with_streams(make_model(), samples)
    whole, pieces = Trainer(make_model()), Trainer(make_model(), batch_tokens=1)
    one, other = whole.forward_backward(samples, loss), pieces.forward_backward(samples, loss)
    assert one == pytest.approx(other, rel=1e-5)
    assert one["tokens"] == sum(sum(sample.loss_mask) for sample in samples)
    assert_close(gradients(whole.model), gradients(pieces.model))


def test_gradient_of_the_mean_log_likelihood(make_model: MakeModel, samples: list[Sample]) -> None:
    """Cross-entropy's gradient is that of the weighted mean over trained tokens, each sample on its own."""
    trainer, plain = Trainer(make_model()), make_model()
    metrics = trainer.forward_backward(samples, cross_entropy)
    total, tokens = torch.zeros(()), 0
    for sample in samples:
        logprobs = next_logprobs(plain, torch.tensor([sample.input_ids]))[0]
        total = total - (logprobs * torch.tensor(sample.advantages[1:])).sum()
        tokens += sum(sample.loss_mask)
    (total / tokens).backward()  # type: ignore[no-untyped-call]
    assert metrics["loss"] == pytest.approx(float(total.detach()) / tokens, rel=1e-4)
    assert_close(gradients(trainer.model), gradients(plain))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_ratios_are_taken_at_the_temperature_of_sampling(make_model: MakeModel, temperature: float) -> None:
    """What the engine sampled from the very weights that train is on policy, whatever its temperature."""
    model = make_model()
    with torch.no_grad():
        model.embedding.weight.mul_(30)  # far enough from uniform that temperature shows
    params = SamplingParams(max_tokens=12, temperature=temperature, seed=3)
    prompt = (1, 2, 3)
    (sampled,) = Generator(model).generate([Request("s", prompt, params)])
    mask = (0,) * 3 + (1,) * len(sampled.ids)
    logprobs = (0.0,) * 3 + sampled.logprobs
    sample = Sample(prompt + sampled.ids, mask, logprobs, tuple(float(m) for m in mask), 0)
    metrics = Trainer(model).forward_backward([sample], CLIPPED, temperature=temperature)
    assert metrics["kl"] == pytest.approx(0.0, abs=1e-5)
    assert metrics["clip_fraction"] == 0.0


def test_masked_tokens_change_nothing(make_model: MakeModel, samples: list[Sample]) -> None:
    """A sample without trained tokens, and credit on masked places, leave gradient and denominator alone."""
    noisy = [
        replace(
            sample, advantages=tuple(a if m else 9.0 for a, m in zip(sample.advantages, sample.loss_mask, strict=True))
        )
        for sample in samples
    ]
    silent = Sample((1, 2, 3), (0, 0, 0), (0.0,) * 3, (5.0,) * 3, 0)
    one, other = Trainer(make_model(), batch_tokens=1), Trainer(make_model(), batch_tokens=1)
    assert one.forward_backward(samples, CLIPPED) == other.forward_backward([*noisy, silent], CLIPPED)
    assert_equal(gradients(one.model), gradients(other.model))


def test_two_calls_accumulate(make_model: MakeModel, samples: list[Sample]) -> None:
    """Gradients add up until a step, which clears them."""
    trainer = Trainer(make_model())
    trainer.forward_backward(samples, cross_entropy)
    once = gradients(trainer.model)
    trainer.forward_backward(samples, cross_entropy)
    assert_close(gradients(trainer.model), {name: 2 * value for name, value in once.items()})
    trainer.optim_step(1e-3)
    assert gradients(trainer.model) == {}


def test_learning(make_model: MakeModel) -> None:
    """A sequence that is shown again and again becomes likely, and credit below zero makes it unlikely."""
    ids = (3, 1, 4, 1, 5, 9, 2, 6)
    sample = Sample(ids, (0,) + (1,) * 7, (0.0,) * 8, (0.0,) + (1.0,) * 7, 0)
    trainer = Trainer(make_model())
    losses = []
    for _ in range(60):
        losses.append(trainer.forward_backward([sample], cross_entropy)["loss"])
        trainer.optim_step(0.01)
    assert losses[0] == pytest.approx(2.83, abs=0.2)  # ln 17
    assert losses[-1] < 0.1
    assert trainer.steps == 60


def test_first_step_by_hand(make_model: MakeModel, samples: list[Sample]) -> None:
    """AdamW's first step moves each weight by the rate against the sign of its gradient, and decays matrices only."""
    trainer = Trainer(make_model(), grad_clip=1e9)
    trainer.set_weight_decay(0.1)
    trainer.forward_backward(samples, cross_entropy)
    before, slope = trainer.state(), gradients(trainer.model)
    trainer.optim_step(1e-2)
    for name, value in trainer.state().items():
        decayed = before[name] * (1 - 1e-2 * 0.1 if value.dim() > 1 else 1.0)
        expected = decayed - 1e-2 * slope[name] / (slope[name].abs() + 1e-8)
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


def test_gradient_clipping(make_model: MakeModel, samples: list[Sample]) -> None:
    """The norm that is reported is the one before clipping, and a tiny bound makes the first moment tiny."""
    trainer = Trainer(make_model(), grad_clip=1e-3)
    trainer.forward_backward(samples, cross_entropy)
    norm = sum(float((value**2).sum()) for value in gradients(trainer.model).values()) ** 0.5
    assert trainer.optim_step(0.0)["grad_norm"] == pytest.approx(norm, rel=1e-4)
    moments = [state["exp_avg"] for state in trainer.optimiser.state.values()]
    assert sum(float((moment**2).sum()) for moment in moments) ** 0.5 == pytest.approx(1e-3 * 0.1, rel=1e-2)


def test_saved_and_loaded_it_goes_on_bit_for_bit(make_model: MakeModel, samples: list[Sample], tmp_path: Path) -> None:
    """A trainer that was saved, and loaded beside its weights, takes the same steps as one that never stopped."""

    def train(trainer: Trainer, steps: int) -> None:
        for _ in range(steps):
            trainer.forward_backward(samples, CLIPPED)
            trainer.optim_step(3e-3)

    through = Trainer(make_model())
    through.set_weight_decay(0.01)
    train(through, 3)
    through.save(tmp_path)
    weights = through.state()
    train(through, 3)
    again = Trainer(make_model())
    again.set_weight_decay(0.01)
    again.model.load_state_dict(weights)
    again.load(tmp_path)
    assert again.steps == 3
    train(again, 3)
    assert again.steps == through.steps == 6
    assert_equal(again.state(), through.state())


def test_an_untouched_trainer_can_be_saved(make_model: MakeModel, samples: list[Sample], tmp_path: Path) -> None:
    """Before its first step a trainer has no moments, and loading that state clears those of another."""
    Trainer(make_model()).save(tmp_path)
    used = Trainer(make_model())
    used.forward_backward(samples, cross_entropy)
    used.optim_step(1e-3)
    used.load(tmp_path)
    assert used.steps == 0
    assert len(used.optimiser.state) == 0


@pytest.mark.parametrize("damage", ["missing", "not a number", "of another model"])
def test_damaged_states_are_named(make_model: MakeModel, samples: list[Sample], tmp_path: Path, damage: str) -> None:
    """A state that is missing or damaged is named by its folder, and leaves the trainer as it was."""
    trainer = Trainer(make_model())
    trainer.forward_backward(samples, cross_entropy)
    trainer.optim_step(1e-3)
    trainer.save(tmp_path)
    if damage == "missing":
        (tmp_path / "optimiser.safetensors").unlink()
    elif damage == "not a number":
        (tmp_path / "trainer.json").write_text(json.dumps({"steps": None}))
    else:
        from practicum.policies.local.model import ModelShape

        trainer = Trainer(Decoder(ModelShape(vocabulary=17, layers=1, width=32, heads=2, context=32)))
    before = (trainer.steps, len(trainer.optimiser.state))
    with pytest.raises(StoreError, match=tmp_path.name):
        trainer.load(tmp_path)
    assert (trainer.steps, len(trainer.optimiser.state)) == before


def test_state_is_a_copy(make_model: MakeModel, samples: list[Sample]) -> None:
    """Weights that were handed out stay as they were when training goes on."""
    trainer = Trainer(make_model())
    before = trainer.state()
    kept = {name: value.clone() for name, value in before.items()}
    trainer.forward_backward(samples, cross_entropy)
    trainer.optim_step(0.1)
    assert_equal(before, kept)


def test_empty_batches_are_refused(make_model: MakeModel) -> None:
    """No token to train on is an error, not a step that does nothing."""
    trainer = Trainer(make_model())
    for empty in ([], [Sample((1, 2), (0, 0), (0.0, 0.0), (0.0, 0.0), 0)]):
        with pytest.raises(TrainerError, match="no token"):
            trainer.forward_backward(empty, cross_entropy)


def test_a_sample_longer_than_the_context(make_model: MakeModel, samples: list[Sample]) -> None:
    """It is named before anything is computed, and leaves no gradient."""
    trainer, length = Trainer(make_model(), batch_tokens=1), 33
    mask = (0,) + (1,) * (length - 1)
    long = Sample((1,) * length, mask, (0.0,) * length, (0.0,) + (1.0,) * (length - 1), 0)
    with pytest.raises(TrainerError, match=r"33 tokens.* 32"):
        trainer.forward_backward([*samples, long], cross_entropy)
    assert gradients(trainer.model) == {}


def test_a_step_without_a_gradient(make_model: MakeModel, samples: list[Sample]) -> None:
    """A step that nothing was accumulated for is an error, before the first as after any other."""
    trainer = Trainer(make_model())
    with pytest.raises(TrainerError, match="no gradient"):
        trainer.optim_step(1e-3)
    trainer.step(samples, cross_entropy, lr=1e-3)
    with pytest.raises(TrainerError, match="no gradient"):
        trainer.optim_step(1e-3)


def times(factor: float) -> Loss:
    """The likelihood with its value and slope multiplied."""
    return Loss(lambda streams: LossSum(streams.logprobs.sum() * factor, {}), name="likelihood")


def test_a_loss_that_is_not_finite(make_model: MakeModel, samples: list[Sample]) -> None:
    """It is refused, and neither the weights nor the next step carry anything of that batch."""

    def bad_once(streams: TokenStreams) -> LossSum:
        """Finite for short samples, not a number for the longest."""
        return LossSum((streams.logprobs * (float("nan") if len(streams.logprobs) > 3 else 1.0)).sum(), {})

    trainer, clean = Trainer(make_model(), batch_tokens=1), Trainer(make_model(), batch_tokens=1)
    before = trainer.state()
    with pytest.raises(StepRefused, match="loss is not finite"):
        trainer.forward_backward(samples, Loss(bad_once))
    assert_equal(trainer.state(), before)
    for each in (trainer, clean):
        each.step(samples, cross_entropy, lr=1e-3)
    assert_equal(trainer.state(), clean.state())


def test_logits_that_are_not_numbers(make_model: MakeModel, samples: list[Sample]) -> None:
    """Weights that are damaged end the run after a few steps; they are not trained any further."""
    told: list[str] = []
    trainer = Trainer(make_model(), tell=told.append)
    with torch.no_grad():
        trainer.model.embedding.weight[0, 0] = float("nan")
    before = trainer.state()
    assert [trainer.step(samples, CLIPPED, lr=1e-3) for _ in range(3)] == [{}] * 3
    with pytest.raises(TrainerError, match="4 steps in a row") as ended:
        trainer.step(samples, CLIPPED, lr=1e-3)
    assert not isinstance(ended.value, StepRefused)
    assert told == ["the loss is not finite"] * 4
    assert trainer.steps == 0
    assert all(torch.equal(value.nan_to_num(), before[n].nan_to_num()) for n, value in trainer.state().items())


def test_a_gradient_that_is_not_finite(make_model: MakeModel, samples: list[Sample]) -> None:
    """It is refused, the weights and moments stay, and the next batch starts clean."""

    def steep(streams: TokenStreams) -> LossSum:
        # The square root of 0 has a finite value and an infinite slope.
        return LossSum((streams.logprobs - streams.logprobs.detach()).abs().sqrt().sum(), {})

    trainer = Trainer(make_model())
    before = trainer.state()
    trainer.forward_backward(samples, Loss(steep))
    with pytest.raises(StepRefused, match="gradient is not finite"):
        trainer.optim_step(1e-3)
    assert_equal(trainer.state(), before)
    assert trainer.steps == 0
    assert gradients(trainer.model) == {}


def test_a_spike_is_as_if_it_had_not_been(make_model: MakeModel, samples: list[Sample], tmp_path: Path) -> None:
    """A step out of all proportion is not taken, in a resumed run either, and later ones do not know of it."""
    trainer, clean = Trainer(make_model()), Trainer(make_model())
    for each in (trainer, clean):
        for _ in range(8):
            assert each.step(samples, times(1.0), lr=1e-4)
    trainer.save(tmp_path)
    resumed = Trainer(make_model())
    resumed.model.load_state_dict(trainer.state())
    resumed.load(tmp_path)
    for each in (trainer, resumed):
        assert each.step(samples, times(1e5), lr=1e-4) == {}
        assert_equal(each.state(), clean.state())
    for each in (trainer, resumed, clean):
        assert each.step(samples, times(1.0), lr=1e-4)
    assert_equal(trainer.state(), clean.state())
    assert_equal(resumed.state(), clean.state())
    assert trainer.guard == resumed.guard == clean.guard


@pytest.mark.parametrize(
    "loss",
    [cross_entropy, CLIPPED, simple_preference(beta=2.0, gamma=0.5)],
    ids=["cross-entropy", "clipped", "simpo"],
)
@pytest.mark.parametrize(
    ("lr", "why"), [(float("inf"), "not finite"), (1e25, "not finite"), (10.0, "its own samples worse")]
)
@pytest.mark.parametrize("earlier", [0, 3])
def test_a_ruinous_step_is_undone_at_once(
    make_model: MakeModel, samples: list[Sample], loss: Loss, lr: float, why: str, earlier: int
) -> None:
    """A step that makes the model useless does not stay, though its gradient is sound; later ones do not know of it."""
    told: list[str] = []
    trainer, clean = Trainer(make_model(), tell=told.append), Trainer(make_model())
    for each in (trainer, clean):
        for _ in range(earlier):
            assert each.step(samples[:6], loss, lr=1e-3)
    assert trainer.step(samples[:6], loss, lr=lr) == {}
    assert len(told) == 1
    assert why in told[0] or "no finite loss" in told[0]
    assert_equal(trainer.state(), clean.state())
    assert (trainer.steps, trainer.guard) == (earlier, clean.guard.under(loss.name).not_taken())
    for each in (trainer, clean):
        assert each.step(samples[:6], loss, lr=1e-3)
    assert_equal(trainer.state(), clean.state())
    assert trainer.guard == clean.guard


def test_what_is_punished_may_become_unlikely(make_model: MakeModel, samples: list[Sample]) -> None:
    """A step that makes punished tokens much less likely did what it was to do; praised ones must not suffer so."""
    ids, mask = (1, *[5] * 7), (0, *[1] * 7)
    punished = Sample(ids, mask, (0.0, *[-2.83] * 7), (0.0, *[-1.0] * 7), 0)
    trainer = Trainer(make_model())
    before = next_logprobs(trainer.model, torch.tensor([ids])).mean()
    assert trainer.step([punished], CLIPPED, lr=1.0)
    assert next_logprobs(trainer.model, torch.tensor([ids])).mean() < before - 10  # of praised tokens that is ruin
    praised = [replace(each, advantages=tuple(0.01 * m for m in each.loss_mask)) for each in samples]
    told: list[str] = []
    trainer = Trainer(make_model(), tell=told.append)
    assert trainer.step([punished, *praised], CLIPPED, lr=10.0) == {}
    assert "its own samples worse" in told[0]


def test_weights_that_only_the_undone_step_moved(make_model: MakeModel, samples: list[Sample]) -> None:
    """A step that is undone leaves no moments where there were none, so the next one is as if it had not been."""
    trainer, clean = Trainer(make_model()), Trainer(make_model())
    for each in (trainer, clean):
        each.forward_backward(samples, cross_entropy)
        each.model.embedding.weight.grad = None
        each.optim_step(1e-3)
    assert trainer.step(samples, cross_entropy, lr=10.0) == {}
    assert trainer.model.embedding.weight not in trainer.optimiser.state
    for each in (trainer, clean):
        assert each.step(samples, cross_entropy, lr=1e-3)
    assert_equal(trainer.state(), clean.state())


def test_ruinous_steps_end_the_run_with_the_last_good_weights(make_model: MakeModel, samples: list[Sample]) -> None:
    """A rate that is too high is no accident: after a few such steps the run ends, and the weights are still sound."""
    trainer = Trainer(make_model())
    before = trainer.state()
    assert [trainer.step(samples, cross_entropy, lr=10.0) for _ in range(3)] == [{}] * 3
    with pytest.raises(TrainerError, match="4 steps in a row") as ended:
        trainer.step(samples, cross_entropy, lr=10.0)
    assert not isinstance(ended.value, StepRefused)
    assert_equal(trainer.state(), before)


def test_steps_that_were_not_taken_are_not_in_the_mean() -> None:
    """The mean is over the reports there are."""
    assert mean_of([{"loss": 1.0}, {}, {"loss": 2.0}]) == {"loss": 1.5}
    assert mean_of([{}]) == mean_of([]) == {}


@pytest.mark.parametrize("batch_tokens", [1, 30, 1024])
def test_packing_changes_nothing(make_model: MakeModel, samples: list[Sample], batch_tokens: int) -> None:
    """In double precision loss and gradients are those of each sample on its own, to the last digits."""
    trainer, plain = Trainer(make_model().double(), batch_tokens=batch_tokens), make_model().double()
    metrics = trainer.forward_backward(samples, cross_entropy)
    total = torch.zeros((), dtype=torch.float64)
    for sample in samples:
        logprobs = next_logprobs(plain, torch.tensor([sample.input_ids]))[0]
        credit = torch.tensor(sample.advantages[1:], dtype=torch.float32).double()
        total = total - (logprobs * credit).sum()
    mean = total / sum(sum(sample.loss_mask) for sample in samples)
    mean.backward()  # type: ignore[no-untyped-call]
    assert metrics["loss"] == pytest.approx(float(mean.detach()), rel=1e-9)
    expected = gradients(plain)
    for name, value in gradients(trainer.model).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-6, atol=1e-12)


def test_recomputing_changes_nothing(make_model: MakeModel, samples: list[Sample]) -> None:
    """With gradient checkpointing, loss and gradients are the same bit for bit."""
    one, other = Trainer(make_model()), Trainer(make_model())
    other.model.recompute = True
    assert one.forward_backward(samples, CLIPPED) == other.forward_backward(samples, CLIPPED)
    assert_equal(gradients(one.model), gradients(other.model))


def test_bfloat16(make_model: MakeModel, samples: list[Sample]) -> None:
    """Where the processor has it, gradients point the same way, and weights and moments stay in float32."""
    try:
        fewer = Trainer(make_model(), precision="bfloat16")
    except TrainerError as error:
        assert "bfloat16" in str(error)  # noqa: PT017
        return
    plain = Trainer(make_model())
    one, other = (each.forward_backward(samples, cross_entropy) for each in (plain, fewer))
    assert one["loss"] != other["loss"]
    assert one["loss"] == pytest.approx(other["loss"], rel=0.02)
    a, b = (torch.cat([slope.flatten() for slope in gradients(each.model).values()]) for each in (plain, fewer))
    assert torch.cosine_similarity(a, b, dim=0) > 0.999
    fewer.optim_step(1e-3)
    assert {value.dtype for value in fewer.state().values()} == {torch.float32}
    assert {v.dtype for state in fewer.optimiser.state.values() for v in state.values()} == {torch.float32}
