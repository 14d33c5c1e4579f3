"""Samples to micro-batches."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import TrainerError
from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches


@st.composite
def some_samples(draw: st.DrawFn) -> list[Sample]:
    """Samples whose log-probabilities and credits are all different, so that any mix-up shows."""
    made: list[Sample] = []
    number = 0
    for length in draw(st.lists(st.integers(1, 12), max_size=10)):
        mask = (0, *draw(st.lists(st.integers(0, 1), min_size=length - 1, max_size=length - 1)))
        logprobs, credits = [], []
        for m in mask:
            number += m
            logprobs.append(-float(number) * m)
            credits.append(float(number) / 4 * m)
        ids = tuple(draw(st.lists(st.integers(1, 9), min_size=length, max_size=length)))
        made.append(Sample(ids, mask, tuple(logprobs), tuple(credits), 0))
    return made


Row = tuple[tuple[int, ...], tuple[tuple[int, float, float], ...]]


def rows_of(batch: MicroBatch) -> list[Row]:
    """Each sequence of a batch: its ids, and (place, log-probability, credit) of its trained tokens."""
    trained: list[list[tuple[int, float, float]]] = [[] for _ in batch.lengths]
    streams = (batch.rows, batch.columns, batch.behaviour_logprobs, batch.advantages)
    for row, column, logprob, credit in zip(*(stream.tolist() for stream in streams), strict=True):
        trained[row].append((column, logprob, credit))
    parts = torch.split(batch.ids, list(batch.lengths))
    return [(tuple(ids.tolist()), tuple(tokens)) for ids, tokens in zip(parts, trained, strict=True)]


def row_of(sample: Sample) -> Row:
    places = [place for place, m in enumerate(sample.loss_mask) if m]
    return sample.input_ids, tuple((i, sample.behaviour_logprobs[i], sample.advantages[i]) for i in places)


@settings(deadline=None)
@given(some_samples(), st.integers(1, 60))
def test_no_token_is_lost_or_trained_twice(samples: list[Sample], max_tokens: int) -> None:
    """Each sample that trains is one sequence of one micro-batch, with exactly its own trained tokens, unpadded."""
    batches = micro_batches(samples, max_tokens=max_tokens)
    teaching = [sample for sample in samples if any(sample.loss_mask)]
    assert Counter(row for batch in batches for row in rows_of(batch)) == Counter(map(row_of, teaching))
    assert sum(len(batch.ids) for batch in batches) == sum(len(sample.input_ids) for sample in teaching)
    assert sum(len(batch.trained) for batch in batches) == sum(sum(sample.loss_mask) for sample in teaching)
    for batch in batches:
        assert [samples[place].input_ids for place in batch.places] == [ids for ids, _ in rows_of(batch)]
        starts = [sum(batch.lengths[:row]) for row in batch.rows.tolist()]
        assert batch.trained.tolist() == [s + c for s, c in zip(starts, batch.columns.tolist(), strict=True)]


@settings(deadline=None)
@given(some_samples(), st.integers(1, 60))
def test_budget(samples: list[Sample], max_tokens: int) -> None:
    """Tokens stay within the budget, unless one sample alone exceeds it; neighbours would not fit together."""
    batches = micro_batches(samples, max_tokens=max_tokens)
    for batch in batches:
        assert len(batch.lengths) == 1 or len(batch.ids) <= max_tokens
    for batch, following in pairwise(batches):
        assert len(batch.ids) + following.lengths[0] > max_tokens


@settings(deadline=None)
@given(some_samples())
def test_similar_lengths_together(samples: list[Sample]) -> None:
    """Lengths rise, so that equal ones are neighbours and share a call of the attention."""
    lengths = [length for batch in micro_batches(samples, max_tokens=24) for length in batch.lengths]
    assert lengths == sorted(lengths)


def test_nothing() -> None:
    """No samples are no batches, and a sample without a trained token costs none."""
    assert micro_batches([], max_tokens=8) == []
    silent = Sample((1, 2), (0, 0), (0.0, 0.0), (0.0, 0.0), 0)
    assert micro_batches([silent], max_tokens=8) == []
    (batch,) = micro_batches([silent, Sample((3, 4), (0, 1), (0.0, -1.0), (0.0, 1.0), 0)], max_tokens=8)
    assert (batch.places, batch.ids.tolist(), batch.ids.dtype) == ((1,), [3, 4], torch.long)


def test_the_first_token_cannot_train() -> None:
    """A token that nothing precedes has no prediction; it is refused rather than scored by another's."""
    with pytest.raises(TrainerError, match="first token"):
        micro_batches([Sample((1, 2), (1, 1), (-1.0, -1.0), (1.0, 1.0), 0)], max_tokens=8)


@settings(deadline=None)
@given(some_samples(), st.integers(1, 60))
def test_pairs_stay_side_by_side(samples: list[Sample], max_tokens: int) -> None:
    """Samples that belong together are neighbours in one micro-batch, in order, and each is there once."""
    trained = [sample for sample in samples if any(sample.loss_mask)]
    pairs = trained[: len(trained) // 2 * 2]
    seen: list[int] = []
    for batch in micro_batches(pairs, max_tokens=max_tokens, together=2):
        assert [place % 2 for place in batch.places] == [0, 1] * (len(batch.places) // 2)
        assert all(second == first + 1 for first, second in zip(batch.places[::2], batch.places[1::2], strict=True))
        seen += batch.places
    assert sorted(seen) == list(range(len(pairs)))


def test_what_is_no_pair() -> None:
    """Half a pair, an answer without a trained token and a stream that only some have are refused."""
    good = Sample((1, 2), (0, 1), (0.0, -1.0), (0.0, 1.0), 0)
    empty = Sample((1, 2), (0, 0), (0.0, 0.0), (0.0, 0.0), 0)
    with pytest.raises(TrainerError, match="2 at a time"):
        micro_batches([good], max_tokens=8, together=2)
    with pytest.raises(TrainerError, match="no token to train"):
        micro_batches([good, empty], max_tokens=8, together=2)
    known = Sample((1, 2), (0, 1), (0.0, -1.0), (0.0, 1.0), 0, reference_logprobs=(0.0, -0.5))
    with pytest.raises(TrainerError, match="only some samples"):
        micro_batches([good, known], max_tokens=8)
