"""Where a task comes from, whoever wrote it down."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from practicum.cli.template import template_task
from practicum.curation.similarity.origin import (
    bug_kind_of,
    date_of,
    licence_of,
    parent_of,
    repository_of,
    source_of,
)
from practicum.records.task import Task


def task(**provenance: Any) -> Task:
    return replace(template_task("t"), provenance=provenance)


@pytest.mark.parametrize(
    "provenance",
    [
        {"repository": "https://github.com/Owner/Name.git"},
        {"repo": "owner/name"},
        {"origin": {"repository": "git@github.com:owner/name"}},
        {"project": "OWNER/NAME/"},
    ],
)
def test_a_repository_has_one_spelling(provenance: dict[str, Any]) -> None:
    """The same repository is the same name, however it was written."""
    assert repository_of(task(**provenance)) == "owner/name"


def test_what_is_stated_is_read_and_nothing_is_guessed() -> None:
    """Source, parent, licence and kind of bug are read where they stand; an `origin` of kind git is no kind of bug."""
    made = task(generator="synth", parent="abc", license="MIT", kind="loops", origin={"kind": "git"})
    assert (source_of(made), parent_of(made), licence_of(made), bug_kind_of(made)) == ("synth", "abc", "MIT", "loops")
    bare = task(origin={"kind": "git"}, date=7)
    assert (source_of(bare), parent_of(bare), licence_of(bare), bug_kind_of(bare)) == ("", "", "", "")
    assert (repository_of(bare), date_of(bare)) == ("", None)


@pytest.mark.parametrize(
    "date",
    ["2024-05-01T12:00:00+02:00", "2024-05-01 10:00:00", dt.datetime(2024, 5, 1, 10), "2024-05-01T10:00:00Z"],
)
def test_dates_are_read_as_utc(date: object) -> None:
    """Text and TOML dates, with a zone or without, are one moment."""
    assert date_of(task(created_at=date)) == dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)


def test_days_and_nonsense() -> None:
    """A day is its start; what is no date is none, and the next name is looked at."""
    assert date_of(task(date=dt.date(2024, 5, 1))) == dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    assert date_of(task(date="soon", created_at="2024-05-01")) == dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    assert date_of(task(date="soon")) is None
