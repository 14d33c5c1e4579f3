"""What a project says about itself is parsed, whatever form it is in."""

from __future__ import annotations

from practicum.curation.projects.metadata import read_metadata
from practicum.records.tree import File


def test_setup_py_is_read_and_not_run() -> None:
    """Literal arguments of a setup call count; what it computes is unknown, and nothing of it happens."""
    found = read_metadata(
        {
            "setup.py": File(
                b"import os\nos.abort()\nsetup(name='old', version=get(), license='BSD', install_requires=['six>=1'],"
                b" extras_require={'test': ['mock']}, classifiers=['A', 'B'])\n"
            ),
            "old/__init__.py": File(b"__version__ = '0.3'\n"),
        }
    )
    assert (found.name, found.version, found.licence) == ("old", "0.3", "BSD")
    assert found.requires == ("six>=1",)
    assert found.extras == {"test": ("mock",)}
    assert found.classifiers == ("A", "B")


def test_setup_cfg_and_pytest_sections() -> None:
    """Declarations of setup.cfg count, and of pytest's settings the file that pytest would take."""
    setup = (
        "[metadata]\nname = cfg\nversion = 2.0\nlicense = MIT\n[options]\ninstall_requires =\n  a\n  b>1\n"
        "[options.extras_require]\ndev =\n  c\n[tool:pytest]\ntestpaths = one two\n"
    )
    tree = {"setup.cfg": File(setup.encode())}
    found = read_metadata(tree)
    assert (found.name, found.version, found.requires, found.extras) == ("cfg", "2.0", ("a", "b>1"), {"dev": ("c",)})
    assert found.testpaths == ("one", "two")
    found = read_metadata({**tree, "pytest.ini": File(b"[pytest]\ntestpaths = three\npython_files = a_*.py\n")})
    assert (found.testpaths, found.python_files) == (("three",), ("a_*.py",))


def test_pkg_info_of_a_source_distribution() -> None:
    """What a distribution says of itself fills in what its sources compute."""
    text = b"Metadata-Version: 2.4\nName: dist\nVersion: 3.1\nLicense-Expression: MIT\nClassifier: X\n"
    found = read_metadata({"PKG-INFO": File(text), "pyproject.toml": File(b'[project]\ndynamic = ["version"]\n')})
    assert (found.name, found.version, found.licence, found.classifiers) == ("dist", "3.1", "MIT", ("X",))
