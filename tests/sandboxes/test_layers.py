"""Layers are made once, by content, readable by everybody, and need nothing of the host but /usr."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from practicum.errors import ConfigError, CreateFailed, SubmissionError
from practicum.records.tree import File, tree_digest
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.layers import LayerCache, default_root
from practicum.sandboxes.provider import open_provider


def test_modes(cache: LayerCache) -> None:
    """Folders can be entered and files read by everybody, and written by nobody but the cache's owner."""
    folder = Path(cache.layer("python").parts["/opt"][0]).parent
    for place, folders, files in os.walk(folder):
        for name in folders:
            assert Path(place, name).stat().st_mode & 0o777 == 0o755
        for name in files:
            path = Path(place, name)
            if not path.is_symlink():
                mode = path.stat().st_mode & 0o777
                assert mode in (0o444, 0o555)


def test_made_once_by_many(cache: LayerCache) -> None:
    """Threads that ask for the same tree at once get the same folder, and nothing half-made is left."""
    tree = {f"d{i % 3}/f{i}": File(os.urandom(10), 0o755 if i % 2 else 0o644) for i in range(50)}
    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(lambda _: LayerCache(cache.root).readonly_tree(tree), range(16)))
    assert set(places) == {cache.root / "trees" / tree_digest(tree)}
    assert {path.name for path in (cache.root / "trees").glob(".new-*")} == set()
    for name, file in tree.items():
        assert (places[0] / name).read_bytes() == file.data
        assert bool((places[0] / name).stat().st_mode & 0o100) == (file.mode == 0o755)


def test_trees_stay_inside(cache: LayerCache) -> None:
    """A tree whose path leaves it is refused, and nothing is written."""
    with pytest.raises(SubmissionError):
        cache.readonly_tree({"../escaped": File(b"x")})
    assert not (cache.root / "trees" / "escaped").exists()
    assert not list((cache.root / "trees").glob(".new-*"))


def test_info_is_recordable(cache: LayerCache) -> None:
    """A layer says its digest, its interpreter and where that came from, the same each time."""
    info = cache.layer_info("python")
    assert info == LayerCache(cache.root).layer_info("python")
    assert tuple(int(part) for part in info["python"].split(".")[:2]) >= (3, 11)
    assert len(info["digest"]) == 64
    assert info["origin"]
    with pytest.raises(CreateFailed, match="no-such"):
        cache.layer("no-such")


def test_place_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRACTICUM_CACHE comes first; root has a system folder; others have XDG_CACHE_HOME or ~/.cache."""
    monkeypatch.setenv("PRACTICUM_CACHE", "/some/where")
    assert default_root() == Path("/some/where")
    monkeypatch.delenv("PRACTICUM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    expected = Path("/var/cache/practicum") if os.geteuid() == 0 else Path("/xdg/practicum")
    assert default_root() == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's boxes run as another user")
def test_a_closed_cache_is_refused(tmp_path: Path) -> None:
    """A cache that the sandbox's user could not reach is an error that names the folder in the way."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ConfigError, match="closed to the sandbox's user"):
        LayerCache(closed / "cache")


@pytest.mark.skipif(sys.base_prefix == "/usr", reason="the running python is the system's, which is never copied")
def test_copied_interpreter() -> None:
    """Where the system has no suitable python, a copy of the running one works in the box, pytest included."""
    root = Path(tempfile.mkdtemp(prefix="practicum-test-"))
    root.chmod(0o755)

    async def use() -> None:
        copied = LayerCache(root, system_pythons=())
        async with (
            open_provider(limits_by="cgroup-or-rlimit", cache=copied) as provider,
            provider.create(BoxSpec("copied")) as box,
        ):
            info = provider.layer_info("python")
            assert info["origin"].startswith("copy of ")
            script = "import ctypes, json, sqlite3, sys, pytest; print(sys.prefix, sys.version.split()[0])"
            result = await box.run(["python3", "-c", script], timeout_s=20)
            assert result.stdout.decode().split() == ["/opt/practicum/python", info["python"]], result

    try:
        asyncio.run(use())
    finally:
        shutil.rmtree(root)
