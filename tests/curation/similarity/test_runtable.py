"""A table of runs in a file: whose they are, however it was made."""

from __future__ import annotations

import pickle
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.curation.similarity.runtable import run_table
from practicum.curation.similarity.store import Ragged
from practicum.errors import StoreError

RUNS = st.sets(st.one_of(st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=9)


@contextmanager
def ragged(sets: list[set[int]]) -> Iterator[Ragged]:
    made = Ragged()
    try:
        for one in sets:
            made.append(np.array(sorted(one), np.uint64), np.array([len(one)]))
        made.finish()
        yield made
    finally:
        made.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=5), RUNS, st.integers(1, 40))
def test_a_run_names_all_who_hold_it(sets: list[set[int]], asked: set[int], at_once: int) -> None:
    """Each owner is named once for every run of it that is asked for, in however many passes the table was made."""
    runs = np.array(sorted(asked), np.uint64)
    with ragged(sets) as made, run_table(made, at_once=at_once) as table:
        assert table.length == sum(map(len, sets))
        if not table.length:
            return
        assert set(table.known(runs).tolist()) == asked & set().union(*sets)
        expected = Counter({owner: len(asked & held) for owner, held in enumerate(sets) if asked & held})
        assert Counter(table.owners_of(runs).tolist()) == expected
        again = pickle.loads(pickle.dumps(table))  # as it reaches another process
        assert Counter(again.owners_of(runs).tolist()) == expected


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_with_the_folder() -> None:
    """What does not fit on the disk, hashes or a table of them, is an error that names the folder and `TMPDIR`."""
    sets = [set(range(start, start + 500)) for start in range(0, 2000, 500)]
    with ragged(sets) as made, files_of_at_most(4096):
        with pytest.raises(StoreError, match=tempfile.gettempdir()) as told, run_table(made, at_once=300):
            pass
        assert "TMPDIR" in str(told.value.fix)
    with files_of_at_most(4096), pytest.raises(StoreError, match=tempfile.gettempdir()), ragged(sets):
        pass
