"""SWE-bench's instances as rows: of a JSON Lines file, or of the folders of a task repository.

Owns: `Instance`, `instance_of`, `read_task_folder`, `task_folders`.
Invariant: a row keeps every field as it was, whatever is made of it; what is missing is told by its name.
Must not know: repositories, how tasks are judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from practicum.errors import TaskError
from practicum.tasks.importing import strict_json, text_field

Kind = Literal["swebench", "swesmith"]
FOLDER_FILES = {  # column → file of a task folder; `tests.json` holds two more
    "problem_statement": "problem_statement.md",
    "hints_text": "hints.md",
    "patch": "gold.patch",
    "test_patch": "test.patch",
    "eval_script": "eval.sh",
}
_REQUIRED_KEYS = ("instance_id", "repo", "version", "base_commit", "split", "image", "log_parser", "eval_type")
_TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
_SMITH_NAME = re.compile(r"(?:.*/)?(?P<repo>[A-Za-z0-9-]+__[A-Za-z0-9._-]+?)\.(?P<commit>[0-9a-f]{7,40})(?=\.|$)")
_PARSER = re.compile(r"(?:parse_log_)?pytest(?:_\w+)?")


@dataclass(frozen=True, slots=True)
class Instance:
    """One row, read. In `swesmith` rows `patch` makes the bug; in `swebench` rows it is the gold."""

    kind: Kind
    id: str
    repo: str
    commit: str
    statement: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    row: Mapping[str, Any]


def instance_of(row: Mapping[str, Any], where: str, kind: Kind | None = None) -> Instance:
    """A row as an instance; without `kind` one with `image_name` and no `base_commit` is SWE-smith's.

    Raises `TaskError` for a field that is missing or of another type.
    """
    if kind is None:
        kind = "swesmith" if "image_name" in row and not row.get("base_commit") else "swebench"
    common = ("instance_id", "repo", "problem_statement", "patch")
    needed = common if kind == "swesmith" else (*common, "base_commit", "test_patch")
    missing = [name for name in (*needed, *_TESTS) if row.get(name) is None]
    if missing:
        raise TaskError(f"{where}: the fields {', '.join(missing)} are missing")
    texts = {name: text_field(row, name, where) for name in needed}
    if not texts["problem_statement"].strip():
        raise TaskError(f"{where}: problem_statement is empty, so nobody could know what to do")
    if not texts["patch"].strip():
        raise TaskError(f"{where}: patch is empty")
    _check_date(row.get("created_at"), where)
    repo, commit = texts["repo"], texts.get("base_commit", "")
    if kind == "swesmith":
        repo, commit = _smith_origin(row, where)
    fail, keep = (_tests(row, name, where) for name in _TESTS)
    if not fail:
        raise TaskError(f"{where}: FAIL_TO_PASS names no test, so doing nothing would pass")
    return Instance(
        kind=kind,
        id=texts["instance_id"],
        repo=repo,
        commit=commit,
        statement=texts["problem_statement"],
        patch=texts["patch"],
        test_patch=texts.get("test_patch", ""),
        fail_to_pass=fail,
        pass_to_pass=keep,
        row=row,
    )


def with_tests(row: Mapping[str, Any], fail: tuple[str, ...], keep: tuple[str, ...]) -> dict[str, Any]:
    """`row` with these ids, in the notation it has; a list that says the same already stays as it is."""
    changed = dict(row)
    for name, ids in zip(_TESTS, (fail, keep), strict=True):
        if set(_tests(row, name, "row")) != set(ids):
            changed[name] = json.dumps(list(ids)) if isinstance(row[name], str) else list(ids)
    return changed


def task_folders(source: Path) -> list[Path]:
    """The task folders at `source`: itself, those in it, or those in its `tasks/`; none where it holds none."""
    if (source / "task.yaml").exists():
        return [source]
    inner = source / "tasks" if (source / "tasks").is_dir() else source
    return sorted(path.parent for path in inner.glob("*/task.yaml")) if inner.is_dir() else []


def read_task_folder(folder: Path) -> dict[str, Any]:
    """The row in a task folder. Raises `TaskError` for a missing file or key, and for tests that pytest cannot run."""
    import yaml

    text = _text(folder / "task.yaml")
    try:
        # A few lines of them can stand for more than fits into memory.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise TaskError("task.yaml has aliases (*name), which are not read", fix="write out what they stand for")
        row: Any = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise TaskError(f"task.yaml is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(row, dict) or not all(isinstance(key, str) for key in row):
        raise TaskError("task.yaml is not a table")
    lacking = [key for key in _REQUIRED_KEYS if row.get(key) in (None, "")]
    if lacking:
        raise TaskError(f"task.yaml: the keys {', '.join(lacking)} are missing")
    try:
        tests = strict_json(_text(folder / "tests.json"))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"tests.json is not JSON: {error}") from None
    if not isinstance(tests, dict):
        raise TaskError("tests.json is not a JSON object")
    row |= tests
    for column, name in FOLDER_FILES.items():
        if (folder / name).exists() or column != "hints_text":
            row[column] = _text(folder / name)
    if row["eval_type"] != "pass_and_fail":
        raise TaskError(f"eval_type {row['eval_type']!r} cannot be honoured here", fix="pass_and_fail can")
    if not isinstance(row["log_parser"], str) or not _PARSER.fullmatch(row["log_parser"]):
        raise TaskError(f"log_parser {row['log_parser']!r} is not pytest's, so its tests cannot be run here")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(row, default=str, allow_nan=False))  # YAML has dates
    except (ValueError, TypeError) as error:
        raise TaskError(f"task.yaml holds what is not JSON: {error}") from None
    return plain


def _tests(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A list of ids, given as a list or as JSON text of one."""
    value = row[name]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise TaskError(f"{where}: {name} is neither a list nor JSON text of one") from None
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise TaskError(f"{where}: {name} is not a list of test ids")
    return tuple(dict.fromkeys(value))


def _check_date(value: object, where: str) -> None:
    """What says when the work was made decides on splits and contamination, so that it must be a date."""
    if value is None or value == "":
        return
    try:
        if not isinstance(value, str):
            raise ValueError(value)
        datetime.fromisoformat(value)
    except ValueError:
        raise TaskError(
            f"{where}: created_at {value!r} is no date", fix="write it as 2024-03-01T10:00:00Z, or leave it out"
        ) from None


def _smith_origin(row: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Repository and commit of a SWE-smith row, whose names end with `OWNER__NAME.COMMIT`."""
    for name in (row["repo"], row["instance_id"]):
        found = _SMITH_NAME.match(name) if isinstance(name, str) else None
        if found is not None:
            commit = row.get("base_commit")
            return found["repo"].replace("__", "/", 1), commit if isinstance(commit, str) and commit else found[
                "commit"
            ]
    raise TaskError(f"{where}: neither repo nor instance_id names a commit (OWNER__NAME.COMMIT)")


def _text(path: Path) -> str:
    if path.is_symlink():
        raise TaskError(f"{path.name} is a symbolic link", fix="put the file itself there")
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise TaskError(f"{path.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TaskError(f"{path.name} is not UTF-8 text") from None
