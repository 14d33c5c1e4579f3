"""Tasks as rows of SWE-bench.

Owns: `export_rows`.
Invariant: a row that was imported is given back field for field; a task that was mined from a commit is said by that
commit, which is compared with the task file by file. What a row cannot say is refused by name.
Must not know: boxes, how tasks are mined.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from practicum.errors import PracticumError, TaskError
from practicum.records.patches import apply_patch
from practicum.records.task import Task
from practicum.records.tree import File, Tree, matches
from practicum.tasks.checkouts import Checkouts
from practicum.tasks.frozen import is_test, row_id
from practicum.tasks.importing import reason
from practicum.tasks.swebench import row_trees
from practicum.tasks.swebench_rows import with_tests

_ORIGIN = ("repository", "parent_commit", "commit")
_GOLDS = ("files/", "gold/")  # where a solution keeps the files that it copies


def export_rows(
    tasks: Sequence[Task], checkouts: Checkouts | None = None
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A row for each task that one can say in full, in order; and by id why there is none for the others.

    `checkouts` hold the repositories of tasks that were mined; without them only imported rows are given back.
    """
    rows: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    for task in tasks:
        try:
            _check(task)
            rows.append(_imported(task) if "row" in task.provenance else _mined(task, checkouts))
        except PracticumError as error:
            refused[task.id] = reason(error)
    return rows, refused


def _check(task: Task) -> None:
    check = task.verification
    if check.runner != "pytest":
        raise TaskError(f"its tests are run by {check.runner!r}, and ids in a row are pytest's")
    if check.build is not None:
        raise TaskError(f"a row cannot say that {check.build!r} is run before the tests")


def _ids(task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
    check = task.verification
    return tuple(map(row_id, check.fail_to_pass)), tuple(map(row_id, check.pass_to_pass))


def _imported(task: Task) -> dict[str, Any]:
    told = task.provenance["row"]
    if not isinstance(told, str) or task.provenance.get("format") not in ("swebench", "swesmith"):
        raise TaskError("it was imported from rows of another format")
    if task.provenance.get("row_trees") != row_trees(task):
        raise TaskError("its files, tests or gold were changed since it was imported, and a row cannot say to what")
    row: dict[str, Any] = json.loads(told)
    return with_tests(row | {"instance_id": task.id, "problem_statement": task.instruction}, *_ids(task))


def _mined(task: Task, checkouts: Checkouts | None) -> dict[str, Any]:
    """The row of the commit that the task states it was mined from."""
    name, parent, commit = (task.provenance.get(key) for key in _ORIGIN)
    if not isinstance(name, str) or not isinstance(parent, str) or not isinstance(commit, str):
        raise TaskError("a row names a commit of a repository, and this task states none that it was made from")
    if checkouts is None:
        raise TaskError(f"its tests before the change are in {name} only", fix="say with --repos where it is cloned")
    repository = checkouts.find(name)
    base = checkouts.base(repository, parent)
    changed = [change.path for change in next(iter(repository.commits(commit, limit=1))).changes]
    gold = [path for path in changed if matches(path, task.editable) and not is_test(path)]
    tests = [path for path in changed if path in _frozen(task) or is_test(path)]
    patch, test_patch = (repository.diff(parent, commit, paths=paths) if paths else "" for paths in (gold, tests))
    _agree(apply_patch(base.files, patch), _gold(task), "gold")
    _agree(apply_patch(base.files, test_patch), _frozen(task), "frozen tests")
    _agree(
        base.files, {path: file for path, file in task.files.items() if path not in task.verification.visible}, "files"
    )
    fail, keep = _ids(task)
    return {
        "instance_id": task.id,
        "repo": name,
        "base_commit": base.commit,
        "version": str(task.provenance.get("project_version", "")),
        "problem_statement": task.instruction,
        "hints_text": "",
        "created_at": str(task.provenance.get("date", "")),
        "environment_setup_commit": base.commit,
        "patch": patch,
        "test_patch": test_patch,
        "FAIL_TO_PASS": list(fail),
        "PASS_TO_PASS": list(keep),
    }


def _frozen(task: Task) -> dict[str, File]:
    return {row_id(path): file for path, file in task.verification.tests.items()}


def _gold(task: Task) -> dict[str, File]:
    return {
        path.removeprefix(prefix): file
        for path, file in task.solution.items()
        for prefix in _GOLDS
        if path.startswith(prefix)
    }


def _agree(found: Tree, wanted: Tree, what: str) -> None:
    """Raises `TaskError` unless the commit holds what the task does."""
    for path, file in wanted.items():
        if path not in found or found[path].data != file.data:
            raise TaskError(f"its {what} are not those of the commit it states: {path!r} differs")
