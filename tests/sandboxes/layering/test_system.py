"""What of the host shows in a layer."""

from __future__ import annotations

from pathlib import Path

from practicum.sandboxes.layering.system import foreign_packages


def test_packages_of_other_programs_are_found(tmp_path: Path) -> None:
    """A program's folder that holds a package of Python, deep or not, is named; others are left alone."""
    lib, share = tmp_path / "lib", tmp_path / "share"
    for package in (
        "sdk/lib/third_party/sqlparse",
        "python3.11/json",
        "x86_64-linux-gnu/giscanner",
        "deep/a/b/c/d/e/f",
    ):
        (lib / package).mkdir(parents=True)
        (lib / package / "__init__.py").touch()
    (lib / "plain" / "data").mkdir(parents=True)
    (lib / "plain" / "data" / "notes.py").touch()
    (share / "tool").mkdir(parents=True)
    (share / "tool" / "__init__.py").touch()
    (share / "link").symlink_to(lib / "sdk")
    places = (str(lib), str(share), str(tmp_path / "missing"))
    assert foreign_packages(places) == [str(lib / "sdk"), str(share / "tool")]
