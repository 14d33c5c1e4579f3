"""Splits: whole units, stable under growth, about as large as wanted."""

from __future__ import annotations

import datetime as dt
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.splitting import Piece, Way, read_fractions, split_pieces
from practicum.errors import ConfigError

PARTS = {"train": 0.8, "validation": 0.1, "test": 0.1}
TASKS = st.lists(st.integers(0, 40), min_size=1, max_size=60, unique=True)
WAYS: tuple[Way, ...] = ("repository", "time", "cluster", "random")


def piece(number: int) -> Piece:
    date = dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=number * 7 % 400)
    return Piece(f"t{number}", f"repo-{number % 9}", date=date)


def clusters_of(numbers: list[int]) -> list[list[str]]:
    """Tasks whose numbers agree in their tens are alike."""
    groups: dict[int, list[str]] = {}
    for number in sorted(numbers):
        groups.setdefault(number // 10, []).append(f"t{number}")
    return [members for members in groups.values() if len(members) > 1]


@given(TASKS, st.sampled_from(WAYS), st.integers(0, 3))
def test_what_belongs_together_stays_together(numbers: list[int], way: Way, seed: int) -> None:
    """Whatever the way, each task has one split and no cluster lies in two; by repository, no repository does."""
    clusters = clusters_of(numbers)
    plan = split_pieces([piece(n) for n in numbers], way, PARTS, clusters=clusters, seed=seed)
    assert plan.splits.keys() == {f"t{n}" for n in numbers}
    for members in clusters:
        assert len({plan.splits[task] for task in members}) == 1
    if way == "repository":
        assert plan.shared == ()
    assert plan == split_pieces([piece(n) for n in reversed(numbers)], way, PARTS, clusters=clusters, seed=seed)


@pytest.mark.parametrize("count", [60, 500])
def test_adding_a_task_moves_few_others(count: int) -> None:
    """One task more changes the split of some few at most, and over many additions of hardly any."""
    moved = []
    for at in range(count, count + 20):
        before, after = (split_pieces([Piece(f"t{n}") for n in range(size)], "random", PARTS) for size in (at, at + 1))
        moved.append(sum(after.splits[task] != before.splits[task] for task in before.splits))
    assert max(moved) <= 5
    assert sum(moved) <= 20


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(0, 5), st.sampled_from(["cluster", "time"]))
def test_no_split_is_empty_where_there_are_units_enough(sizes: list[int], seed: int, way: Way) -> None:
    """As many units as splits fill all of them; fewer fill the first, and a single unit goes into the first."""
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    clusters = [[f"u{unit}-{at}" for at in range(size)] for unit, size in enumerate(sizes)]
    pieces = [Piece(task, date=start + dt.timedelta(days=at)) for at, unit in enumerate(clusters) for task in unit]
    plan = split_pieces(pieces, way, PARTS, clusters=clusters, seed=seed)
    assert plan.units == len(sizes)
    assert plan.largest == max(sizes)
    assert set(plan.counts) == set([*PARTS][: len(sizes)])


@pytest.mark.parametrize("seed", range(6))
def test_few_units_come_near_the_parts(seed: int) -> None:
    """Ten units of one task are split 8, 1, 1 by every seed; a unit of most tasks goes into the large split."""
    assert split_pieces([Piece(f"t{n}") for n in range(10)], "random", PARTS, seed=seed).counts == {
        "train": 8,
        "validation": 1,
        "test": 1,
    }
    names = [f"t{n}" for n in range(20)]
    plan = split_pieces([Piece(name) for name in names], "cluster", PARTS, clusters=[names[:14]], seed=seed)
    assert plan.counts == {"train": 16, "validation": 2, "test": 2}


def test_the_parts_are_about_as_large_as_wanted() -> None:
    """With many units, each split gets its part within a few standard errors; another seed gives another split."""
    pieces = [Piece(f"t{number}") for number in range(4000)]
    one, other = (split_pieces(pieces, "random", PARTS, seed=seed) for seed in (0, 1))
    for name, part in PARTS.items():
        assert abs(one.counts[name] / 4000 - part) < 4 * (part * (1 - part) / 4000) ** 0.5
    assert one.splits != other.splits


def test_by_time_training_is_older_than_what_is_measured() -> None:
    """No task of a later split is older than one of an earlier, save that a cluster goes with its oldest member."""
    numbers = random.Random("time").sample(range(400), 100)
    pieces = [piece(n) for n in numbers]
    plan = split_pieces(pieces, "time", PARTS)
    dates = {name: [p.date for p in pieces if plan.splits[p.task] == name and p.date] for name in PARTS}
    assert max(dates["train"]) < min(dates["validation"])
    assert max(dates["validation"]) < min(dates["test"])
    assert 75 <= len(dates["train"]) <= 85
    newest = max(pieces, key=lambda p: p.date or dt.datetime.min)
    oldest = min(pieces, key=lambda p: p.date or dt.datetime.max)
    together = split_pieces(pieces, "time", PARTS, clusters=[[newest.task, oldest.task]])
    assert together.splits[newest.task] == "train"


def test_given_cuts_hold_whatever_is_added() -> None:
    """With fixed dates the split of a task depends on its own date alone."""
    cuts = [dt.datetime(2020, 6, 1, tzinfo=dt.UTC), dt.datetime(2020, 9, 1, tzinfo=dt.UTC)]
    few = split_pieces([piece(n) for n in range(10)], "time", PARTS, cuts=cuts)
    many = split_pieces([piece(n) for n in range(50)], "time", PARTS, cuts=cuts)
    assert few.splits.items() <= many.splits.items()
    assert few.cuts == tuple(cuts)
    for wrong in (cuts[:1], cuts[::-1]):
        with pytest.raises(ConfigError, match="3 splits need 2 cuts"):
            split_pieces([piece(1)], "time", PARTS, cuts=wrong)


def test_tasks_without_a_place_are_refused_by_name() -> None:
    """A task without a date has no place in time, one without repository and parent none among repositories."""
    pieces = [piece(1), Piece("bare"), Piece("child", parent="abc")]
    assert split_pieces(pieces, "time", PARTS).refused.keys() == {"bare", "child"}
    plan = split_pieces(pieces, "repository", PARTS)
    assert plan.refused == {"bare": "its provenance states no repository and no parent"}
    assert plan.splits.keys() == {"t1", "child"}


@pytest.mark.parametrize("text", ["train", "train=x", "train=0.5", "a=0.5,a=0.5", "a=1.5,b=-0.5", "a b=1", ""])
def test_bad_fractions_are_refused(text: str) -> None:
    """Parts that are no numbers, do not sum to 1, or name a split twice are refused with what to write."""
    with pytest.raises(ConfigError) as caught:
        read_fractions(text)
    assert caught.value.fix == "write for example: train=0.8,validation=0.1,test=0.1"


def test_fractions_keep_their_order() -> None:
    """The order matters, for time runs through it."""
    assert list(read_fractions("train=0.8, validation=0.1, test=0.1").items()) == list(PARTS.items())
