"""The journal and the counts of a run of synthesis."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.curation.synthesis.journal import NAME, Entry, Journal
from practicum.curation.synthesis.yields import Yield
from practicum.errors import StoreError


def test_journal_knows_what_was_tried(tmp_path: Path) -> None:
    """A journal that is opened again knows the candidates of its project, and of no other."""
    first = Journal(tmp_path, "p")
    first.add(Entry("p", "a", "single-bug", "loops", task="t-a", killed=True))
    first.add(Entry("p", "b", "single-bug", "loops", reason="survived"))
    Journal(tmp_path, "q").add(Entry("q", "c", "single-bug", "loops", task="t-c"))
    again = Journal(tmp_path, "p")
    assert [key in again for key in "abc"] == [True, True, False]
    assert again.kept == ("t-a",)


def test_torn_line_is_dropped(tmp_path: Path) -> None:
    """Half a line, which a killed writer leaves, is tried again and spoils nothing that follows."""
    Journal(tmp_path, "p").add(Entry("p", "a", "s", "k"))
    path = tmp_path / ".practicum" / NAME
    path.write_bytes(path.read_bytes() + b'{"project": "p", "cand')
    again = Journal(tmp_path, "p")
    again.add(Entry("p", "b", "s", "k"))
    assert [key in Journal(tmp_path, "p") for key in "ab"] == [True, True]


def test_foreign_line_is_refused(tmp_path: Path) -> None:
    """A line that is no record is an error that names it."""
    Journal(tmp_path, "p").add(Entry("p", "a", "s", "k"))
    path = tmp_path / ".practicum" / NAME
    path.write_text('{"project": 1}\n')
    with pytest.raises(StoreError, match=f"{NAME}:1"):
        Journal(tmp_path, "p")


def test_counts() -> None:
    """Each candidate counts once by strategy and kind; what tests noticed counts as killed, kept or not."""
    result = Yield()
    result.count("s", "loops")
    result.count("s", "loops", reason="survived")
    result.count("s", "calls", reason="fails too many tests", killed=True)
    document = result.to_json()
    tally = document["strategies"]["s"]
    assert (tally["tried"], tally["killed"], tally["kept"]) == (3, 2, 1)
    assert tally["refused"] == {"fails too many tests": 1, "survived": 1}
    assert tally["kinds"]["loops"] == {"tried": 2, "killed": 1, "kept": 1, "refused": {"survived": 1}}
    assert document["kept"] == 1
