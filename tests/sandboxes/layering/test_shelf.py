"""Named folders are made once, by one, whole or not at all, and go only when nobody uses them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from practicum.errors import CreateFailed
from practicum.records.tree import File
from practicum.sandboxes.layering.shelf import Shelf
from practicum.sandboxes.layers import LayerCache

MAKER = """
import sys, time
from pathlib import Path
from practicum.sandboxes.layering.shelf import Shelf
def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    time.sleep(0.3)
    (folder / "file").write_text("whole")
folder = Shelf(Path(sys.argv[1])).take("layers", "thing", build)
print((folder / "file").read_text(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("layers", "trees", "state"):
        (tmp_path / "cache" / name).mkdir(parents=True)
    return tmp_path / "cache"


def start(root: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", MAKER, str(root), str(root / "log")]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("", timeout=20)


def age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def test_one_makes_it_and_the_others_wait(root: Path) -> None:
    """Processes that want the same name at once all get it whole, and it was made once."""
    processes = [start(root) for _ in range(3)]
    assert [said(process) for process in processes] == ["whole\n"] * 3
    for process in processes:
        end(process)
    assert (root / "log").read_text() == "made\n"
    assert [path.name for path in (root / "layers").iterdir()] == ["thing"]
    assert list((root / "state" / "locks").iterdir()) == []


def test_nothing_is_left_of_a_failure(root: Path) -> None:
    """A build that fails leaves neither folder nor lock, and the next one is free to try."""
    shelf = Shelf(root)

    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError(28, "No space left on device")

    with pytest.raises(CreateFailed, match=r"layer x cannot be made .* No space left"):
        shelf.take("layers", "x", fail)
    assert list((root / "layers").iterdir()) == []
    assert shelf.take("layers", "x", lambda folder: None).is_dir()


def test_unused_goes_and_used_stays(root: Path) -> None:
    """What nobody took for so long is removed, what was taken lately or is held by a living process stays."""
    process = start(root)
    assert said(process) == "whole\n"
    shelf = Shelf(root)
    for name in ("old", "new"):
        shelf.take("trees", name, lambda folder: (folder / "f").touch())
    for path in (root / "layers" / "thing", root / "trees" / "old"):
        age(path, 40)
    age(root / "trees" / "new", 10)
    assert Shelf(root).prune(30, frozenset()) == []  # both are held: by that process, and by this one
    for lease in (root / "state" / "leases").iterdir():
        if lease.name.startswith(f"{os.getpid()}-"):
            lease.unlink()
    assert shelf.prune(30, frozenset()) == ["trees/old"]
    end(process)
    assert shelf.prune(30, frozenset({"layers/thing"})) == []
    assert shelf.prune(30, frozenset()) == ["layers/thing"]
    assert [path.name for path in (root / "trees").iterdir()] == ["new"]
    assert list((root / "state" / "leases").iterdir()) == []


def test_taking_renews(root: Path) -> None:
    """To take a name again is to use it: its age begins anew."""
    Shelf(root).take("trees", "t", lambda folder: None)
    age(root / "trees" / "t", 40)
    assert Shelf(root).find("trees", "t") is not None
    assert time.time() - (root / "trees" / "t").stat().st_mtime < 60


def test_leftovers_of_the_dead(root: Path) -> None:
    """Folders that a dead process was making are removed after a day; those of a living one are not."""
    living = Shelf(root).scratch()
    age(living, 9)
    dead = root / "layers" / ".new-999999-1-abc"
    (dead / "closed").mkdir(parents=True, mode=0o000)
    assert Shelf(root).prune(30, frozenset()) == []
    age(dead, 2)
    assert Shelf(root).prune(30, frozenset()) == ["layers/.new-999999-1-abc"]
    assert not dead.exists()
    assert living.exists()


def test_a_cache_is_pruned(own: LayerCache) -> None:
    """The cache's own trees go when they are old, and what a user needs is made again."""
    folder = own.readonly_tree({"a": File(b"1")})
    age(folder, 3)
    for lease in (own.root / "state" / "leases").iterdir():
        lease.unlink()
    assert own.prune(keep_days=2) == [f"trees/{folder.name}"]
    assert (LayerCache(own.root).readonly_tree({"a": File(b"1")}) / "a").read_bytes() == b"1"
