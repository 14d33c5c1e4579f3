"""File trees: paths, digests, differences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import SubmissionError
from practicum.records.tree import (
    Change,
    File,
    apply_changes,
    check_path,
    diff_trees,
    matches,
    tree_digest,
    unified_diff,
)

FILES = st.builds(File, st.binary(max_size=12), st.sampled_from([0o644, 0o755]))
# Few names, so that two drawn trees have paths in common.
LEAVES = st.dictionaries(st.sampled_from(["a", "b.py", "ü"]), FILES, max_size=3)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, File]:
    """A tree that could be on a disk: no path is both a file and a folder."""
    tree = draw(LEAVES)
    for folder in ("a", "src", "src/deep"):
        if folder not in tree:
            tree |= {f"{folder}/{name}": file for name, file in draw(LEAVES).items()}
    folders = {path[: match.start()] for path in tree for match in re.finditer("/", path)}
    return {path: file for path, file in tree.items() if path not in folders}


@given(trees(), trees())
def test_applying_a_difference_gives_the_other_tree(before: dict[str, File], after: dict[str, File]) -> None:
    """`apply(before, diff(before, after)) == after`, and neither tree is touched."""
    kept = dict(before)
    assert apply_changes(before, diff_trees(before, after)) == after
    assert before == kept


@given(trees())
def test_no_difference_from_itself(tree: dict[str, File]) -> None:
    """A tree does not differ from itself."""
    assert diff_trees(tree, tree) == ()


@given(trees(), trees())
def test_a_difference_is_sorted_and_names_each_path_once(before: dict[str, File], after: dict[str, File]) -> None:
    """Changes come in the order of their paths, and carry content exactly where the file still exists."""
    changes = diff_trees(before, after)
    paths = [change.path for change in changes]
    assert paths == sorted(set(paths))
    assert all((change.file is None) == (change.kind == "delete") for change in changes)


@given(trees(), st.randoms())
def test_digest_does_not_depend_on_order(tree: dict[str, File], random: object) -> None:
    """The same files have the same digest, in whatever order they were put in."""
    names = list(tree)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert tree_digest({name: tree[name] for name in names}) == tree_digest(tree)


@given(trees(), trees())
def test_digest_tells_trees_apart(one: dict[str, File], other: dict[str, File]) -> None:
    """Trees have one digest exactly where they hold the same names, modes and contents."""
    assert (tree_digest(one) == tree_digest(other)) == (one == other)


def test_digest_sees_mode_and_name() -> None:
    """A permission bit or a name alone makes a different tree."""
    digests = {tree_digest(tree) for tree in ({"a": File(b"x")}, {"a": File(b"x", 0o755)}, {"b": File(b"x")}, {})}
    assert len(digests) == 4


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "./a", "a\0b", "a/.."])
def test_paths_that_are_refused(path: str) -> None:
    """What is not a plain relative path inside the tree is refused by name, and no change to it is applied."""
    with pytest.raises(SubmissionError, match="plain relative path") as caught:
        check_path(path)
    assert repr(path) in caught.value.message
    with pytest.raises(SubmissionError):
        apply_changes({}, [Change(path, "add", File(b""))])


@pytest.mark.parametrize("path", ["a", ".hidden", "..a", "a/b.py", "a b/ü", "a\\b", "..."])
def test_paths_that_pass(path: str) -> None:
    """Any other name is taken as it is."""
    assert check_path(path) == path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ([Change("no", "delete")], "cannot delete 'no'"),
        ([Change("no", "edit", File(b""))], "cannot edit 'no'"),
        ([Change("a", "edit")], "carries no content"),
        ([Change("new", "add")], "carries no content"),
        ([Change("a/b", "add", File(b""))], "'a' would be both a file and a folder"),
        ([Change("d", "add", File(b""))], "'d' would be both a file and a folder"),
        ([Change("a", "delete"), Change("a", "delete")], "cannot delete 'a'"),
    ],
)
def test_changes_that_do_not_fit(changes: list[Change], problem: str) -> None:
    """A change that does not fit the tree is refused with the path and the reason."""
    with pytest.raises(SubmissionError, match=re.escape(problem)):
        apply_changes({"a": File(b"1"), "d/e": File(b"2")}, changes)


def test_a_file_may_become_a_folder() -> None:
    """A file that is deleted in the same submission makes room for a folder of its name."""
    after = apply_changes({"a": File(b"1")}, [Change("a", "delete"), Change("a/b", "add", File(b"2"))])
    assert after == {"a/b": File(b"2")}


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a.py", "*.py", True),
        ("src/a.py", "*.py", False),
        ("src/a.py", "**/*.py", True),
        ("a.py", "**/*.py", True),
        ("src/deep/a.py", "src/**", True),
        ("src", "src/**", True),
        ("srcs/a.py", "src/**", False),
        ("a/b/c/d", "a/**/d", True),
        ("a/d", "a/**/d", True),
        ("A.py", "a.py", False),
        ("x", "**", True),
    ],
)
def test_globs(path: str, pattern: str, expected: bool) -> None:
    """`**` spans folders, `*` does not, and case counts."""
    assert matches(path, [pattern]) is expected
    assert not matches(path, [])


def test_unified_diff_is_for_people() -> None:
    """Added, edited, deleted and binary files each show, and a missing last line break is said."""
    before = {"gone": File(b"x\n"), "kept": File(b"one\ntwo"), "bin": File(b"\xff")}
    after = {"new": File(b"y\n"), "kept": File(b"one\n2"), "bin": File(b"\xfe")}
    text = unified_diff(before, diff_trees(before, after))
    assert "Binary file bin differs (edit)\n" in text
    assert "--- a/gone\n+++ /dev/null\n" in text
    assert "--- /dev/null\n+++ b/new\n" in text
    assert "-two\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n" in text


def test_unified_diff_splits_lines_as_git_does() -> None:
    """Only a line feed ends a line; a form feed or a Unicode separator inside one does not."""
    before, after = {"a": File("p\x0cq\u2028r\n".encode())}, {"a": File("p\x0cQ\u2028r\n".encode())}
    text = unified_diff(before, diff_trees(before, after))
    assert text.endswith("-p\x0cq\u2028r\n+p\x0cQ\u2028r\n")
