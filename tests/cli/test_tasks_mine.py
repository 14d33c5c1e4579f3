"""`practicum tasks mine`, as a person runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Cli

PYPROJECT = '[project]\nname = "calc"\nversion = "1"\nlicense = "MIT"\n'
WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n"
KEPT = "import calc\n\n\ndef test_zero():\n    assert calc.add(0, 0) == 0\n"


def _repository(folder: Path, *commits: tuple[str, Mapping[str, str]]) -> Path:
    folder.mkdir()
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=folder, env=env, check=True)
    for message, files in commits:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        subprocess.run(["git", "add", "-A"], cwd=folder, env=env, check=True)
        subprocess.run(["git", *who, "commit", "-qm", message], cwd=folder, env=env, check=True)
    return folder


def test_mining_a_repository(cli: Cli, tmp_path: Path) -> None:
    """The document counts commits, candidates, tasks and refusals; a second run takes all from its journal."""
    repository = _repository(
        tmp_path / "calc",
        ("Start", {"pyproject.toml": PYPROJECT, "calc.py": WRONG, "tests/test_zero.py": KEPT}),
        ("Add as told", {"calc.py": RIGHT, "tests/test_add.py": TEST}),
        ("Layout", {"calc.py": f"# sums\n{RIGHT}", "tests/test_add.py": f"# sums\n{TEST}"}),
    )
    done = cli("tasks", "mine", repository, tmp_path / "out", "--json", timeout_s=110)
    assert done.code == 0, done.err
    document = done.document
    assert (document["commits"], document["candidates"], document["written"]) == (3, 2, 1)
    assert document["refused"] == {"changes only formatting, comments or a version": 1}
    (name,) = document["tasks"]
    assert (tmp_path / "out" / name / "instruction.md").read_text().startswith("# Add as told\n")
    assert "whole suite" in document["seconds"]
    again = cli("tasks", "mine", repository, tmp_path / "out", timeout_s=110)
    assert again.code == 0
    assert "1 task below" in again.out
    assert f"next: practicum tasks check {tmp_path / 'out'}" in again.out
    assert "1  changes only formatting" in again.out


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pyproject.toml": PYPROJECT, "calc.py": RIGHT}, "no tests"),
        ({"calc.py": RIGHT, "tests/test_add.py": TEST}, "no licence"),
    ],
)
def test_a_repository_that_cannot_be_used(files: dict[str, str], said: str, cli: Cli, tmp_path: Path) -> None:
    """Without tests or a licence nothing is mined, and the message says what to do."""
    done = cli("tasks", "mine", _repository(tmp_path / "calc", ("Start", files)), tmp_path / "out", "--json")
    assert done.code == 2
    assert said in done.document["error"]["message"]
    assert done.document["error"]["fix"]


def test_nothing_to_mine_is_a_negative_result(cli: Cli, tmp_path: Path) -> None:
    """A history without a task exits 1; a folder without a history is bad input."""
    files = {"pyproject.toml": PYPROJECT, "calc.py": RIGHT, "tests/test_add.py": TEST}
    done = cli("tasks", "mine", _repository(tmp_path / "calc", ("Start", files)), tmp_path / "out", "--json")
    assert (done.code, done.document["tasks"]) == (1, [])
    (tmp_path / "plain").mkdir()
    assert cli("tasks", "mine", tmp_path / "plain", tmp_path / "out").code == 2
