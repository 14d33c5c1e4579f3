"""The instruction tells what the tests see, and never a line of the fix."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.mining.quoting import compared
from practicum.curation.mining.withholding import Withheld
from practicum.curation.mining.wording import instruction_of
from practicum.records.tree import File

BEFORE = {"a.py": File(b"def rate(x):\n    return x\n")}
FIX = "def rate(x, scale=1):\n    '''rate(2, scale=3) is 6'''\n    return round(x * scale / 100, 2)\n"
WITHHELD = Withheld.of(BEFORE, {"a.py": FIX.encode()})
TESTS = {
    "t.py": File(
        b"import a\n\n\ndef test_old():\n    assert a.rate(1) == 1\n\n\nclass TestNew:\n    def test_new(self):\n"
        b"        assert a.rate(2, scale=3) == 6\n\n    def test_copy(self):\n        x, scale = 1, 2\n"
        b"        assert a.rate(x, scale) == round(x * scale / 100, 2)\n"
    )
}
LINES = st.sampled_from([*FIX.splitlines(), "AssertionError: assert 1 == 6", "TypeError: no", "", " where 1 = f(2)"])


def _instruction(messages: dict[str, str], fresh: list[str] | None = None) -> str:
    return instruction_of(
        "Scale rates",
        "Rates were not scaled.",
        failing=list(messages),
        messages=messages,
        tests=TESTS,
        fresh=fresh or [],
        places=["a.py"],
        withheld=WITHHELD,
    )


def test_new_tests_come_first_with_their_code() -> None:
    """Where messages say little, code of tests written for the work is shown, unless it repeats the fix."""
    messages = {
        "t.py::test_old": "ImportError: x",
        "t.py::TestNew::test_copy": "ImportError: x",
        "t.py::TestNew::test_new": "ImportError: x",
    }
    text = _instruction(messages, ["t.py::TestNew::test_copy", "t.py::TestNew::test_new"])
    assert text.startswith("# Scale rates\n\nRates were not scaled.\n\n3 tests fail as things are:")
    assert text.index("`TestNew.test_new`") < text.index("`test_old`")
    assert "```python\ndef test_new(self):\n    assert a.rate(2, scale=3) == 6\n```" in text
    assert "def test_copy" not in text
    assert "def test_old" not in text
    assert "`a.py`" in text


def test_a_message_that_says_enough_stands_alone() -> None:
    """No code of a test is shown where what was compared is told at length."""
    text = _instruction({"t.py::TestNew::test_new": f"AssertionError: assert '{'a' * 40}' == '{'b' * 40}'"})
    assert "One test fails" in text
    assert "```python" not in text


@given(
    st.dictionaries(st.sampled_from([f"t.py::test_{n}" for n in range(20)]), st.lists(LINES, max_size=8), min_size=1)
)
def test_no_line_of_the_fix(messages: dict[str, list[str]]) -> None:
    """Whatever tests print, code that the fix adds is left out, and few tests are described."""
    text = _instruction({name: "\n".join(lines) for name, lines in messages.items()})
    assert not any(WITHHELD.told_by(line) for line in text.splitlines())
    assert "round(" not in text
    assert text.count("- `") <= 8


HELPED = {
    "test/common.py": File(b"def assert_equal(expected, result):\n    print(result)\n    assert expected == result\n"),
    "test/t.py": File(
        b"from common import assert_equal\nimport a\n\nTABLE = [2]\n\n\n"
        b"def test_one():\n    expected = 'x'\n    other = 1\n"
        b"    result = a.shown(TABLE)\n    assert_equal(expected, result)\n\n\n"
        b"def test_warns():\n    a.shown(3, old=True)\n"
        + b"".join(b"\n\ndef test_attributes%d():\n    assert a.sum_of(%d) == 2\n" % (n, n) for n in range(12))
    ),
}


def _helped(messages: dict[str, str]) -> str:
    return instruction_of(
        "", "", failing=list(messages), messages=messages, tests=HELPED, fresh=list(messages), places=["a.py"],
        withheld=WITHHELD,
    )  # fmt: skip


def test_a_bare_assertion_of_a_helper_shows_what_it_compares() -> None:
    """Where a message says nothing, the code is shown, once, with the helper and the data that it uses."""
    text = _helped({"test/t.py::test_one": "AssertionError"})
    assert text.count("assert_equal(expected, result)\n") == 1
    assert "def assert_equal(expected, result):" in text
    assert "TABLE = [2]" in text
    assert "so that it passes, and keep what works working. The test itself is" in text


def test_what_is_compared_is_told_where_the_test_is_not_quoted() -> None:
    """Of tests beyond those that are quoted, the last call of a helper is told with its arguments."""
    assert compared(HELPED["test/t.py"].data.decode()) == (
        "expected = 'x'\nresult = a.shown(TABLE)\nassert_equal(expected, result)"
    )


def test_another_way_to_fail_comes_before_near_copies() -> None:
    """Of tests that fail alike few are told, and none that fails in its own way is left out for them."""
    alike = {f"test/t.py::test_attributes{n}": f"assert {n} == 2\n where {n} = sum_of({n})" for n in range(12)}
    text = _helped(alike | {"test/t.py::test_warns": "Failed: DID NOT WARN. No warnings of type DeprecationWarning"})
    assert "`test_warns`" in text
    assert text.count("- `test_attributes") <= 3
    assert "so that they pass" in text
