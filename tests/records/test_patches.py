"""Patches apply exactly or not at all."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import SubmissionError
from practicum.records.patches import apply_patch
from practicum.records.tree import File, apply_changes, diff_trees, unified_diff

TREE = {"calc.py": File(b"one\ntwo\nthree\n"), "run.sh": File(b"#!/bin/sh", 0o644)}


def git(folder: Path, *arguments: str) -> bytes:
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(folder), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
    done = subprocess.run(["git", *names, *arguments], cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout


def test_a_git_diff_with_every_kind_of_change(tmp_path: Path) -> None:
    """Edit, add, empty file, delete, rename, mode and missing line ends all arrive as git says."""
    before = TREE | {"gone.txt": File(b"x\n"), "move.txt": File(b"a\nb\nc\nd\n"), "crlf.txt": File(b"a\r\nb\r\n")}
    for name, file in before.items():
        (tmp_path / name).write_bytes(file.data)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "x")
    (tmp_path / "calc.py").write_bytes(b"one\n2\nthree")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "move.txt").rename(tmp_path / "sub" / "moved.txt")
    (tmp_path / "new é.txt").write_bytes(b"")
    (tmp_path / "crlf.txt").write_bytes(b"a\r\nB\r\n")
    git(tmp_path, "add", "-A")
    patch = git(tmp_path, "-c", "core.quotePath=false", "diff", "--cached", "-M").decode()
    assert apply_patch(before, patch) == {
        "calc.py": File(b"one\n2\nthree"),
        "run.sh": File(b"#!/bin/sh", 0o755),
        "sub/moved.txt": File(b"a\nb\nc\nd\n"),
        "new é.txt": File(b""),
        "crlf.txt": File(b"a\r\nB\r\n"),
    }


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-x", "+y", " z", "\\ q"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
TREES = st.dictionaries(st.sampled_from(["a.py", "b/c.txt", "d"]), st.builds(lambda t: File(t.encode()), TEXTS))


@given(TREES, TREES)
def test_our_own_diffs_apply(before: dict[str, File], after: dict[str, File]) -> None:
    """What `unified_diff` shows is what `apply_patch` does, except for empty files, which it cannot show."""
    changes = [c for c in diff_trees(before, after) if c.kind == "edit" or (c.file or before[c.path]).data]
    assert apply_patch(before, unified_diff(before, changes)) == apply_changes(before, changes)


HEAD = "--- a/calc.py\n+++ b/calc.py\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (HEAD + "@@ -1,2 +1,2 @@\n one\n-TWO\n+2\n", ["calc.py line 2", "'TWO\\n'", "'two\\n'"]),
        (HEAD + "@@ -2,2 +2,2 @@\n one\n-two\n+2\n", ["calc.py line 2"]),
        (HEAD + "@@ -3,2 +3,2 @@\n three\n-four\n+4\n", ["calc.py line 4", "end of the file"]),
        (HEAD + "@@ -9,1 +9,1 @@\n-x\n+y\n", ["calc.py", "range"]),
        (HEAD + "@@ -1,5 +1,5 @@\n one\n", ["line 5", "ends within a hunk"]),
        ("--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-a\n+b\n", ["none.py", "no such file"]),
        ("--- /dev/null\n+++ b/calc.py\n@@ -0,0 +1 @@\n+b\n", ["calc.py", "it is there"]),
        ("--- /dev/null\n+++ b/../../etc/passwd\n@@ -0,0 +1 @@\n+b\n", ["../../etc/passwd"]),
        ("--- /dev/null\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+b\n", ["/etc/passwd"]),
        ("--- a/calc.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n", ["calc.py", "leaves content"]),
        (HEAD + "@@ -1 +1 @@\n-one\n+1\n" + HEAD + "@@ -2 +2 @@\n-two\n+2\n", ["calc.py", "twice"]),
        ("diff --git a/x b/x\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 1\n", ["line 4", "binary"]),
        ("Binary files a/x and b/x differ\n", ["line 1", "binary"]),
        ("--- /dev/null\n+++ b/l\nnew file mode 120000\n", ["line 3", "no hunk"]),
        ("diff --git a/l b/l\nnew file mode 120000\n", ["line 2", "link"]),
        (HEAD + "@@ -1 +1 @@\n-one\n+1\n+2\n", ["line 6", "line counts"]),
        ("hello\n", ["no file"]),
    ],
)
def test_what_does_not_fit_is_refused(patch: str, words: list[str]) -> None:
    """Mismatch, traversal, doubles and unsupported kinds are refused with file and line."""
    with pytest.raises(SubmissionError) as caught:
        apply_patch(TREE, patch)
    assert all(word in str(caught.value) for word in words), caught.value


def test_an_empty_patch_changes_nothing() -> None:
    """The no-op is a patch too."""
    assert apply_patch(TREE, "\n") == TREE


@given(st.text(max_size=200))
def test_any_text_applies_or_is_refused(text: str) -> None:
    """Hostile text never raises anything but a refusal."""
    with contextlib.suppress(SubmissionError):
        apply_patch(TREE, HEAD + "@@ -1,2 +1,2 @@\n one\n" + text)
