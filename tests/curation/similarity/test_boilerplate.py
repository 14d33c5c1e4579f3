"""Text that a source has in common does not count."""

from __future__ import annotations

from contextlib import closing

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.curation.similarity.boilerplate import without_boilerplate
from practicum.curation.similarity.matches import Rules
from practicum.curation.similarity.store import Ragged

RULES = Rules(common_share=0.1, common_least=3, common_most=50)


def column(rows: list[list[int]]) -> Ragged:
    found = Ragged()
    for row in rows:
        found.append(np.array(row, np.uint64), np.array([len(row)]))
    found.finish()
    return found


def kept(
    rows: list[list[int]], groups: list[int], distinct: list[bool] | None = None, reach: int = 1
) -> list[list[int]]:
    flags = np.array(distinct if distinct is not None else [True] * len(rows), np.bool_)
    with closing(column(rows)) as raw:
        found, _ = without_boilerplate(raw, np.array(groups), flags, RULES, reach=reach)
    with closing(found):
        return [found[at].tolist() for at in range(len(rows))]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(1, 12), max_size=8)), min_size=1, max_size=60))
def test_what_is_common_in_its_group_goes_and_nothing_else(tasks: list[tuple[int, set[int]]]) -> None:
    """A hash is dropped exactly where more tasks of its own group hold it than the rules allow."""
    rows, groups = [sorted(members) for _, members in tasks], [group for group, _ in tasks]
    found = kept(rows, groups)
    for row, group, left in zip(rows, groups, found, strict=True):
        size = groups.count(group)
        limit = max(int(min(0.1 * size, 50)), 3)
        assert left == [
            h for h in row if sum(h in other for other, g in zip(rows, groups, strict=True) if g == group) <= limit
        ]


def test_copies_do_not_make_their_own_text_common() -> None:
    """A task that is there ten times is no boilerplate: copies count once."""
    rows = [[1, 2, 3]] * 10 + [[7, 8]] * 4
    assert kept(rows, [0] * 14, [True, *[False] * 9, *[True] * 4]) == [[1, 2, 3]] * 10 + [[]] * 4


def test_runs_that_overlap_a_common_one_go_too() -> None:
    """Of runs, which stand in order, those that share words with a common one go with it, in their own task."""
    rows = [[at * 10 + 1, at * 10 + 2, at * 10 + 3, 99, at * 10 + 4] for at in range(5)]
    assert kept(rows, [0] * 5, reach=2) == [row[:2] for row in rows]
