"""Where a task comes from, read from its provenance: repository, parent, source, date, kind of bug, licence.

Owns: the names under which importers and generators may state these.
Invariant: what a task does not state is empty, never guessed. Pure.
Must not know: who wrote the provenance.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

from practicum.records.task import Task

_REPOSITORY = ("repository", "repo", "project")
_PARENT = ("parent", "parent_digest")
_SOURCE = ("generator", "source", "importer", "format")
_DATE = ("date", "created_at", "committed_at", "author_date", "commit_date")
_BUG = ("bug_kind", "bug_type", "kind", "strategy")
_LICENCE = ("licence", "license")
_INNER = ("origin", "practicum", "repo2env")  # tables in which the same may stand


def repository_of(task: Task) -> str:
    """The repository, in one spelling: without scheme, host's `.git` and case."""
    name = _first(task.provenance, _REPOSITORY).casefold().rstrip("/").removesuffix(".git")
    return name.split("://")[-1].removeprefix("github.com/").removeprefix("git@github.com:")


def parent_of(task: Task) -> str:
    """The task or source that this one was derived from."""
    return _first(task.provenance, _PARENT)


def source_of(task: Task) -> str:
    """The generator or collection; tasks of one source may share wording that says nothing about the work."""
    return _first(task.provenance, _SOURCE)


def bug_kind_of(task: Task) -> str:
    """The kind of bug, as the source calls it."""
    return _first(task.provenance, _BUG, inner=False)  # within `origin`, a `kind` says what the source is


def licence_of(task: Task) -> str:
    """The licence."""
    return _first(task.provenance, _LICENCE)


def date_of(task: Task) -> dt.datetime | None:
    """When the work was made, in UTC; None where it is not stated as a date."""
    for table in _tables(task.provenance):
        for name in _DATE:
            if (found := _as_date(table.get(name))) is not None:
                return found
    return None


def _as_date(value: Any) -> dt.datetime | None:
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)


def _first(provenance: Mapping[str, Any], names: tuple[str, ...], *, inner: bool = True) -> str:
    for table in _tables(provenance) if inner else (provenance,):
        for name in names:
            if isinstance(table.get(name), str) and table[name].strip():
                return str(table[name]).strip()
    return ""


def _tables(provenance: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield provenance
    for name in _INNER:
        if isinstance(provenance.get(name), Mapping):
            yield provenance[name]
