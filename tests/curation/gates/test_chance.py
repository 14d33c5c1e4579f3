"""Chance is looked for in the code that has a part in the outcome, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from practicum.curation.gates.chance import words_of_chance
from practicum.curation.gates.testcode import test_codes as codes_of
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission

if TYPE_CHECKING:
    from curation.gates.conftest import Shop

START = (
    b"import random\nimport time\n\n\ndef total(items):\n    return 0\n\n\ndef other():\n    return random.random()\n"
)
TESTS = b"""\
import random
import time as clock
from random import choice
import pytest
from shop import total


@pytest.fixture
def items():
    return [1, 2]


class Base:
    def test_inherited(self):
        assert total([]) == 0


class TestChild(Base):
    pass


def test_total(items):
    assert total(items) == 3


def test_not_run():
    assert random.random() < 2
"""


def words(shop: Shop, tests: bytes, gold: bytes) -> set[str]:
    task = shop(tests)
    names = ("test_shop.py::test_total", "test_shop.py::TestChild::test_inherited")
    check = replace(task.verification, fail_to_pass=names, pass_to_pass=())
    task = replace(task, files={"shop.py": File(START)}, verification=check)
    assert {code.id for code in codes_of(task, names)} == set(names)
    return words_of_chance(task, Submission((Change("shop.py", "edit", File(gold)),)))


STEADY = START.replace(b"return 0", b"return sum(items)")


def test_code_beside_says_nothing(shop: Shop) -> None:
    """Tests that are not run, functions that the gold leaves alone and imports by themselves do not count."""
    assert words(shop, TESTS, STEADY) == set()


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (b"return [1, 2]", b"return [choice([1, 2])]", "random"),
        (b"return [1, 2]", b"return [clock.time()]", "time("),
        (b"total([]) == 0", b"total([clock.sleep(1)]) == 0", "sleep"),
        (b"@pytest.fixture\n", b"@pytest.fixture(autouse=True)\ndef a(): random.seed()\n\n@pytest.fixture\n", "random"),
    ],
)
def test_tests_fixtures_and_bases_count(shop: Shop, old: bytes, new: bytes, word: str) -> None:
    """What a test that is run, its fixture, one that is always in use or an inherited test speaks of is found."""
    assert word in words(shop, TESTS.replace(old, new), STEADY)


def test_what_the_gold_changes_counts_with_what_it_calls(shop: Shop) -> None:
    """A changed function that reaches chance by another of its file is found."""
    assert "random" in words(shop, TESTS, START.replace(b"return 0", b"return other()"))
