"""A cache of their own for the tests of sandboxes, so that they see only their own records."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from practicum.sandboxes.layers import LayerCache


@pytest.fixture(scope="session")
def cache() -> Iterator[LayerCache]:
    # Not pytest's tmp_path: that is closed to other users, and the sandbox's user must get at the layers.
    root = Path(tempfile.mkdtemp(prefix="practicum-test-"))
    root.chmod(0o755)
    yield LayerCache(root)
    shutil.rmtree(root)
