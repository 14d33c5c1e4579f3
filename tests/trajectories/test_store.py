"""The store on real disks: order, damage, crashes and disks that are full."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from practicum.errors import StoreError
from practicum.records.trajectory import Action, Trajectory, Turn
from practicum.trajectories.store import TrajectoryStore


def attempt(name: str, *, padding: int = 0) -> Trajectory:
    noise = os.urandom(padding // 2).hex()
    turn = Turn(0, (1,), (2, 3), (-0.5, -0.25), 1, "stop", noise, Action("submit"), "", "a", "a")
    return Trajectory(name, "g", "task", "digest", (turn,), "submitted", seed=3)


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "trajectories")


def test_batches_are_files_in_order(store: TrajectoryStore) -> None:
    """Each append is one file numbered within its phase, and reading goes by update, phase and index."""
    assert store.append("validation", 0, [attempt("v0")]) == store.folder / "validation-000000.parquet"
    for update in (1, 2):
        store.append("rl", update, [attempt(f"r{update}a"), attempt(f"r{update}b")])
    store.append("validation", 2, [attempt("v2")])
    assert [(b.phase, b.index, b.update, b.count) for b in store.batches()] == [
        ("validation", 0, 0, 1),
        ("rl", 0, 1, 2),
        ("rl", 1, 2, 2),
        ("validation", 1, 2, 1),
    ]
    assert [t.id for t in store.read()] == ["v0", "r1a", "r1b", "r2a", "r2b", "v2"]
    assert [t.id for t in store.read("validation")] == ["v0", "v2"]
    assert [row["id"] for row in store.rows(["id"], "rl")] == ["r1a", "r1b", "r2a", "r2b"]


def test_find(store: TrajectoryStore) -> None:
    """A record is found by its id in whichever file it lies, odd ids included; an unknown one is None."""
    odd = "\ud800\0"
    store.append("rl", 1, [attempt("a"), attempt("b")])
    store.append("rl", 2, [attempt("c"), attempt(odd)])
    assert store.find("b") == attempt("b")
    assert store.find(odd) == attempt(odd)
    assert store.find("z") is None


def test_empty(store: TrajectoryStore) -> None:
    """An empty store reads as empty, and an empty batch leaves no file."""
    assert store.append("rl", 1, []) is None
    assert list(store.read()) == []
    assert store.find("a") is None


@pytest.mark.parametrize("phase", ["", "RL", "../x", "a-b"])
def test_phase_is_a_word(store: TrajectoryStore, phase: str) -> None:
    """A phase that would not make a plain file name is refused."""
    with pytest.raises(StoreError, match="lower-case word"):
        store.append(phase, 0, [attempt("a")])


def test_move_after(store: TrajectoryStore, tmp_path: Path) -> None:
    """Later batches move aside, are kept, and numbering continues as if they had never been."""
    for update in (1, 2, 3):
        store.append("rl", update, [attempt(f"r{update}")])
    moved = store.move_after(1, tmp_path / "aside")
    assert [batch.update for batch in moved] == [2, 3]
    assert store.move_after(1, tmp_path / "aside") == []
    assert [t.id for t in store.read()] == ["r1"]
    assert [t.id for t in TrajectoryStore(tmp_path / "aside").read()] == ["r2", "r3"]
    assert store.append("rl", 2, [attempt("again")]) == store.folder / "rl-000001.parquet"


@pytest.mark.parametrize("damage", [b"", b"PAR1 no", None])
def test_a_damaged_file_is_named(store: TrajectoryStore, damage: bytes | None) -> None:
    """A file that is empty, cut short or from elsewhere is a `StoreError` naming it."""
    path = store.append("rl", 1, [attempt("a")])
    assert path is not None
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    with pytest.raises(StoreError, match=r"rl-000000\.parquet cannot be read") as caught:
        list(store.read())
    assert caught.value.exit_code == 3


def test_a_foreign_parquet_file_is_named(store: TrajectoryStore) -> None:
    """A Parquet file that this store did not write is refused, not misread."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    store.folder.mkdir()
    pq.write_table(pa.table({"id": ["a"]}), store.folder / "rl-000000.parquet")
    with pytest.raises(StoreError, match="cannot be read"):
        list(store.read())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A path that is no folder is one clear message."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write") as caught:
        TrajectoryStore(tmp_path / "file" / "trajectories").append("rl", 0, [attempt("a")])
    assert caught.value.fix is not None


LIMITED = """
import resource, sys
from pathlib import Path
from practicum.errors import StoreError
from practicum.trajectories.store import TrajectoryStore
whole = TrajectoryStore(Path(sys.argv[1]))
batch = list(whole.read())
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    whole.append("rl", 2, batch)
except StoreError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_file_size_limit_leaves_nothing_half_written(store: TrajectoryStore) -> None:
    """When a write is cut short by a limit, the folder is as before and the message says what to free."""
    store.append("rl", 1, [attempt("a", padding=100_000)])
    before = sorted(path.name for path in store.folder.iterdir())
    child = subprocess.run([sys.executable, "-c", LIMITED, store.folder], capture_output=True, text=True, check=False)
    assert child.returncode == 3, child.stderr
    assert str(store.folder) in child.stdout
    assert "--resume" in child.stdout
    assert sorted(path.name for path in store.folder.iterdir()) == before
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB, or a skip where this user may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk(tiny_disk: Path) -> None:
    """On a full disk the append fails whole, earlier batches still read, and after freeing space it works."""
    store = TrajectoryStore(tiny_disk / "trajectories")
    store.append("rl", 1, [attempt("a")])
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(150_000))
    big = attempt("b", padding=200_000)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.append("rl", 2, [big])
    assert str(store.folder) in str(caught.value)
    assert [path.name for path in store.folder.iterdir()] == ["rl-000000.parquet"]
    assert [t.id for t in store.read()] == ["a"]
    ballast.unlink()
    store.append("rl", 2, [big])
    assert dataclasses.replace(big) == store.find("b")
