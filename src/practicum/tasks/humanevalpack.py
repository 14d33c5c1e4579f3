"""HumanEvalPack's Python repairs ("humanevalfix") as tasks.

Owns: `import_rows`, `import_file`.
Invariant: one row, one task, keyed by `task_id`; the frozen asserts are the row's own, and they reach the
submission only through `remote`, which carries plain values between two processes.
Must not know: how tasks are judged.
"""

from __future__ import annotations

import ast
import itertools
import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from practicum.errors import TaskError
from practicum.records.task import Limits, Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import save_task

LICENSE = "MIT"
_MODULE = "solution"
_FROZEN = "frozen_asserts.py"
_VISIBLE = "example_test.py"
_FIELDS = (
    *("task_id", "declaration", "buggy_solution", "canonical_solution", "test", "example_test", "entry_point"),
    *("instruction", "failure_symptoms"),
)
_SOLVE = "#!/bin/sh\nset -e\ncp /solution/solution.py /app/solution.py\n"
_INSTRUCTION = """\
`{module}.py` holds the function `{entry}`, and it has a bug: {symptom}. Repair it.

What it is meant to do:

{instruction}

Change `{module}.py` only, and keep the function's name and signature. `python3 {visible}` runs the examples; the
repair is judged by further ones.
"""
_SYMPTOMS = {
    "incorrect output": "for some inputs it returns a wrong result",
    "infinite loop": "for some inputs it never returns",
    "runtime error": "for some inputs it raises an error",
}


def import_rows(source: Path | str) -> Iterator[Task]:
    """One task for each line of a HumanEvalPack Python file, in its order.

    Raises `TaskError` naming the file and line for a row that is not JSON, lacks a field, does not parse as
    Python, or has a `task_id` that was seen before.
    """
    seen: dict[str, int] = {}
    try:
        text = Path(source).read_bytes().decode()
    except OSError as error:
        raise TaskError(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TaskError(f"{source} is not UTF-8 text") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{source} line {number}"
        row = _row(line, where)
        if row["task_id"] in seen:
            raise TaskError(f"{where}: task_id {row['task_id']!r} was already on line {seen[row['task_id']]}")
        seen[row["task_id"]] = number
        yield _task(row, where)


def import_file(source: Path | str, out: Path | str) -> list[Task]:
    """Write every row of `source` as a task directory below `out`; returns the tasks.

    All rows are read before anything is written. Raises `TaskError` as `import_rows` and `save_task` do.
    """
    tasks = list(import_rows(source))
    if not tasks:
        raise TaskError(f"{source}: there is no row")
    for task in tasks:
        save_task(task, Path(out) / task.id)
    return tasks


def _row(line: str, where: str) -> dict[str, str]:
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise TaskError(f"{where} is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise TaskError(f"{where} is not a JSON object")
    for name in _FIELDS:
        if not isinstance(row.get(name), str):
            raise TaskError(f"{where}: the field {name!r} is missing or not a string")
    return row


def _task(row: dict[str, str], where: str) -> Task:
    buggy, gold = (row["declaration"] + row[part] for part in ("buggy_solution", "canonical_solution"))
    names = _functions(gold, where)
    if row["entry_point"] not in names:
        raise TaskError(f"{where}: entry_point {row['entry_point']!r} is not defined by declaration and solution")
    lines = row["example_test"].split("\n")  # one row repeats an indented solution before its asserts
    example = "\n".join(itertools.dropwhile(lambda line: not line.strip() or line[0].isspace(), lines)).strip()
    for code in (buggy, row["test"], example):
        _parse(code, where)
    visible = File(f"from {_MODULE} import {', '.join(names)}\n\n{example}\n".encode())
    name = row["task_id"].lower().replace("/", "-")
    return Task(
        id=f"humanevalpack-{name}",
        instruction=_INSTRUCTION.format(
            module=_MODULE,
            entry=row["entry_point"],
            symptom=_SYMPTOMS.get(row["failure_symptoms"], row["failure_symptoms"]),
            instruction=row["instruction"].strip(),
            visible=_VISIBLE,
        ),
        files={f"{_MODULE}.py": File(buggy.encode()), _VISIBLE: visible},
        verification=Verification(
            runner="command",
            tests={_FROZEN: File(_frozen(row["test"], names).encode()), _VISIBLE: visible},
            files=(_FROZEN,),
            visible=(_VISIBLE,),
            fail_to_pass=(_FROZEN,),
            timeout_s=5.0,
        ),
        editable=(f"{_MODULE}.py",),
        limits=replace(Limits(), memory_bytes=256 * 1024 * 1024),
        solution={"solve.sh": File(_SOLVE.encode(), 0o755), f"{_MODULE}.py": File(gold.encode())},
        split="test",
        provenance={
            "source": "HumanEvalPack (Python), bigcode-project/octopack",
            "license": LICENSE,
            "task_id": row["task_id"],
            "bug_type": row.get("bug_type", ""),
            "failure_symptoms": row["failure_symptoms"],
        },
    )


def _frozen(test: str, names: list[str]) -> str:
    """The asserts as a script of the `command` runner, which gives scripts `remote`."""
    bindings = "".join(f'{name} = remote("{_MODULE}:{name}")\n' for name in names)
    return f"{bindings}\n{test.strip()}\n"


def _functions(code: str, where: str) -> list[str]:
    return [node.name for node in _parse(code, where).body if isinstance(node, ast.FunctionDef)]


def _parse(code: str, where: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the rows' strings are theirs
            return ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{where}: its code does not parse as Python: {error}") from None
