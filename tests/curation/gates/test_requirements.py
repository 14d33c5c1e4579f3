"""What tests demand and nothing states: texts, warnings, exceptions, attributes taken away; and what is no demand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from practicum.curation.gates.requirements import unstated
from practicum.records.tree import File

if TYPE_CHECKING:
    from curation.gates.conftest import Shop

START = b'''\
import warnings


def total(items):
    """The sum. Raises LookupError where a price is unknown."""
    raise NotImplementedError


def old():
    warnings.warn("gone soon", DeprecationWarning)
'''
GOLD = START.replace(
    b"    raise NotImplementedError\n",
    b"""    if items is None:
        warnings.warn("give a list of items instead", DeprecationWarning)
        return 0
    if not __spec__:
        msg = f"cannot determine the {items!r} of every customer"
        raise ValueError(msg)
    if "?" in items:
        raise LookupError
    return sum(items) if items else "zero"
""",
)
HEAD = b"import unittest\nimport warnings\nimport pytest\nimport shop\nfrom shop import total\n\n"
MESSAGE = "cannot determine the .* of every customer"


def found(shop: Shop, body: bytes, say: str = "", *, visible: bytes | None = None) -> set[tuple[str, str]]:
    """Kinds and things unstated in a task whose tests are `body`."""
    task = shop(HEAD + body)
    files = {"shop.py": File(START)} | ({"tests/test_visible.py": File(visible)} if visible is not None else {})
    task = replace(task, files=files, instruction=f"{task.instruction} {say}")
    return {(each.kind, each.what) for each in unstated(task, {**files, "shop.py": File(GOLD)})}


@pytest.mark.parametrize(
    "check",
    [
        b"    with warnings.catch_warnings(record=True) as w:\n        total(None)\n"
        b"    assert w[0].category is DeprecationWarning\n",
        b"    with pytest.warns(DeprecationWarning):\n        total(None)\n",
        b"    with pytest.deprecated_call():\n        total(None)\n",
        b"    with unittest.TestCase().assertWarns(DeprecationWarning):\n        total(None)\n",
    ],
)
def test_a_warning_that_only_the_gold_knows_of(shop: Shop, check: bytes) -> None:
    """A demanded warning is unstated though code elsewhere warns so; a word of it in the instruction or in a test that
    is shown states it, and one that is only silenced is no demand."""
    body = b"def test_total():\n" + check
    assert found(shop, body) == {("warning", "DeprecationWarning")}
    assert not found(shop, body, "Without items it warns.")
    assert not found(shop, body, visible=b"def test_it():\n    with pytest.warns(DeprecationWarning): ...\n")
    silent = b"def test_total():\n    warnings.simplefilter('ignore', DeprecationWarning)\n    assert total([]) == 1\n"
    assert not found(shop, silent)


@pytest.mark.parametrize(
    "body",
    [
        b"class TestTotal:\n    message = 'cannot determine the .* of every customer'\n\n    def test_total(self):\n"
        b"        with pytest.raises(Exception, match=self.message):\n            total([])\n",
        b"def test_total():\n    try:\n        total([])\n    except Exception as error:\n"
        b"        assert 'of every customer who' in str(error) or 'cannot determine the' in str(error)\n",
    ],
)
def test_a_text_that_only_the_gold_has(shop: Shop, body: bytes) -> None:
    """A message is looked for wherever the test keeps it, and is stated once its words are."""
    task = shop(HEAD + body)
    name = "TestTotal::test_total" if b"class" in body else "test_total"
    check = replace(task.verification, fail_to_pass=(f"test_shop.py::{name}",), pass_to_pass=())
    start, gold = {"shop.py": File(START)}, {"shop.py": File(GOLD)}
    task = replace(task, files=start, verification=check)
    assert {each.kind for each in unstated(task, gold)} == {"message"}
    told = "The error reads: cannot determine the discount of every customer who came."
    assert not unstated(replace(task, instruction=f"{task.instruction} {told}"), gold)


def test_an_exception_that_only_the_gold_raises(shop: Shop) -> None:
    """One that the gold raises anew is unstated unless the instruction or notes on the function name it; what the
    language itself wants of mappings and the like goes without saying."""
    body = b"def test_total():\n    with pytest.raises(ValueError):\n        total([])\n"
    assert found(shop, body) == {("exception", "ValueError")}
    assert not found(shop, body, "It raises a ValueError for no items.")
    assert not found(shop, body.replace(b"ValueError", b"LookupError"))


def test_an_attribute_that_a_test_takes_away(shop: Shop) -> None:
    """A name given as a text to what replaces attributes counts like one that is written out."""
    body = b"def test_total(monkeypatch):\n    monkeypatch.delattr(shop, '__spec__')\n    assert total([1]) is None\n"
    assert found(shop, body) == {("name", "__spec__")}
    assert not found(shop, body, "Without a `__spec__` it returns nothing.")


def test_values_are_no_demand(shop: Shop) -> None:
    """A short text that is a result, and a sentence that the gold does not hold, ask for nothing by name."""
    body = (
        b"def test_total():\n    assert total([]) == 'zero'\n    assert total([1]) != 'no words of the gold at all'\n"
    )
    assert not found(shop, body)
