"""The chained trail: appending at a cost that does not grow, and reading what is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.errors import StoreError
from practicum.trajectories.chain import ORIGIN, Chain, append, entries, head, verify


def test_append_needs_only_the_last_line(tmp_path: Path) -> None:
    """Entries follow each other, lines longer than a block of reading included."""
    path = tmp_path / "trail.jsonl"
    for size in (1, 200_000, 70_000, 3):
        append(path, "said", {"text": "x" * size})
    assert verify(path) == 4
    assert [len(entry["data"]["text"]) for entry in entries(path)] == [1, 200_000, 70_000, 3]


def test_news_is_read_once(tmp_path: Path) -> None:
    """A chain gives each entry once, whoever wrote it, and knows the head."""
    path = tmp_path / "trail.jsonl"
    chain = Chain(path)
    assert (chain.news(), chain.head) == ([], ORIGIN)
    append(path, "a", {})
    with chain.writing():
        assert [entry["event"] for entry in chain.news()] == ["a"]
        chain.append([("b", {}), ("c", {})])
    assert [entry["event"] for entry in chain.news()] == ["b", "c"]
    assert (chain.count, chain.head) == (3, head(path))
    assert verify(path, reaches=chain.head) == 3


def test_a_trail_that_was_cut_is_noticed(tmp_path: Path) -> None:
    """A file that became shorter, or whose last line is no entry, is refused."""
    path = tmp_path / "trail.jsonl"
    append(path, "a", {})
    chain = Chain(path)
    chain.news()
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="cut short"):
        chain.news()
    path.write_bytes(b"no entry\n")
    with pytest.raises(StoreError, match="no entry"):
        append(path, "b", {})
