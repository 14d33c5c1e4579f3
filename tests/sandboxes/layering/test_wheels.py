"""Packages of a lock are laid out from wheels alone, by hash, for the interpreter of the box."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from practicum.errors import CreateFailed
from practicum.records.recipe import Pinned, read_lock
from practicum.sandboxes.layering.wheels import Target, install

TARGET = Target(".".join(map(str, sys.version_info[:3])), "/usr/bin/python3-of-the-box")


def wheel(folder: Path, name: str, version: str, files: dict[str, str], scripts: str = "") -> Pinned:
    """A wheel in `folder`, and the lock's line for it."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}\n"

    def line(path: str, text: str) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(text)}\n"

    content[f"{info}/RECORD"] = "".join(line(*item) for item in content.items()) + f"{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for place, text in content.items():
            file.writestr(zipfile.ZipInfo(place), text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return read_lock(f"{name}=={version} --hash=sha256:{digest}", "lock")[0]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip finds anything."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def test_packages_and_their_programs(index: Path, site: Path) -> None:
    """Modules are laid beside what is there; programs start with the box's interpreter; no path of the host stays."""
    (site / "there.py").write_text("")
    pin = wheel(index, "tool", "1.0", {"tool/__init__.py": "def main(): pass\n"}, scripts="tool = tool:main")
    install([pin], TARGET, site, "lock")
    assert (site / "tool" / "__init__.py").read_text() == "def main(): pass\n"
    assert (site / "there.py").exists()
    assert (site / "bin" / "tool").read_text().startswith("#!/usr/bin/python3-of-the-box\n")
    text = "".join(path.read_text() for path in site.rglob("*") if path.is_file())
    assert str(index) not in text
    assert sys.executable not in text


def test_the_same_lock_gives_the_same_bytes(index: Path, tmp_path: Path) -> None:
    """Laid out twice, a lock gives the same files with the same content."""
    pin = wheel(index, "tool", "1.0", {"tool.py": "x = 1\n"}, scripts="tool = tool:x")
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        install([pin], TARGET, tmp_path / name, "lock")
        tree = sorted((tmp_path / name).rglob("*"))
        found.append([(str(p.relative_to(tmp_path / name)), p.is_file() and p.read_bytes()) for p in tree])
    assert found[0] == found[1]
    assert found[0]


def test_the_lock_replaces_what_was_there(index: Path, site: Path) -> None:
    """Another version of a package takes the place of the one in the layer, leaving no file of that behind."""
    install([wheel(index, "a_b", "1.0", {"ab/old.py": "", "ab/both.py": "1"})], TARGET, site, "lock")
    install([wheel(index, "a_b", "2.0", {"ab/new.py": "", "ab/both.py": "2"})], TARGET, site, "lock")
    assert {path.name for path in (site / "ab").iterdir()} == {"new.py", "both.py"}
    assert (site / "ab" / "both.py").read_text() == "2"
    assert [path.name for path in site.glob("*.dist-info")] == ["a_b-2.0.dist-info"]


def test_markers_are_the_boxes(index: Path, site: Path) -> None:
    """A requirement for another interpreter is passed over, going by the box's version and not by this one's."""
    pin = wheel(index, "tool", "1.0", {"tool.py": ""})
    old = Pinned(pin.name, pin.version, pin.hashes, 'python_version < "3.5"')
    install([old], TARGET, site, "lock")
    assert list(site.iterdir()) == []
    install([old], Target("3.4.0", "/x"), site, "lock")
    assert (site / "tool.py").exists()
    with pytest.raises(CreateFailed, match=r"the marker of tool==1.0 cannot be read"):
        install([Pinned("tool", "1.0", pin.hashes, "nonsense ~ 3")], TARGET, site, "lock")


def test_what_cannot_be_had_is_named(index: Path, site: Path) -> None:
    """A source distribution, another file than was hashed, and an unknown package each name the requirement."""
    pin = wheel(index, "tool", "1.0", {"tool.py": ""})
    (index / "srconly-1.0.tar.gz").write_bytes(b"never opened")
    for wrong, words in (
        (Pinned("srconly", "1.0", pin.hashes), r"lock: srconly==1.0 has no wheel(.|\n)*runs its code"),
        (Pinned("gone", "1.0", pin.hashes), "gone==1.0 has no wheel"),
        (Pinned("tool", "1.0", ("sha256:" + "0" * 64,)), "lock: tool==1.0 is not what its hash says"),
    ):
        with pytest.raises(CreateFailed, match=words):
            install([wrong], TARGET, site, "lock")
    assert list(site.iterdir()) == []
