"""What a generated task says and shows: sentences that stand for themselves, and an example that shows the rules."""

from __future__ import annotations

import json
import re

import pytest

from practicum.curation.similarity.origin import licence_of
from practicum.curation.synthesis.generators.brief import Family
from practicum.curation.synthesis.generators.making import FAMILIES, Kind, make_task
from practicum.records.task import Task

EACH = [(kind, family) for kind, families in FAMILIES.items() for family in families]
BY_NAME = {family.name: (kind, family) for kind, family in EACH}
# Words that lean on a sentence before, which may not be there.
_LEANING = re.compile(r"as well\.| too\.|is then|these three|named above|as above|these numbers|rows left| again with")


def made(name: str, seed: int, number: int) -> Task:
    kind, family = BY_NAME[name]
    return make_task(family, kind, seed, number)


@pytest.mark.parametrize(("kind", "family"), EACH, ids=[family.name for _, family in EACH])
def test_sentences_lean_on_none_that_may_be_missing(kind: Kind, family: Family) -> None:
    """Whatever rules are taken, no sentence points to another one, and the licence is stated."""
    for number in range(3):
        task = make_task(family, kind, 3, number)
        assert _LEANING.search(task.instruction) is None, task.instruction
        assert licence_of(task) == "Apache-2.0"


def test_only_what_applies_is_explained() -> None:
    """Months by name are explained where a date may hold one, and ints only where a column has them."""
    for number in range(5):
        task = made("table", 0, number)
        said = task.instruction
        assert ("Jan, Feb" in said) == ("DD Mon YYYY" in said)
        assert (" or `None`" in said) == bool({"amounts", "weights"} & set(task.provenance["options"])) or (
            "becomes an int" in said
        )


@pytest.mark.parametrize("number", range(5))
def test_the_example_has_accepted_reports_and_refused_ones(number: int) -> None:
    """An empty table is no answer to it: two reports at least are collected, and one is passed over."""
    task = made("collect", 0, number)
    before = {path: file for path, file in task.files.items() if path.startswith("example/before/")}
    after = {path.removeprefix("example/after/"): file.data.decode() for path, file in task.files.items()}
    target = re.findall(r"Write `([^`]+)` into the folder", task.instruction)[0]
    rows = after[target].splitlines()
    extra = int("names the columns" in task.instruction) + int("total" in task.provenance["options"])
    assert len(rows) - extra >= (1 if "latest" in task.provenance["options"] else 2)
    reports = [each for file in before.values() for each in file.data.decode().split("\n---\n")]
    assert len(reports) > len(rows) - extra
    tabbed = "a tab parts" in task.instruction.lower()
    assert target.endswith(".tsv" if tabbed else ".csv")


def test_examples_say_something() -> None:
    """A function that returns nothing at all does not pass the example of any family of functions."""
    for kind, family in EACH:
        for number in range(2) if family.form == "plain" else ():
            task = make_task(family, kind, 1, number)
            assert len(json.loads(task.files["example/expected.json"].data)) >= 1, task.id


def test_files_are_named_by_what_they_are() -> None:
    """A log is no table."""
    assert "example/access.log" in made("slowest", 0, 0).files
    assert "example/table.csv" in made("table", 0, 0).files
