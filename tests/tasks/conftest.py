"""Repositories made on the spot, and the licence that is found in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from practicum.records.tree import Tree

_IDENTITY = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
       for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2024-03-01T12:00:00+0200"))},
}  # fmt: skip


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git says, run as nobody in particular."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **_IDENTITY},
        input=stdin,
        capture_output=True,
        check=True,
        timeout=30,
    )
    return done.stdout.decode(errors="replace").strip()


def commit(folder: Path, files: Mapping[str, str | bytes | None], message: str) -> str:
    """Write files (None removes), commit them, and give the commit's id; the repository is made where there is none."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q", "-b", "main")
    for name, data in files.items():
        path = folder / name
        if data is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


Git = Callable[..., str]


@pytest.fixture(name="git")
def git_fixture() -> Git:
    return git


@pytest.fixture(name="commit")
def commit_fixture() -> Git:
    return commit


def mit_where_a_licence_is(tree: Tree) -> str | None:
    """A stand-in for reading licences: any text is MIT's."""
    return "MIT" if "LICENSE" in tree else None


@pytest.fixture
def licence_of() -> Callable[[Tree], str | None]:
    return mit_where_a_licence_is
