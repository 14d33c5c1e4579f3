"""Projects are read from folders, repositories and source distributions, and nothing of theirs is ever run."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.curation.projects import archives
from practicum.curation.projects.reading import read_project
from practicum.errors import TaskError

if TYPE_CHECKING:
    from curation.projects.conftest import WriteProject


def test_a_folder_as_a_project(write_project: WriteProject) -> None:
    """Name, licence, sources and tests are found, and no file is both source and test."""
    project = read_project(write_project())
    assert (project.name, project.version, project.licence, project.roots) == ("shop", "1.2", "MIT", ("src",))
    assert project.sources == ("src/shop/__init__.py", "src/shop/prices.py", "src/shop/words.py")
    assert project.test_files == ("tests/test_prices.py", "tests/test_words.py")
    assert set(project.tests) == {path for path in project.tests if path.startswith("tests/")}
    assert "tests/data/list.txt" in project.tests
    assert not set(project.tests) & set(project.files)
    assert project.editable == ("src/shop/**",)
    assert project.module("src/shop/prices.py") == "shop.prices"


@pytest.mark.parametrize("kind", ["tar", "zip", "git"])
def test_every_form_gives_the_same(kind: str, write_project: WriteProject, tmp_path: Path) -> None:
    """A folder, an archive and a repository with the same files are the same project."""
    folder = write_project()
    if kind == "tar":
        source = tmp_path / "shop-1.2.tar.gz"
        with tarfile.open(source, "w:gz") as archive:
            archive.add(folder, "shop-1.2")
    elif kind == "zip":
        source = tmp_path / "shop-1.2.zip"
        with zipfile.ZipFile(source, "w") as packed:
            for path in sorted(folder.rglob("*")):
                packed.write(path, f"shop-1.2/{path.relative_to(folder)}")
    else:
        source = folder
    expected = read_project(folder).digest
    if kind == "git":
        for command in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *command], cwd=folder, check=True)
        (folder / "src/shop/words.py").write_text("not committed")
        assert read_project(source).origin["kind"] == "git"
    assert read_project(source).digest == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tests/test_prices.py": None, "tests/test_words.py": None}, "no tests"),
        ({"LICENSE": None, "pyproject.toml": '[project]\nname = "shop"\n'}, "no licence"),
        ({f"src/shop/{name}.py": None for name in ("__init__", "prices", "words")}, "no Python source"),
        ({"pyproject.toml": "[project"}, "pyproject.toml does not parse"),
        ({"src/pluggy.py": ""}, "from the box itself"),
    ],
)
def test_what_cannot_be_used_says_why(changes: dict[str, str | None], said: str, write_project: WriteProject) -> None:
    """A project without tests, licence or sources, or that a box would not import, is refused by that name."""
    with pytest.raises(TaskError, match=said):
        read_project(write_project(changes))


def test_an_unlicensed_project_when_asked_for(write_project: WriteProject) -> None:
    """What has no licence is taken only on demand, and says so."""
    folder = write_project({"LICENSE": None, "pyproject.toml": '[project]\nname = "shop"\n'})
    assert read_project(folder, allow_unlicensed=True).licence == "unknown"


def test_odd_files_are_told_and_left_out(write_project: WriteProject) -> None:
    """Sources that are not UTF-8, links, large binaries and builds do not become sources, and the rest goes on."""
    folder = write_project(
        {
            "src/shop/latin.py": "x = 'é'\n".encode("latin-1"),
            "picture.bin": b"\0" * 300_000,
            "build/lib/shop/prices.py": "copy",
            "src/shop/logo.png": b"\x89PNG\0",
        }
    )
    (folder / "link.py").symlink_to("src/shop/prices.py")
    project = read_project(folder)
    assert "src/shop/latin.py" not in project.sources
    assert {"src/shop/latin.py", "picture.bin", "link.py"} == set(project.notes)
    assert not {"link.py", "picture.bin", "build/lib/shop/prices.py"} & set(project.files)
    assert project.files["src/shop/logo.png"].data == b"\x89PNG\0"


def test_what_a_build_would_write(write_project: WriteProject) -> None:
    """A project that asks for its own metadata, or for a version that its build writes, finds both."""
    folder = write_project(
        {
            "pyproject.toml": '[project]\nname = "shop"\nlicense = "MIT"\n[tool.setuptools_scm]\n'
            'write_to = "src/shop/_version.py"\n',
            "src/shop/__init__.py": "from importlib.metadata import version\n__version__ = version('shop')\n",
        }
    )
    project = read_project(folder)
    assert b"Version: 0.0.0" in project.files["shop-0.0.0.dist-info/METADATA"].data
    assert "src/shop/_version.py" in project.sources


def test_tests_beside_and_below_sources(write_project: WriteProject) -> None:
    """Configured names and places of tests count, as do tests inside a package."""
    base = {
        "pyproject.toml": '[project]\nname = "flat"\nlicense = "MIT"\n[tool.pytest.ini_options]\n'
        'python_files = ["check_*.py"]\ntestpaths = ["flat"]\n',
        "flat/__init__.py": "",
        "flat/core.py": "",
        "flat/check_core.py": "",
        "flat/tests/check_more.py": "",
        "flat/tests/data.json": "{}",
        "docs/check_docs.py": "",
        "setup.py": "raise SystemExit",
    }
    project = read_project(write_project(base=base))
    assert project.test_files == ("flat/check_core.py", "flat/tests/check_more.py")
    assert project.sources == ("flat/__init__.py", "flat/core.py")
    assert set(project.tests) == {"flat/check_core.py", "flat/tests/check_more.py", "flat/tests/data.json"}


def _tar(path: Path, members: list[tuple[str, bytes, bytes]]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data, kind in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            info.linkname = "/etc/passwd"
            archive.addfile(info, io.BytesIO(data))


def test_archives_hold_only_plain_files(tmp_path: Path) -> None:
    """Names that lead out, links and devices of an archive are told and left out."""
    path = tmp_path / "bad-1.tar.gz"
    _tar(
        path,
        [
            ("bad-1/fine.py", b"x = 1\n", tarfile.REGTYPE),
            ("../up.py", b"", tarfile.REGTYPE),
            ("/etc/evil", b"", tarfile.REGTYPE),
            ("bad-1/link", b"", tarfile.SYMTYPE),
            ("bad-1/hard", b"", tarfile.LNKTYPE),
            ("bad-1/pipe", b"", tarfile.FIFOTYPE),
        ],
    )
    files, odd = archives.read_archive(path, max_bytes=1 << 20, max_file_bytes=1 << 20)
    assert list(files) == ["fine.py"]
    assert set(odd) == {"../up.py", "/etc/evil", "link", "hard", "pipe"}


def test_archives_are_bounded(tmp_path: Path) -> None:
    """What would unpack to far more than it should is refused before it is read."""
    path = tmp_path / "bomb-1.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(8):
            packed.writestr(f"bomb-1/{number}", b"\0" * (1 << 20))
    with pytest.raises(TaskError, match="more than may be read"):
        archives.read_archive(path, max_bytes=1 << 30, max_file_bytes=1 << 30)
    (tmp_path / "torn-1.tar.gz").write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(TaskError, match="cannot be read as an archive"):
        read_project(tmp_path / "torn-1.tar.gz")


@pytest.mark.parametrize(
    "changes",
    [
        {"space/shop/__init__.py": "", "space/shop/prices.py": "def total(x):\n    return sum(x)\n"},
        {"space/shop.py": "def total(x):\n    return sum(x)\n"},
    ],
    ids=["a package in it", "a module in it"],
)
def test_namespace_packages(changes: dict[str, str], write_project: WriteProject) -> None:
    """A folder at the top without `__init__.py` is a package where tests import it, and else is not."""
    gone = dict.fromkeys((f"src/shop/{name}.py" for name in ("__init__", "prices", "words")), None)
    gone |= dict.fromkeys(("tests/test_prices.py", "tests/test_words.py"), None)
    test = "from space import shop\n\n\ndef test_it():\n    assert shop\n"
    found = read_project(write_project({**gone, **changes, "tests/test_space.py": test, "other/thing.py": "X = 1\n"}))
    assert set(found.sources) == set(changes)
    with pytest.raises(TaskError, match="none that tests import by its name"):
        read_project(write_project({**gone, **changes, "tests/test_space.py": "def test_it():\n    pass\n"}))
