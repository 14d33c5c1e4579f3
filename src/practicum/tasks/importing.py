"""What all importers share: rows of a file, items that may be refused, task directories below a folder.

Owns: `Item`, `collect`, `json_rows`, `strict_json`, `save_tasks`.
Invariant: an item that cannot be a task is told by name with the reason, and keeps no other from being one.
Must not know: formats, boxes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from practicum.errors import PracticumError, SubmissionError, TaskError
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.tasks.harbor import save_task

Item = tuple[str, Callable[[], Task]]
"""What an item is called, and how its task is made; making it raises `TaskError` or `SubmissionError`."""

Licences = Callable[[Tree], "str | None"]
"""Gives the SPDX identifier of a tree's licence, or None where there is none that is known."""

Imported = tuple[list[Task], dict[str, str]]
"""Tasks, and by item why others are none."""

NO_LICENCE_FIX = "add a licence to the repository, or import it with --allow-unlicensed"
_MAX_LINE = 64 << 20


def collect(items: Iterable[Item]) -> Imported:
    """The tasks of `items` in their order. An id that was there before is refused."""
    tasks: dict[str, Task] = {}
    refused: dict[str, str] = {}
    for name, make in items:
        try:
            task = make()
            if task.id in tasks:
                raise TaskError(f"the id {task.id!r} was there before")
            tasks[task.id] = task
        except (TaskError, SubmissionError) as error:
            refused[_free(name, refused)] = reason(error)
    return list(tasks.values()), refused


def reason(error: PracticumError) -> str:
    """An error as the reason for a refusal, in one line."""
    return f"{error.message} (fix: {error.fix})" if error.fix else error.message


def json_rows(source: Path) -> Iterator[tuple[str, dict[str, Any] | TaskError]]:
    """Each line that is not blank, as the file and line to name it by and its object, or what is wrong with it.

    Raises `TaskError` where the file cannot be read, or holds no row.
    """
    empty = True
    try:
        with source.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    empty = False
                    where = f"{source.name} line {number}"
                    yield where, _row(line, where)
    except OSError as error:
        raise TaskError(f"{source} cannot be read: {error.strerror}") from None
    if empty:
        raise TaskError(f"{source} holds no row", fix="name a file with one JSON object on each line")


def strict_json(text: str) -> Any:
    """`text` as JSON proper: NaN, Infinity and numbers too large for any are none. Raises `ValueError`."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def failing(error: TaskError) -> Callable[[], Task]:
    """For an item that cannot even be read."""

    def fail() -> Task:
        raise error

    return fail


def row_items(source: Path, key: str, make: Callable[[dict[str, Any], str], Task]) -> Iterator[Item]:
    """Items of a file of rows: `make` gets each row and how to name it; an item is called by the row's `key`."""
    for where, row in json_rows(source):
        if isinstance(row, TaskError):
            yield where, failing(row)
        else:
            name = row.get(key)
            yield name if isinstance(name, str) and name else where, partial(make, row, where)


def text_field(row: Mapping[str, Any], name: str, where: str) -> str:
    """A field that must be text. Raises `TaskError` that names it."""
    value = row.get(name)
    if not isinstance(value, str):
        raise TaskError(f"{where}: the field {name!r} is {'missing' if value is None else 'not a string'}")
    return value


def save_tasks(tasks: Sequence[Task], out: Path | str, texts: Mapping[str, bytes] | None = None) -> Imported:
    """Write tasks as directories below `out`, and `texts` (licences) beside them; by id why some were not written."""
    target = Path(out)
    written: list[Task] = []
    refused: dict[str, str] = {}
    for task in tasks:
        try:
            save_task(task, target / task.id)
            written.append(task)
        except TaskError as error:
            refused[task.id] = reason(error)
    for name, text in (texts or {}).items() if written else ():
        (target / name).write_bytes(text)
    return written, refused


def _row(line: bytes, where: str) -> dict[str, Any] | TaskError:
    if len(line) > _MAX_LINE:
        return TaskError(f"{where} is longer than {_MAX_LINE} bytes")
    try:
        row = strict_json(line.decode())
    except UnicodeDecodeError:
        return TaskError(f"{where} is not UTF-8 text")
    except (ValueError, RecursionError) as error:
        return TaskError(f"{where} is not JSON: {error}")
    return row if isinstance(row, dict) else TaskError(f"{where} is not a JSON object")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _free(name: str, taken: Mapping[str, str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free
