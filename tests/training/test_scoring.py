"""Log-probabilities of what is there already."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from practicum.policies.local.model import Decoder, next_logprobs
from practicum.records.sample import Sample
from practicum.training.scoring import scored


@pytest.mark.parametrize("batch_tokens", [1, 1024])
def test_scores_are_those_of_a_plain_forward_pass(
    make_model: Callable[[], Decoder], samples: list[Sample], batch_tokens: int
) -> None:
    """Trained tokens get the model's log-probability, others 0, each sample in its place whatever the batches."""
    model = make_model()
    found = scored(model, samples, "reference", batch_tokens=batch_tokens)
    assert [sample.input_ids for sample in found] == [sample.input_ids for sample in samples]
    for sample in found:
        logprobs = next_logprobs(model, torch.tensor([sample.input_ids]))[0].tolist()
        expected = [0.0, *(m * value for m, value in zip(sample.loss_mask[1:], logprobs, strict=True))]
        assert sample.reference_logprobs == pytest.approx(expected, abs=1e-5)
        assert sample.proximal_logprobs == ()
