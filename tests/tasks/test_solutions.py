"""Golds that copy files are read back as the changes they make, and make them when they are run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from practicum.records.tree import File, diff_trees
from practicum.tasks.folders import read_tree, write_tree
from practicum.tasks.solutions import changes_of, solution_of

NAMES = st.sampled_from(["a.py", "b b.py", "pkg/c.py", "pkg/sub/d'.sh", "-e", "files/f"])
TREES = st.dictionaries(NAMES, st.builds(File, st.binary(max_size=8), st.sampled_from([0o644, 0o755])), max_size=6)


@given(TREES, TREES)
def test_changes_survive(before: dict[str, File], after: dict[str, File]) -> None:
    """Whatever is added, edited and deleted is read back from the gold's files."""
    changes = diff_trees(before, after)
    assert (changes_of(solution_of(changes), before) or ()) == changes


def test_running_it_makes_the_changes(tmp_path: Path) -> None:
    """The script copies, removes and sets modes, whatever the names are."""
    before = {"a.py": File(b"1"), "b b.py": File(b"2"), "pkg/d'.sh": File(b"3"), "-e": File(b"4")}
    after = {"a.py": File(b"1", 0o755), "pkg/d'.sh": File(b"5"), "new/x": File(b"6", 0o755), "-e": File(b"7")}
    work, mount = tmp_path / "work space", tmp_path / "solution"
    work.mkdir()
    write_tree(work, before)
    solution = solution_of(diff_trees(before, after), str(work))
    write_tree(mount, solution)
    script = (mount / "solve.sh").read_text().replace("/solution/", f"{mount}/")
    subprocess.run(["sh", "-c", script], check=True, timeout=10)
    assert read_tree(work) == after


def test_other_golds_are_not_read() -> None:
    """A script of somebody's own is no list of changes."""
    for solution in (
        {},
        {"solve.sh": File(b"sed -i s/a/b/ x")},
        {"solve.sh": File(b"python3 /solution/fix.py"), "fix.py": File(b"")},
    ):
        assert changes_of(solution, {"x": File(b"a")}) is None
