"""Policy versions on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from practicum.errors import StoreError
from practicum.weights.store import VersionStore

WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3).t(), "b": torch.tensor(1.5)}


def test_what_is_published_is_fetched(tmp_path: Path) -> None:
    """Tensors, text files and what was added come back as they were; versions are listed in order."""
    store = VersionStore(tmp_path / "checkpoints")
    assert store.versions() == []
    for version in (10, 2):
        store.publish(version, WEIGHTS, {"model.json": "é"}, extra=lambda folder: (folder / "more").mkdir())
    assert store.versions() == [2, 10]
    again = store.fetch(10)
    assert again.keys() == WEIGHTS.keys()
    assert all(torch.equal(again[name], WEIGHTS[name]) for name in WEIGHTS)
    assert store.read(10, "model.json") == "é"
    assert (store.path(10) / "more").is_dir()


def test_a_version_is_whole_or_absent(tmp_path: Path) -> None:
    """When writing fails half-way no version appears, an older one stays, and nothing is left behind."""

    def fail(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    store = VersionStore(tmp_path)
    store.publish(1, WEIGHTS, {})
    for version in (1, 2):
        with pytest.raises(StoreError, match="No space left"):
            store.publish(version, {"a": torch.zeros(1)}, {}, extra=fail)
    assert store.versions() == [1]
    assert torch.equal(store.fetch(1)["b"], WEIGHTS["b"])
    assert [path.name for path in tmp_path.iterdir()] == ["00001"]


def test_missing_and_damaged_versions(tmp_path: Path) -> None:
    """What cannot be read is an error that names the version and the file."""
    store = VersionStore(tmp_path)
    with pytest.raises(StoreError, match="version 3"):
        store.fetch(3)
    store.publish(3, WEIGHTS, {})
    with pytest.raises(StoreError, match=r"tokenizer\.json"):
        store.read(3, "tokenizer.json")
    (store.path(3) / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(StoreError, match="version 3"):
        store.fetch(3)


def test_prune(tmp_path: Path) -> None:
    """Only the versions that are to be kept stay, and drafts of an interrupted publication go."""
    store = VersionStore(tmp_path)
    for version in range(5):
        store.publish(version, WEIGHTS, {})
    (tmp_path / ".tmp-00007").mkdir()
    store.prune({0, 3, 9})
    assert store.versions() == [0, 3]
    assert not (tmp_path / ".tmp-00007").exists()
