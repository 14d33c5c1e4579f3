"""Signatures estimate the Jaccard index, and banding misses no more than theory allows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.curation.similarity.minhash import (
    CAP,
    Banding,
    agreement,
    banding_for,
    bucket_pairs,
    candidates,
    signatures,
)
from practicum.curation.similarity.pairs import jaccard
from practicum.curation.similarity.store import Ragged
from practicum.curation.similarity.tokens import mixed


@contextmanager
def ragged(sets: list[set[int]]) -> Iterator[Ragged]:
    """Sets of small numbers as a column of hashes."""
    with closing(Ragged()) as found:
        for one in sets:
            found.append(np.unique(mixed(np.array(sorted(one), np.uint64))), np.array([len(one)]))
        found.finish()
        yield found


def pairs_with(index: float, count: int, size: int, seed: str) -> list[set[int]]:
    """`count` pairs of sets of `size` members, each pair with this Jaccard index, one after another."""
    rng = random.Random(seed)
    both = round(2 * size * index / (1 + index))
    found: list[set[int]] = []
    for _ in range(count):
        members = rng.sample(range(10**9), 2 * size - both)
        found += [set(members[:size]), set(members[size - both :])]
    return found


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sets(st.integers(0, 60), max_size=40), min_size=2, max_size=6))
def test_jaccard_is_exact(sets: list[set[int]]) -> None:
    """What a pair is verified by is the share of members in common, and nothing else."""
    one, other = sets[0], sets[1]
    with ragged(sets) as column:
        assert jaccard(column[0], column[1]) == (len(one & other) / len(one | other) if one | other else 0.0)


@pytest.mark.parametrize("index", [0.2, 0.5, 0.8])
def test_the_estimate_lies_within_its_bounds(index: float) -> None:
    """The mean of many estimates is the index, and single ones scatter as binomial shares of 128 do."""
    sets = pairs_with(index, 200, 90, f"estimate {index}")
    true = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    pairs = np.arange(len(sets)).reshape(-1, 2)
    with ragged(sets) as column:
        found = agreement(signatures(column, 128), pairs)
    error = np.sqrt(true * (1 - true) / 128)
    assert abs(found.mean() - true) < 4 * error / np.sqrt(len(found))
    assert 0.7 * error < found.std() < 1.3 * error


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.8, 0.85, 0.95])
def test_the_banding_follows_from_the_threshold(threshold: float) -> None:
    """A pair at the threshold is found with the chance asked for, and no banding of more rows would do."""
    banding = banding_for(threshold, 128, 0.99)
    assert banding.chance(threshold) >= 0.99
    assert banding.permutations <= 128
    rows = banding.rows + 1
    assert Banding(128 // rows, rows).chance(threshold) < 0.99
    assert Banding(banding.bands - 1, banding.rows).chance(threshold) < 0.99


def test_no_banding_finds_pairs_that_share_next_to_nothing() -> None:
    """However small the threshold, that is said, also where its powers are barely numbers."""
    for threshold in (0.002, 0.003, 1e-300, 5e-324):
        with pytest.raises(ValueError, match="no banding of 128"):
            banding_for(threshold)


@pytest.mark.parametrize("threshold", [0.6, 0.8])
def test_no_more_pairs_are_missed_than_theory_allows(threshold: float) -> None:
    """Of pairs at and above the threshold, at least the share that the banding promises become candidates; pairs far
    below do as rarely as it says."""
    banding = banding_for(threshold, 128, 0.99)
    near, far = pairs_with(threshold + 0.01, 400, 80, "near"), pairs_with(threshold / 4, 400, 80, "far")
    with ragged(near + far) as column:
        found = signatures(column, banding.permutations)
    hit = {tuple(pair) for pairs in candidates(found, np.ones(1600, np.bool_), banding) for pair in pairs.tolist()}
    seen = sum((at, at + 1) in hit for at in range(0, 800, 2))
    promised = banding.chance(threshold)
    assert seen >= 400 * promised - 4 * np.sqrt(400 * promised * (1 - promised))
    stray = 400 * banding.chance(len(far[0] & far[1]) / len(far[0] | far[1]))
    assert len([pair for pair in hit if pair[0] >= 800]) < stray + 4 * np.sqrt(stray) + 4


def test_empty_and_unusable_sets_are_no_candidates() -> None:
    """Sets that are too small to say anything are like nothing, also not like each other."""
    with ragged([set(), set(), {1, 2, 3}, {1, 2, 3}]) as column:
        found, usable = signatures(column, 8), column.sizes > 0
    assert {tuple(pair) for pairs in candidates(found, usable, Banding(4, 2)) for pair in pairs.tolist()} == {(2, 3)}


@given(st.lists(st.integers(0, 5), max_size=CAP))
def test_small_buckets_give_all_pairs(keys: list[int]) -> None:
    """In buckets up to the cap every pair of equal keys is given once; a key of 0 is none."""
    found = [tuple(pair) for pair in bucket_pairs(np.array(keys, np.uint64)).tolist()]
    wanted = {(i, j) for j in range(len(keys)) for i in range(j) if keys[i] == keys[j] != 0}
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_large_buckets_stay_linear_and_connected() -> None:
    """A bucket of thousands gives some pairs a member, not all, and they still hold the bucket together."""
    count = 5000
    first = np.arange(count) >= count - 3
    found = bucket_pairs(np.ones(count, np.uint64), None, first)
    assert len(found) < 20 * count
    assert {int(i) for i in found.ravel()} == set(range(count))
    partners = {int(i) for i, j in found if j >= count - 3}
    assert set(range(count - 3)) <= partners
