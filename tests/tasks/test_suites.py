"""Tests are told by reading a file, and only where reading is enough."""

from __future__ import annotations

import pytest

from practicum.errors import TaskError
from practicum.tasks.suites import read_suite


def test_cases_of_unittest() -> None:
    """Test cases, their mixins of the same file included, are unittest's; skipped tests are left out."""
    suite = read_suite(
        "import unittest\n"
        "class Mixin:\n"
        "    def test_shared(self): ...\n"
        "class ATest(Mixin, unittest.TestCase):\n"
        "    def test_one(self): ...\n"
        "    async def test_two(self): ...\n"
        "    @unittest.skip('later')\n"
        "    def test_never(self): ...\n"
        "    def helper(self): ...\n"
        "@unittest.skip('all')\n"
        "class BTest(unittest.TestCase):\n"
        "    def test_three(self): ...\n",
        "a_test.py",
    )
    assert suite.runner == "unittest"
    assert suite.ids("sub/a_test.py") == tuple(
        f"sub.a_test.ATest.{name}" for name in ("test_shared", "test_one", "test_two")
    )


def test_anything_else_needs_pytest() -> None:
    """Functions and plain classes make it a file for pytest, with pytest's ids."""
    suite = read_suite("def test_a(): ...\nclass TestB:\n    def test_c(self): ...\nclass Helper:\n    x = 1\n", "t")
    assert (suite.runner, suite.ids("t.py")) == ("pytest", ("t.py::test_a", "t.py::TestB::test_c"))
    assert read_suite("x = 1\n", "t").tests == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def test_a(:\n", "does not parse"),
        ("@pytest.mark.parametrize('x', [1])\ndef test_a(x): ...\n", "parametrised"),
        ("class A(unittest.TestCase, Mixin):\n    def test_a(self): ...\n", "may inherit tests from Mixin"),
        ("class Checks(BaseTestCase):\n    def test_a(self): ...\n", "cannot be told by reading"),
    ],
)
def test_what_reading_cannot_tell_is_refused(text: str, words: str) -> None:
    """Ids that depend on more than the names in the file are not guessed."""
    with pytest.raises(TaskError, match=words):
        read_suite(text, "t.py")
