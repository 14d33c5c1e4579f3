"""What tests need is found without running anything, resolved once, and the same on another day."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.curation.projects.environment import LOCK, layer_for, layer_of_lock, wanted
from practicum.curation.projects.project import Project
from practicum.curation.projects.reading import read_project
from practicum.errors import LayerFailed, TaskError
from practicum.records.recipe import Recipe, Requirements

if TYPE_CHECKING:
    from curation.projects.conftest import WriteProject

HASH = "sha256:" + "a" * 64
PROJECT = """
[project]
name = "shop"
version = "1"
license = "MIT"
dependencies = ["Six>=1.16", "tomli; python_version < '3'", "pytest"]
[project.optional-dependencies]
yaml = ["PyYAML>=6"]
docs = ["sphinx"]
[dependency-groups]
test = ["freezegun>=1", "pytest-cov"]
"""


@pytest.fixture
def needy(write_project: WriteProject) -> Project:
    tests = "import yaml\nimport freezegun\nimport json\nimport unknown_thing\nimport shop\nfrom tests import helpers\n"
    return read_project(write_project({"pyproject.toml": PROJECT, "tests/test_words.py": tests}))


def test_what_is_wanted(needy: Project, shop: Project) -> None:
    """Declared dependencies, and what tests import of whatever is declared anywhere; no name is guessed."""
    assert wanted(needy) == ("freezegun>=1", "PyYAML>=6", "Six>=1.16")
    assert wanted(shop) == ()
    assert layer_for(shop) == "python"


def test_a_kept_lock_is_used_again(needy: Project, tmp_path: Path) -> None:
    """What was resolved for the same wishes is not resolved again, and gives the same layer."""
    lock = tmp_path / LOCK
    lock.write_text(f"# for: freezegun>=1 | PyYAML>=6 | Six>=1.16\nsix==1.16.0 --hash={HASH}\n")
    layer = layer_for(needy, tmp_path)
    assert isinstance(layer, Recipe)
    assert layer == layer_for(needy, tmp_path) == layer_of_lock(lock)
    assert layer.digest == layer_of_lock(lock).digest
    (pins,) = [step for step in layer.steps if isinstance(step, Requirements)]
    assert [(pin.name, pin.version) for pin in pins.packages] == [("six", "1.16.0")]


def _wheel(folder: Path, name: str, version: str, needs: str = "") -> str:
    """A wheel in `folder`; its hash."""
    info = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip finds anything."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(folder)), ("CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


def test_what_is_needed_is_resolved_to_wheels(needy: Project, tmp_path: Path, index: Path) -> None:
    """The lock holds what the wishes need in turn, by hash; what comes as no wheel is refused by name."""
    for name in ("PyYAML", "six"):
        _wheel(index, name, "6.1" if name == "PyYAML" else "1.17")
    with pytest.raises(LayerFailed, match="freezegun"):
        layer_for(needy, tmp_path / "store")
    assert not (tmp_path / "store").exists()
    _wheel(index, "freezegun", "1.5", needs="clocks>=2")
    digest = _wheel(index, "clocks", "2.0")
    layer = layer_for(needy, tmp_path / "store")
    text = (tmp_path / "store" / LOCK).read_text()
    assert [line.partition(" ")[0] for line in text.splitlines()[1:]] == [
        "clocks==2.0",
        "freezegun==1.5",
        "pyyaml==6.1",
        "six==1.17",
    ]
    assert f"clocks==2.0 --hash=sha256:{digest}\n" in text
    (index / "clocks-2.0-py3-none-any.whl").unlink()
    assert layer_for(needy, tmp_path / "store") == layer


@pytest.mark.parametrize("text", ["six>=1\n", "six==1.16.0\n", "", "git+https://example.org/x\n"])
def test_a_lock_that_locks_nothing_is_refused(text: str, tmp_path: Path) -> None:
    """Ranges, addresses and requirements without a hash are no lock."""
    (tmp_path / "lock.txt").write_text(text)
    with pytest.raises(TaskError):
        layer_of_lock(tmp_path / "lock.txt")
    with pytest.raises(TaskError, match="cannot be read"):
        layer_of_lock(tmp_path / "none.txt")
