"""From a trajectory to what a trainer may use."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from practicum.records.sample import samples_from
from practicum.records.trajectory import Action, Trajectory, Turn

IDS = st.lists(st.integers(0, 9), min_size=1, max_size=5)


def turn(index: int, prompt: Sequence[int], sampled: Sequence[int], version: int = 0) -> Turn:
    logprobs = tuple(-1.0 - index - position / 16 for position in range(len(sampled)))
    return Turn(
        index, tuple(prompt), tuple(sampled), logprobs, version, "stop", "", Action("submit"), "", "before", "after"
    )


def trajectory(*turns: Turn) -> Trajectory:
    return Trajectory("id", "group", "task", "digest", turns, "submitted")


def test_one_row_where_every_prompt_extends_the_last() -> None:
    """Prompt ids are masked, sampled ids train with the log-probabilities and the credit they were given."""
    rows = samples_from(trajectory(turn(0, [1, 2], [3, 4]), turn(1, [1, 2, 3, 4, 5], [6])), 0.5)
    assert len(rows) == 1
    row = rows[0]
    assert row.input_ids == (1, 2, 3, 4, 5, 6)
    assert row.loss_mask == (0, 0, 1, 1, 0, 1)
    assert row.behaviour_logprobs == (0.0, 0.0, -1.0, -1.0625, 0.0, -2.0)
    assert row.advantages == (0.0, 0.0, 0.5, 0.5, 0.0, 0.5)


def test_a_changed_prefix_starts_a_new_row() -> None:
    """Where a prompt rewrites what came before, no id is carried over and none is trained twice."""
    rows = samples_from(trajectory(turn(0, [1, 2], [3, 4]), turn(1, [1, 9, 3, 4, 5], [6])), 1.0)
    assert [row.input_ids for row in rows] == [(1, 2, 3, 4), (1, 9, 3, 4, 5, 6)]
    assert [row.loss_mask for row in rows] == [(0, 0, 1, 1), (0, 0, 0, 0, 0, 1)]


def test_a_shorter_prompt_starts_a_new_row() -> None:
    """A prompt that is only a beginning of the last one does not extend it."""
    rows = samples_from(trajectory(turn(0, [1, 2], [3]), turn(1, [1, 2], [4])), 1.0)
    assert [row.input_ids for row in rows] == [(1, 2, 3), (1, 2, 4)]


def test_version_is_the_oldest_of_the_row() -> None:
    """A row says the oldest version that sampled one of its tokens, and another row's does not count."""
    rows = samples_from(
        trajectory(turn(0, [1], [2], 5), turn(1, [1, 2], [3], 4), turn(2, [8], [9], 7), turn(3, [8, 9], [1], 9)), 1.0
    )
    assert [row.policy_version for row in rows] == [4, 7]


def test_nothing_sampled_is_no_row() -> None:
    """An attempt without a sampled token cannot train."""
    assert samples_from(trajectory(), 1.0) == []
    assert samples_from(trajectory(turn(0, [1, 2], [])), 1.0) == []


@given(st.lists(st.tuples(IDS, IDS, st.booleans()), max_size=6), st.floats(-2, 2))
def test_exactly_the_sampled_ids_train(drawn: list[tuple[list[int], list[int], bool]], credit: float) -> None:
    """Over all rows the trained tokens are every sampled id once, in order, with its own log-probability."""
    turns: list[Turn] = []
    for index, (fresh, sampled, extends) in enumerate(drawn):
        earlier = [*turns[-1].prompt_ids, *turns[-1].sampled_ids] if turns and extends else []
        turns.append(turn(index, [*earlier, *fresh], sampled))
    rows = samples_from(trajectory(*turns), credit)
    trained = [
        (ident, logprob, advantage)
        for row in rows
        for ident, mask, logprob, advantage in zip(
            row.input_ids, row.loss_mask, row.behaviour_logprobs, row.advantages, strict=True
        )
        if mask
    ]
    sampled_once = [(i, lp, credit) for t in turns for i, lp in zip(t.sampled_ids, t.logprobs, strict=True)]
    assert trained == sampled_once
    for row in rows:
        masked = [
            (lp, a) for m, lp, a in zip(row.loss_mask, row.behaviour_logprobs, row.advantages, strict=True) if not m
        ]
        assert all(pair == (0, 0) for pair in masked)
        assert not row.loss_mask[0]


def test_credit_by_turn() -> None:
    """With one number a turn, the tokens of each turn get that turn's, in one row or several."""
    turns = (turn(0, [1, 2], [3, 4]), turn(1, [1, 2, 3, 4, 5], [6]), turn(2, [9], [7, 7]))
    rows = samples_from(trajectory(*turns), [0.5, -1.0, 2.0])
    assert [row.advantages for row in rows] == [(0.0, 0.0, 0.5, 0.5, 0.0, -1.0), (0.0, 2.0, 2.0)]
