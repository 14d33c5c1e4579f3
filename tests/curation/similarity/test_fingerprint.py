"""The fingerprint that does not see names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.similarity.fingerprint import fingerprint, numbered
from practicum.curation.similarity.tokens import code_tokens

CODE = '''
class Basket:
    """Holds items."""

    def __init__(self, rows):
        self.rows = rows

    def total(self, rate=1):
        found = 0
        for row in self.rows:
            if row.price > rate:
                found += row.price * len(row.parts)
        return max(found, self.total(rate - 1) if rate else 0)
'''
NAMES = ("Basket", "rows", "total", "rate", "found", "row")


@given(st.permutations(["Cart", "lines", "sum_up", "share", "acc", "entry"]))
def test_renaming_does_not_change_it(others: list[str]) -> None:
    """A copy under any other names, also of methods and attributes that it defines, has the same fingerprint."""
    renamed = CODE
    for name, other in zip(NAMES, others, strict=True):
        renamed = re.sub(rf"\b{name}\b", other, renamed)
    assert fingerprint(renamed) == fingerprint(CODE)


def test_comments_docstrings_annotations_and_place_do_not_change_it() -> None:
    """What a reader may add without changing what happens does not change the fingerprint."""
    dressed = CODE.replace('"""Holds items."""', '"""Another text."""  # why').replace("rate=1", "rate: int = 1")
    indented = "\n".join(f"    {line}" for line in dressed.splitlines())
    assert fingerprint(indented) == fingerprint(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("row.price > rate", "row.price >= rate"),
        ("rate - 1", "rate - 2"),
        ("max(", "min("),
        ("row.parts", "row.names"),
        ("found += row", "found -= row"),
        ("len(row.parts)", "len(rate.parts)"),
    ],
)
def test_other_behaviour_changes_it(old: str, new: str) -> None:
    """Another operator, constant, built-in, foreign attribute or variable in a place is another program."""
    assert old in CODE
    assert fingerprint(CODE.replace(old, new)) != fingerprint(CODE)


def test_what_is_not_python_is_compared_by_tokens() -> None:
    """Code in another language has a fingerprint that renaming does not change, and other code does."""
    one = "function add(a, b) { return a + b; }"
    assert fingerprint(one) == fingerprint("function plus(x, y) { return x + y; }")
    assert fingerprint(one) != fingerprint("function add(a, b) { return b + a; }")
    assert fingerprint("  \n") == (0, 0)


def test_numbers_follow_first_appearance() -> None:
    """Names of loose lines are numbered in their order."""
    assert numbered(code_tokens("a = b + a")) == ["#0", "=", "#1", "+", "#0"]
