"""Git repositories are read as data: files, histories and differences, and nothing of theirs is ever run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.errors import TaskError
from practicum.records.tree import File
from practicum.tasks.repositories import Commit, Repository, open_repository

if TYPE_CHECKING:
    from tasks.conftest import Git


@pytest.fixture
def work(tmp_path: Path, git: Git, commit: Git) -> Path:
    """A repository of three commits, the middle one empty."""
    folder = tmp_path / "work"
    commit(folder, {"calc.py": "def add(a, b):\n    return a - b\n", "old.txt": "x\n"}, "Start")
    commit(folder, {}, "Nothing\n\nto see: commit 1234")
    commit(
        folder,
        {"calc.py": "def add(a, b):\n    return a + b\n", "é t.py": "", "old.txt": None},
        "Repair add\n\nIt subtracted.",
    )
    return folder


def test_files_history_and_difference(work: Path) -> None:
    """A work tree is read at the commit that is asked for, whatever lies in the folder."""
    (work / "calc.py").write_text("not committed")
    repository = open_repository(work)
    newest, empty, first = repository.commits()
    assert (newest.subject, newest.body, newest.authored) == ("Repair add", "It subtracted.", "2024-03-01T10:00:00Z")
    assert [(c.status, c.path) for c in newest.changes] == [("M", "calc.py"), ("D", "old.txt"), ("A", "é t.py")]
    assert (empty.changes, empty.body) == ((), "to see: commit 1234")
    assert first.parents == ()
    assert [(c.status, c.path) for c in first.changes] == [("A", "calc.py"), ("A", "old.txt")]
    tree, irregular = repository.tree(newest.sha)
    assert irregular == {}
    assert tree == {"calc.py": File(b"def add(a, b):\n    return a + b\n"), "é t.py": File(b"")}
    assert repository.show(first.sha, "old.txt") == b"x\n"
    diff = repository.diff(first.sha, newest.sha, paths=["calc.py"])
    assert "-    return a - b\n+    return a + b\n" in diff
    assert "old.txt" not in diff
    assert [c.sha for c in repository.commits(limit=1)] == [newest.sha]
    assert [c.sha for c in repository.commits(paths=["old.txt"])] == [newest.sha, first.sha]


def test_a_bare_repository_and_a_linked_work_tree(work: Path, tmp_path: Path, git: Git) -> None:
    """All forms in which git keeps a repository give the same."""
    git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
    git(work, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    heads = {open_repository(path).resolve() for path in (work, tmp_path / "bare.git", tmp_path / "linked")}
    assert len(heads) == 1


def test_merges_only_where_asked_for(work: Path, git: Git, commit: Git) -> None:
    """A merge is passed over, or told with what it changed against its first parent."""
    git(work, "checkout", "-q", "-b", "side", "HEAD~1")
    commit(work, {"side.py": ""}, "Aside")
    git(work, "checkout", "-q", "main")
    git(work, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    repository = open_repository(work)
    assert "Merge" not in [c.subject for c in repository.commits()]
    merge = next(iter(repository.commits(merges=True)))
    assert (len(merge.parents), [c.path for c in merge.changes]) == (2, ["side.py"])


def test_what_is_no_plain_file_is_told_and_not_read(work: Path, git: Git, commit: Git) -> None:
    """Links, submodules, pointers, odd names and large files are named with their kind; the rest is read."""
    (work / "link").symlink_to("/etc/passwd")
    (work / "inner").symlink_to("calc.py")
    (Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9.py"))).write_text("x")
    sha = git(work, "rev-parse", "HEAD")
    commit(
        work,
        {"big.bin": b"\0" * 5000, "data.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"},
        "Odd things",
    )
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{sha},vendored")
    git(work, "commit", "-q", "-m", "A submodule")
    tree, irregular = open_repository(work).tree(max_file_bytes=4000)
    assert irregular == {
        "link": "symbolic link",
        "inner": "symbolic link",
        "vendored": "submodule",
        "big.bin": "larger than 4000 bytes",
        "data.csv": "git-lfs pointer",
        "caf\\xe9.py": "unusable name",
    }
    assert sorted(tree) == ["calc.py", "é t.py"]
    with pytest.raises(TaskError, match="symbolic link"):
        open_repository(work).show("HEAD", "link")
    with pytest.raises(TaskError, match="more than 10"):
        open_repository(work).tree(max_bytes=10)


def test_a_tree_that_leads_outside_is_not_followed(work: Path, git: Git) -> None:
    """Names that git itself would not make, such as `..` and `.git`, never become paths."""
    blob = git(work, "hash-object", "-w", "--stdin", stdin=b"bad")
    inner = git(work, "mktree", stdin=f"100644 blob {blob}\tevil\n".encode())
    # mktree takes what checkout would refuse
    top = git(
        work, "mktree", stdin=f"040000 tree {inner}\t..\n040000 tree {inner}\t.GIT\n100644 blob {blob}\tok\n".encode()
    )
    sha = git(work, "commit-tree", "-m", "Bad names", top)
    tree, irregular = open_repository(work).tree(sha)
    assert sorted(tree) == ["ok"]
    assert irregular == {"../evil": "unusable name", ".GIT/evil": "unusable name"}


def test_nothing_of_the_repository_is_run(work: Path, tmp_path: Path, git: Git, commit: Git) -> None:
    """Programs that configuration, attributes and hooks name are not started by any reading."""
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {mark}\ncat\n")
    program.chmod(0o755)
    commit(work, {".gitattributes": "*.py diff=evil filter=evil\n"}, "Attributes")
    keys = (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external", "diff.evil.textconv"),
        *("diff.evil.command", "filter.evil.smudge", "filter.evil.clean", "gpg.program", "core.askPass"),
        *(
            "credential.helper",
            "core.alternateRefsCommand",
            "pager.log",
            "pager.diff-tree",
            "uploadpack.packObjectsHook",
        ),
    )
    for key in keys:
        git(work, "config", key, str(program))
    for key, value in {
        "log.showSignature": "true",
        "core.hooksPath": str(tmp_path),
        "alias.log": f"!{program}",
    }.items():
        git(work, "config", key, value)
    (work / ".git" / "info" / "attributes").write_text("*.py diff=evil\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (work / ".git" / "hooks" / hook).write_text(program.read_text())
        (work / ".git" / "hooks" / hook).chmod(0o755)
    before = sorted(str(p) for p in (work / ".git").rglob("*"))
    repository = open_repository(work)
    newest = next(iter(repository.commits()))
    repository.tree()
    repository.show("HEAD", "calc.py")
    assert "diff --git" in repository.diff("HEAD~3", newest.sha)
    assert not mark.exists()
    assert sorted(str(p) for p in (work / ".git").rglob("*")) == before


def test_a_missing_object_is_not_fetched(work: Path, tmp_path: Path, git: Git) -> None:
    """A partial clone is read as far as it goes; no remote helper or upload program is started for the rest."""
    mark = tmp_path / "ran"
    git(work, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", f"file://{work}", "partial.git")
    partial = tmp_path / "partial.git"
    git(partial, "config", "remote.origin.url", f"ext::sh -c 'touch {mark}'")
    git(partial, "config", "protocol.ext.allow", "always")
    repository = open_repository(partial)
    assert len(list(repository.commits())) == 3
    for read in (
        repository.tree,
        lambda: repository.diff("HEAD~2", "HEAD"),
        lambda: repository.show("HEAD", "calc.py"),
    ):
        with pytest.raises(TaskError) as caught:
            read()
        assert "full clone" in str(caught.value.fix)
    assert not mark.exists()


def test_replaced_objects_are_not_believed(work: Path, git: Git) -> None:
    """What `git replace` says of a commit changes nothing."""
    head, first = git(work, "rev-parse", "HEAD"), git(work, "rev-parse", "HEAD~2")
    git(work, "replace", head, first)
    assert "old.txt" not in open_repository(work).tree(head)[0]


def test_no_repository(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, no repository, a folder inside of one, no such commit, no git: each is one clear error."""
    (work / "sub").mkdir()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "HEAD").write_text("ref: refs/heads/main\n")
    for path, words in (
        (tmp_path / "nowhere", "no such folder"),
        (tmp_path, "not a git repository"),
        (work / "sub", "not a git repository"),
        (broken, "not a git repository"),
    ):
        with pytest.raises(TaskError, match=words):
            open_repository(path)
    repository = open_repository(work)
    for revision in ("nowhere", "-h", "", "HEAD:calc.py", "0" * 40, "a\nb"):
        with pytest.raises(TaskError, match="names no commit"):
            repository.resolve(revision)
    with pytest.raises(TaskError, match=r"there is no 'nowhere\.py'"):
        repository.show("HEAD", "nowhere.py")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TaskError, match="no git") as caught:
        open_repository(work)
    assert "install git" in str(caught.value.fix)


def test_reading_ends_at_its_deadline(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Git) -> None:
    """A git that does not answer is ended, and so is one whose reader stops listening."""
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    head = git(work, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    repository = Repository(work, work / ".git", deadline_s=0.2)
    start = time.monotonic()
    with pytest.raises(TaskError, match=r"longer than 0\.2 s"):
        repository.resolve(head)
    assert time.monotonic() - start < 30


def test_a_long_history_is_read_as_it_is_asked_for(tmp_path: Path, git: Git) -> None:
    """The first commits of a long history come without the others having been read; git ends with the reader."""
    folder = tmp_path / "long"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    count = 3000
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@example.org> {1700000000 + n} +0000\ndata 2001\n{'m' * 2000}\n"
        f"M 644 inline f\ndata 5\n{n:05}\n"
        for n in range(count)
    )
    git(folder, "fast-import", "--quiet", stdin=stream.encode())
    walk = open_repository(folder).commits()
    first: Commit = next(iter(walk))
    assert first.changes[0].path == "f"
    assert sum(1 for _ in walk) == count - 1
