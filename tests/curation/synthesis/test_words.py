"""What instructions are made of, and what they must not give away."""

from __future__ import annotations

import pytest

from practicum.curation.projects.project import Project
from practicum.curation.synthesis.examples import example_of
from practicum.curation.synthesis.instruction import rules
from practicum.curation.synthesis.leaks import gives_away, repaired_lines
from practicum.curation.synthesis.wording import error_of, purpose_of, symptom_of, wanted_errors
from practicum.records.tree import File

TESTS = {
    "tests/test_a.py": File(
        b"import pytest\nimport operator as op\nfrom calc import add, sub\n\nHELPER = 1\n\n"
        b"def test_sum_of_negatives():\n    assert add(-1, -2) == -3\n\n"
        b"def test_doc():\n    '''Test that the first wins.\n\n    More.\n    '''\n    x = 1\n    assert x\n\n"
        b"def test_fixture(tmp_path):\n    assert tmp_path\n\n"
        b"def test_helper():\n    assert add(HELPER, 0)\n\n"
        b"class CalcTest:\n    def test_add(self):\n        s = op.neg(2)\n        self.assertEqual(add(1, s), -1)\n\n"
        b"    def test_own(self):\n        self.assertTrue(self.ready)\n\n"
        b"class TestLRUCache:\n    def test_pop(self):\n        with pytest.raises(KeyError, match='no such'):\n"
        b"            pop()\n"
    )
}


@pytest.mark.parametrize(
    ("test", "purpose"),
    [
        ("tests/test_a.py::test_sum_of_negatives", "sum of negatives"),
        ("tests/test_a.py::test_sum_of_negatives[a-1]", "sum of negatives (case `a-1`)"),
        ("tests/test_a.py::test_doc", "the first wins"),
        ("tests/test_a.py::TestLRUCache::test_pop", "LRUCache: pop"),
        ("tests/elsewhere.py::CacheTest::test_pop", "Cache: pop"),
        ("tests/test_a.py::test", "a basic check"),
    ],
)
def test_purpose(test: str, purpose: str) -> None:
    """A test is told by its docstring, else by its name, within its class."""
    assert purpose_of(test, TESTS) == purpose


def test_symptom_is_short_and_without_addresses() -> None:
    """A message is cut to a few lines, without places in memory and advice to developers."""
    text = symptom_of("assert <A at 0x7FB08DE437C0> == 1\n\n  Use -v to get more diff\n" + "\n".join("abcdefghi"))
    assert "7FB0" not in text
    assert "Use -v" not in text
    assert len(text.splitlines()) == 6


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("assert 1 == 2", "AssertionError"),
        ("KeyError: 'a'", "KeyError"),
        ("json.decoder.JSONDecodeError: x", "JSONDecodeError"),
        ("Failed: DID NOT RAISE", "Failed"),
        ("", "AssertionError"),
    ],
)
def test_error_of(message: str, error: str) -> None:
    """The type of an error is what its message begins with."""
    assert error_of(message) == error


def test_example_stands_for_itself() -> None:
    """A test is quoted with its imports, in plain assertions, unless it needs a fixture, a helper or its class."""

    def example(name: str) -> str | None:
        return example_of(f"tests/test_a.py::{name}", TESTS)

    assert example("test_sum_of_negatives") == "from calc import add\n\nassert add(-1, -2) == -3"
    assert example("test_doc") == "x = 1\nassert x"
    assert example("CalcTest::test_add") == (
        "from calc import add\nimport operator as op\n\ns = op.neg(2)\nassert add(1, s) == -1"
    )
    for name in ("test_fixture", "test_helper", "CalcTest::test_own", "TestLRUCache::test_pop", "nothing"):
        assert example(name) is None, name


def test_wanted_errors() -> None:
    """What a test wants raised is found with its message."""
    assert wanted_errors("tests/test_a.py::TestLRUCache::test_pop", TESTS) == [("KeyError", "no such")]


GOLD = {"a.py": File(b"def f(a):\n    if a is None:\n        return table[a] + offset * 2\n    return 0\n")}
BROKEN = {"a.py": b"def f(a):\n    return 0\n"}


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("The result is wrong for None.", False),
        ("`f(None)` gives `0`.", False),
        ("It should `return   table[ a ] + offset*2`.", True),
        ("Perhaps if a is None: something else", True),
        ("Look at table[a] + offset and so on", True),
        ("table a offset 2", False),
    ],
)
def test_leaks(text: str, leaks: bool) -> None:
    """A line of the gold, or six tokens of it in a row, is found whatever the spacing; words alone are not."""
    assert (gives_away(text, repaired_lines(BROKEN, GOLD)) is not None) is leaks


def test_lines_that_stay_are_no_answer() -> None:
    """Only what the gold adds counts: the agent has the rest before it."""
    assert repaired_lines(BROKEN, GOLD) == [["    if a is None:", "        return table[a] + offset * 2"]]
    assert gives_away("def f(a): return 0", repaired_lines(BROKEN, GOLD)) is None


CASES = {
    "t.py": File(
        b"import pytest\nfrom calc import add\n\n"
        b"@pytest.mark.parametrize('test_args, expected', [([1, 2], '3'), ([-4], None), ([5], '3-x')])\n"
        b"def test_add(test_args, expected):\n    assert add(*test_args) == expected\n\n"
        b"@pytest.mark.parametrize('value', [pytest.param([1]), [2], [3]] + MORE)\n"
        b"def test_more(value):\n    assert add(value)\n\n"
        b"@pytest.mark.parametrize('value', [pytest.param([1]), [2]])\n"
        b"def test_param(value):\n    assert add(value)\n"
    )
}


@pytest.mark.parametrize(
    ("test", "purpose", "example"),
    [
        ("t.py::test_add[test_args0-3]", "add (with `test_args=[1, 2], expected='3'`)", "add(1, 2) == '3'"),
        ("t.py::test_add[test_args1-None]", "add (with `test_args=[-4], expected=None`)", "add(-4) == None"),
        ("t.py::test_add[test_args2-3-x]", "add (with `test_args=[5], expected='3-x'`)", "add(5) == '3-x'"),
        ("t.py::test_add[test_args9-3]", "add (case `3`)", None),
        ("t.py::test_more[value1]", "more", None),
        ("t.py::test_param[value0]", "param", None),
    ],
)
def test_cases(test: str, purpose: str, example: str | None) -> None:
    """A case is told by its values, and its call is an example; what only names a place is left out."""
    assert purpose_of(test, CASES) == purpose
    text = example_of(test, CASES)
    assert text == (None if example is None else f"from calc import add\n\nassert {example}")


def test_rules_fit_the_work() -> None:
    """Where a body is to be written anew, no smallest change is asked for."""
    project = Project("p", "1", {}, "MIT", {}, {}, (), ("",), ("p.py",))
    assert "smallest change" in rules(project, (), 2)[0]
    assert "smallest" not in rules(project, (), 2, anew=True)[0]
