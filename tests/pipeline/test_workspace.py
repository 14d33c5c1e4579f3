"""A workspace on disk, read the way a box's is."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.errors import SubmissionError
from practicum.pipeline.workspace import read_workspace


def test_read(tmp_path: Path) -> None:
    """Plain files are read with their mode; links are named, not followed; by-products are passed over."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a")
    (tmp_path / "run.sh").write_text("b")
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to(tmp_path / "src")
    listing = read_workspace(tmp_path, max_bytes=100)
    assert {name: (file.data, file.mode) for name, file in listing.files.items()} == {
        "src/a.py": (b"a", 0o644),
        "run.sh": (b"b", 0o755),
    }
    assert listing.irregular == {"link": "link", "folder": "link"}


def test_too_large(tmp_path: Path) -> None:
    """A folder that is larger than a workspace can be is refused before it is read whole."""
    (tmp_path / "big").write_bytes(b"x" * 101)
    with pytest.raises(SubmissionError, match="more than 100 bytes"):
        read_workspace(tmp_path, max_bytes=100)


def test_no_folder(tmp_path: Path) -> None:
    """A path that is no folder is named."""
    with pytest.raises(SubmissionError, match="nowhere"):
        read_workspace(tmp_path / "nowhere", max_bytes=1)
