"""Which functions can be asked for again once they are gone."""

from __future__ import annotations

import pytest

from practicum.curation.projects.reading import project_of
from practicum.curation.synthesis.removal import _told
from practicum.records.tree import File
from practicum.verification.redteam.variants import named_functions, parse

SOURCE = '''def documented(a):
    """Twice `a`."""
    return a * 2


def plain(a):
    return a * 3
'''
TESTS = """import pytest
from numbers_ import plain


@pytest.fixture
def three():
    return 3


def test_plain():
    assert plain(1) == 3


def test_with_help(three):
    assert plain(1) == three


def test_other():
    assert 1 + 1 == 2
"""


@pytest.mark.parametrize(
    ("name", "tests", "told"),
    [
        ("documented", (), True),
        ("plain", ("test_plain",), True),
        ("plain", ("test_with_help", "test_other"), True),
        ("plain", ("test_with_help",), False),
        ("plain", ("test_other",), False),
        ("plain", (), False),
    ],
)
def test_something_must_say_what_it_should_do(name: str, tests: tuple[str, ...], told: bool) -> None:
    """Without a docstring, a test must name the function and one must stand for itself."""
    tree = {"numbers_.py": SOURCE, "tests/test_numbers.py": TESTS}
    files = {path: File(text.encode()) for path, text in tree.items()}
    project = project_of(files, {}, {"kind": "folder"}, where="numbers", allow_unlicensed=True)
    node = dict(named_functions(parse(SOURCE)))[name]
    assert _told(node, [f"tests/test_numbers.py::{each}" for each in tests], project) is told
