"""HumanEvalPack's Python repairs ("humanevalfix") as tasks.

Owns: `read_rows`.
Invariant: one row, one task, keyed by `task_id`; the frozen asserts are the row's own, and they reach the
submission only through `remote`, which carries plain values between two processes.
Must not know: how tasks are judged.
"""

from __future__ import annotations

import ast
import itertools
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from practicum.errors import TaskError
from practicum.records.task import Limits, Task, Verification
from practicum.records.tree import File
from practicum.tasks.importing import Imported, collect, row_items, text_field

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


def read_rows(source: Path | str) -> Imported:
    """One task for each line of a HumanEvalPack Python file, in its order, and by item why others are none.

    A row that is not JSON, lacks a field, does not parse as Python, or has a `task_id` that was seen before is refused,
    by its `task_id`, or else by its line. Raises `TaskError` where the file cannot be read or holds no row.
    """
    tasks, refused = collect(row_items(Path(source), "task_id", _task))
    if not tasks and not refused:
        raise TaskError(f"{source}: there is no row")
    return tasks, refused


def _task(row: dict[str, Any], where: str) -> Task:
    for field in _FIELDS:
        text_field(row, field, where)
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
            "row": json.dumps(row),
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
