"""`practicum doctor --model`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from practicum.policies.local.folder import save_folder
    from practicum.policies.local.tiny import tiny_model, tiny_tokenizer

    made, place = tiny_model(), tmp_path / "model"
    place.mkdir()
    save_folder(made, tiny_tokenizer(), place, made.state_dict())
    return place


def test_a_sound_model(cli: Cli, folder: Path) -> None:
    """A model that can be used: exit code 0, and each part with what was found."""
    done = cli("doctor", "--model", folder, "--json")
    assert done.code == 0, done.err
    assert done.document["ok"]
    assert {"sizes", "tokenizer", "weights", "chat template"} <= {each["name"] for each in done.document["checks"]}


def test_a_model_without_tokenizer(cli: Cli, folder: Path) -> None:
    """A part that is missing: exit code 1, its name, and the line that fixes it."""
    (folder / "tokenizer.json").unlink()
    done = cli("doctor", "--model", folder)
    assert done.code == 1
    assert "✗ tokenizer" in done.out
    assert "fix: put the model's tokenizer.json beside its weights" in done.out


def test_no_such_model(cli: Cli) -> None:
    """Neither a folder nor a known name is bad input, with the names that are known."""
    done = cli("doctor", "--model", "absent")
    assert done.code == 2
    assert "smollm2" in done.err
    assert "Traceback" not in done.err
