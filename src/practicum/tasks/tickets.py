"""Plain tickets as tasks: a table with title, body, repository, commit and how to check.

Owns: `read_tickets`.
Invariant: a task starts from the tree of the ticket's commit; where a fix is given its tests are frozen and the rest of
it is the gold; without one there is no gold, and nothing shows that the ticket can be done. Nothing is run here.
Must not know: boxes, verdicts.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from practicum.errors import SubmissionError, TaskError
from practicum.records.patches import apply_patch
from practicum.records.task import MIB, Limits, Task, Verification
from practicum.records.tree import Change, File, Tree, apply_changes, diff_trees
from practicum.tasks.checkouts import Base, Checkouts
from practicum.tasks.frozen import PLACE, expand, freeze, is_test
from practicum.tasks.importing import Imported, Item, collect, failing, json_rows
from practicum.tasks.manifest import HARBOR_CHECK
from practicum.tasks.repositories import MAX_FILE_BYTES, Repository
from practicum.tasks.solutions import solution_of
from practicum.tasks.swebench import disk_for

_REQUIRED = ("title", "body", "repository", "commit", "check")
_OPTIONAL = ("id", "fix", "licence", "license")
_CHECK = re.compile(r"(pytest|command):\s*(\S.*)", re.DOTALL)
_LIMITS = Limits(memory_bytes=1024 * MIB, pids=128, command_s=60.0, episode_s=900.0)
_TIMEOUT_S = 120.0
_MAX_CELL = 1 << 20
_WORKSPACE = "/app"
_SCRIPT = """\
#!/bin/sh
cp -R /tests/{place}. {workspace}/ 2>/dev/null
cd {workspace} || exit 1
[ -d src ] && PYTHONPATH={workspace}/src && export PYTHONPATH
if sh -c {command}; then reward=1; else reward=0; fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
"""


@dataclass(frozen=True, slots=True)
class _Ticket:
    """One row, read. `kind` and `how` are the two sides of the column `check`."""

    id: str
    title: str
    body: str
    repository: str
    commit: str
    kind: str
    how: str
    fix: str
    licence: str
    row: Mapping[str, Any]


def read_tickets(source: Path | str, checkouts: Checkouts, *, layer: str = "python") -> Imported:
    """The tasks of a CSV or JSON Lines file, and by item why others are none.

    Paths in it are relative to its folder. `checkouts` open the repositories; their folder is where relative names are
    looked up. Raises `TaskError` for a file that cannot be read or lacks a column.
    """
    root = Path(source)
    rows = _csv_rows(root) if root.suffix.lower() == ".csv" else json_rows(root)
    return collect(_items(rows, root.parent, checkouts, layer))


def _items(
    rows: Iterator[tuple[str, dict[str, Any] | TaskError]], folder: Path, checkouts: Checkouts, layer: str
) -> Iterator[Item]:
    for where, row in rows:
        if isinstance(row, TaskError):
            yield where, failing(row)
        else:
            name = row.get("id") or row.get("title")
            yield (
                name if isinstance(name, str) and name else where,
                partial(_of_row, row, where, folder, checkouts, layer),
            )


def _csv_rows(source: Path) -> Iterator[tuple[str, dict[str, Any] | TaskError]]:
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TaskError(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TaskError(f"{source} is not UTF-8 text") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = reader.fieldnames or []
        lacking = [name for name in _REQUIRED if name not in columns]
        if lacking:
            raise TaskError(
                f"{source.name} lacks the columns {', '.join(lacking)}", fix=f"needed: {', '.join(_REQUIRED)}"
            )
        for row in reader:
            where = f"{source.name} line {reader.line_num}"
            odd = None in row or any(value is None for value in row.values())
            yield where, TaskError(f"{where} has not as many cells as there are columns") if odd else dict(row)
    except csv.Error as error:
        raise TaskError(f"{source.name} line {reader.line_num} is not CSV: {error}") from None


def _of_row(row: dict[str, Any], where: str, folder: Path, checkouts: Checkouts, layer: str) -> Task:
    ticket = _read(row, where)
    path = (
        (folder / ticket.repository).resolve() if not Path(ticket.repository).is_absolute() else Path(ticket.repository)
    )
    repository = checkouts.at(path)
    # What a ticket says of the licence stands for a repository that says nothing.
    lenient = replace(checkouts, allow_unlicensed=True) if ticket.licence else checkouts
    base = lenient.base(repository, ticket.commit)
    changes = _fix(ticket, folder, repository, base)
    after = apply_changes(base.files, [change for change in changes if is_test(change.path)])
    gold = tuple(change for change in changes if not is_test(change.path))
    if changes and not gold:
        raise TaskError(f"{where}: the fix changes tests only, so there is nothing to do")
    task = Task(
        id=ticket.id,
        instruction=f"# {ticket.title.strip()}\n\n{ticket.body.strip()}\n",
        files=dict(base.files),
        verification=_verification(ticket, after),
        layer=layer,
        workspace=_WORKSPACE,
        limits=replace(_LIMITS, disk_bytes=disk_for(base.files)),
        solution=solution_of(gold, _WORKSPACE) if gold else {},
    )
    return replace(
        task,
        provenance={
            "source": "tickets",
            "format": "tickets",
            "repository": ticket.repository,
            "commit": base.commit,
            "license": ticket.licence or base.licence,
            **({"left_out": dict(base.left_out)} if base.left_out else {}),
            **({} if gold else {"no_solution": "the ticket came without a fix"}),
            "row": json.dumps(ticket.row),
        },
    )


def _verification(ticket: _Ticket, after: Tree) -> Verification:
    if ticket.kind == "command":
        kept = {PLACE + path: file for path, file in after.items() if is_test(path)}
        script = _SCRIPT.format(place=PLACE, workspace=_WORKSPACE, command=shlex.quote(ticket.how))
        tests = kept | {"test.sh": File(script.encode(), 0o755)}
        return Verification("harbor", tests, fail_to_pass=(HARBOR_CHECK,), timeout_s=_TIMEOUT_S)
    try:
        names = shlex.split(ticket.how)
    except ValueError as error:
        raise TaskError(f"the check {ticket.how[:60]!r} has a quote without end: {error}") from None
    frozen = freeze(after, expand(after, names))
    return Verification("pytest", frozen.tests, files=frozen.files, fail_to_pass=frozen.ids, timeout_s=_TIMEOUT_S)


def _fix(ticket: _Ticket, folder: Path, repository: Repository, base: Base) -> tuple[Change, ...]:
    """What the fix changes: that of a commit, or of a file that holds a patch; nothing where there is none."""
    if not ticket.fix:
        return ()
    patch = folder / ticket.fix
    if patch.suffix in (".patch", ".diff"):
        try:
            if patch.stat().st_size > MAX_FILE_BYTES:
                raise TaskError(f"the fix {ticket.fix} is larger than {MAX_FILE_BYTES} bytes")
            return diff_trees(base.files, apply_patch(base.files, patch.read_bytes().decode()))
        except OSError as error:
            raise TaskError(f"the fix {ticket.fix} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TaskError(f"the fix {ticket.fix} is not UTF-8 text") from None
        except SubmissionError as error:
            raise TaskError(f"the fix {ticket.fix} does not apply to {base.commit[:12]}: {error.message}") from None
    fixed, _ = repository.tree(ticket.fix)
    changes = diff_trees(base.files, fixed)
    if not changes:
        raise TaskError(f"the fix {ticket.fix} changes nothing since {base.commit[:12]}")
    return changes


def _read(row: Mapping[str, Any], where: str) -> _Ticket:
    lacking = [name for name in _REQUIRED if not str(row.get(name) or "").strip()]
    if lacking:
        raise TaskError(f"{where}: {', '.join(lacking)} is missing or empty")
    texts: dict[str, str] = {}
    for name in (*_REQUIRED, *_OPTIONAL):
        value = row.get(name)
        if value is not None and not isinstance(value, str):
            raise TaskError(f"{where}: the field {name!r} is not a string")
        texts[name] = (value or "").strip()
    check = _CHECK.fullmatch(texts["check"])
    if check is None:
        raise TaskError(
            f"{where}: the check {texts['check'][:60]!r} cannot be honoured",
            fix="write `pytest: tests/test_a.py::test_b …`, or `command: …` for a command of the shell",
        )
    return _Ticket(
        id=texts["id"] or _id(texts),
        title=texts["title"],
        body=texts["body"],
        repository=texts["repository"],
        commit=texts["commit"],
        kind=check[1],
        how=check[2].strip(),
        fix=texts["fix"],
        licence=texts["licence"] or texts["license"],
        row=row,
    )


def _id(texts: Mapping[str, str]) -> str:
    """A name from the title, with what tells two tickets of one title apart."""
    words = re.sub(r"[^a-z0-9]+", "-", texts["title"].lower()).strip("-")[:40].strip("-") or "ticket"
    mark = hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()[:8]
    return f"{words}-{mark}"
