"""Snapshot stores keep trees and notice what was changed behind their back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import StoreError
from practicum.records.tree import File, tree_digest
from practicum.sandboxes.contract import SnapshotStore
from practicum.sandboxes.snapshots import DirectorySnapshots, MemorySnapshots

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=[]), min_size=1).filter(
    lambda name: name not in (".", "..")
)
TREES = st.dictionaries(NAMES, st.builds(File, st.binary(max_size=50), st.sampled_from([0o644, 0o755])), max_size=5)


@settings(max_examples=30, deadline=None)
@given(tree=TREES)
def test_what_is_put_is_what_comes_back(tree: dict[str, File]) -> None:
    """Any tree, whatever its names, comes back equal from either store, under its digest."""
    with tempfile.TemporaryDirectory() as folder:
        stores: list[SnapshotStore] = [MemorySnapshots(), DirectorySnapshots(Path(folder))]
        for store in stores:
            snapshot = store.put(tree)
            assert snapshot == tree_digest(tree)
            assert store.put(dict(tree)) == snapshot
            assert store.get(snapshot) == tree


def test_stored_snapshots_outlive_the_store(tmp_path: Path) -> None:
    """A second store on the same folder has the snapshots of the first, and contents are stored once."""
    first = DirectorySnapshots(tmp_path)
    one = first.put({"a": File(b"same"), "b": File(b"same", 0o755)})
    first.put({"c": File(b"same")})
    assert DirectorySnapshots(tmp_path).get(one) == {"a": File(b"same"), "b": File(b"same", 0o755)}
    assert len(list((tmp_path / "blobs").iterdir())) == 1


@pytest.mark.parametrize("damage", ["change", "cut", "remove"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    """A blob that was changed, cut or removed is a StoreError, never other content."""
    import zlib

    store = DirectorySnapshots(tmp_path)
    snapshot = store.put({"a": File(b"content")})
    (blob,) = (tmp_path / "blobs").iterdir()
    if damage == "remove":
        blob.unlink()
    else:
        blob.write_bytes(zlib.compress(b"other") if damage == "change" else blob.read_bytes()[:4])
    with pytest.raises(StoreError, match=snapshot):
        store.get(snapshot)


def test_unknown_snapshots_are_refused(tmp_path: Path) -> None:
    """An unknown id, or one that is no id at all, is a StoreError."""
    for store in (MemorySnapshots(), DirectorySnapshots(tmp_path)):
        for name in ("0" * 64, "../trees/x"):
            with pytest.raises(StoreError):
                store.get(name)
