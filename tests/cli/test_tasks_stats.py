"""`practicum tasks stats`: counts, holes and copies, as people and as programs read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family

if TYPE_CHECKING:
    from cli.conftest import Cli


def test_counts_holes_and_copies(cli: Cli, tmp_path: Path) -> None:
    """Every dimension is counted, holes are named, copies are told, and a broken task does not keep the rest."""
    tasks = generate_family(FamilySpec(train=60, validation=0, test=0))
    unlike = list({str(task.provenance["template"]): task for task in tasks}.values())
    for at, task in enumerate([*unlike[:5], replace(unlike[0], id="copy", split="test")]):
        where = {"generator": "made", "license": "MIT", "bug_kind": "operator" if at % 2 else "boundary"}
        save_task(replace(task, provenance=where, difficulty="easy" if at else "hard"), tmp_path / "set" / task.id)
    done = cli("tasks", "stats", "set", "--minimum", "2", "--json")
    assert done.code == 0, done.err
    found = done.document
    assert found["tasks"] == 6
    assert found["counts"]["bug_kind"] == {"boundary": 3, "operator": 3}
    assert found["counts"]["difficulty"] == {"easy": 5, "hard": 1}
    assert found["counts"]["split"] == {"train": 5, "test": 1}
    assert found["counts"]["licence"] == {"MIT": 6}
    assert found["duplicates"]["surplus"] == 1
    assert {"difficulty": "medium", "count": 0} in found["holes"]
    assert {"difficulty": "hard", "count": 1} in found["holes"]
    (tmp_path / "set" / "copy" / "task.toml").write_text("[")
    text = cli("tasks", "stats", "set", "--minimum", "2")
    assert text.code == 1
    assert "5 tasks" in text.out
    assert "empty    medium (difficulty)" in text.out
    assert "copies: 0 tasks (0.0%)" in text.out
    assert "✗ set/copy:" in text.out
    save_task(replace(unlike[0], instruction="Something else."), tmp_path / "set" / "zz-twin")
    twin = cli("tasks", "stats", "set", "--json")
    assert (twin.code, twin.document["tasks"]) == (1, 5)
    assert "occurs twice" in twin.document["refused"]["set/zz-twin"]


def test_nothing_to_count(cli: Cli, tmp_path: Path) -> None:
    """A folder without tasks is bad input, told in one line."""
    done = cli("tasks", "stats", tmp_path)
    assert (done.code, "there is no task directory" in done.err) == (2, True)
