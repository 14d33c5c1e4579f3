"""`practicum tasks release` as a person meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.cli.template import template_task
from practicum.curation.ledger import ledger_path, record_assessments
from practicum.records.assessment import Assessment, GateResult
from practicum.tasks.harbor import save_task

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.fixture
def taskset(tmp_path: Path) -> Path:
    """Two admitted tasks, one of them without a licence, and one that nobody checked."""
    found = []
    for name, provenance in (("a", {"license": "MIT"}), ("b", {}), ("c", {"license": "MIT"})):
        task = replace(template_task(name), provenance=provenance)
        save_task(task, tmp_path / "set" / name)
        gates = {"gold": GateResult("gold", True, "passes", {"repeat": 3})}
        if name != "c":
            found.append(Assessment(name, task.digest, task.content, "admitted", "all gates passed", gates))
    record_assessments(ledger_path(tmp_path / "set"), found)
    return tmp_path / "set"


def test_release_and_read_again(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """A refused task makes the exit code 1 and is named; the release is whole, and an altered byte is told."""
    done = cli("tasks", "release", taskset, tmp_path / "out", "--json")
    assert done.code == 1, done.err
    assert list(done.document["refused"]) == ["b"]
    assert list(done.document["left_out"]) == ["c"]
    path = Path(done.document["release"]["path"])
    assert path.name == f"set-{done.document['release']['digest'][:12]}"
    both = cli("tasks", "release", taskset, tmp_path / "out", "--allow-unlicensed", "--parent", path)
    assert both.code == 0, both.err
    assert "released 2 tasks" in both.out
    (second,) = {*(tmp_path / "out").iterdir()} - {path}
    diff = cli("tasks", "release", "--diff", path, second)
    assert diff.code == 0, diff.err
    assert "1 added, 0 removed, 0 regraded, 0 changed" in diff.out
    (path / "tasks" / "a" / "instruction.md").chmod(0o644)
    with open(path / "tasks" / "a" / "instruction.md", "ab") as file:
        file.write(b" ")
    bad = cli("tasks", "release", "--verify", path, "--json")
    assert bad.code == 1
    assert bad.document["differs"][0]["task"] == "a"
    assert bad.document["differs"][0]["path"] == "tasks/a/instruction.md"


def test_bad_usage(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """One thing at a time; a bound on defects without reviews releases nothing."""
    assert cli("tasks", "release", taskset).code == 2
    assert cli("tasks", "release", "--verify", tmp_path).code == 2
    done = cli("tasks", "release", taskset, tmp_path / "out", "--require-review", "0.05", "--json")
    assert done.code == 1
    assert "nobody has reviewed" in done.document["problem"]
    assert not (tmp_path / "out").exists()


def test_a_release_without_its_digest_is_not_proven(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """Where the folder's name bears none, it must be given: a set that was written anew agrees with itself as well."""
    released = cli("tasks", "release", taskset, tmp_path / "out", "--json").document["release"]
    named = cli("tasks", "release", "--verify", released["path"], "--json")
    assert (named.code, named.document["intact"], named.document["proven_by"]) == (0, True, "name")
    renamed = Path(released["path"]).rename(tmp_path / "tasks-for-all")
    bare = cli("tasks", "release", "--verify", renamed)
    assert bare.code == 1
    assert "not proven" in bare.out
    assert "--digest" in bare.out
    for digest in (released["digest"], released["digest"][:12].upper()):
        given = cli("tasks", "release", "--verify", renamed, "--digest", digest, "--json")
        assert (given.code, given.document["proven_by"]) == (0, "digest")
    other = cli("tasks", "release", "--verify", renamed, "--digest", "0" * 64, "--json")
    assert (other.code, other.document["intact"]) == (1, False)
    assert "another release" in other.document["differs"][0]["said"]
    assert cli("tasks", "release", "--verify", renamed, "--digest", "abc").code == 2
    assert cli("tasks", "release", taskset, tmp_path / "out", "--digest", "0" * 64).code == 2
