"""QuixBugs' Python programs as tasks, from the original repository or from rows of octopack.

Owns: `read_programs`, `save_programs`.
Invariant: one program, one task, by its name; what its tests compare as data is compared by the runner `plain`, and
only programs that are given objects share a process with their tests. A program that cannot be a task is refused by
name, and the others are not kept from being one. No program is run here, so every test is expected to fail before.
Must not know: how tasks are judged.
"""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from practicum.errors import TaskError
from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.tree import File
from practicum.tasks.importing import save_tasks
from practicum.tasks.quixbugs_tests import NODE, Case, Suite, as_suite, cases_of_asserts, cases_of_lines

BUGGY, CORRECT, CASES, TESTS = "python_programs", "correct_python_programs", "json_testcases", "python_testcases"
_MEMORY = 256 * 1024 * 1024
_TIMEOUT_S = 10.0
_PATIENCE_S = {  # a tenth of it for each case, several times what the reference takes for the slowest one
    "levenshtein": 300.0,  # 1.5 s
    "longest_common_subsequence": 30.0,  # 0.2 s
}
_LISTED = {"flatten", "kheapsort"}  # they yield; their tests compare the list of it
_SLOW: dict[str, tuple[Callable[[list[Any]], bool], str]] = {  # cases that no time limit of use would bear
    "levenshtein": (lambda args: args[:1] == ["amanaplanacanalpanama"], "the reference takes 5 to over 20 s for it"),
    "knapsack": (lambda args: args[:1] == [6404180], "the reference takes about 4 minutes for it"),
}
_INSTRUCTION = """\
`{name}.py` holds the function `{name}`, and it has a bug, in one line. Repair it.

What it is meant to do:

{about}

Change `{name}.py` only, and keep the function's name and signature.{note}
"""
_NOTES = {
    "listed": " What it yields is looked at as a list.",
    "node": " The nodes that it is given are those of `node.py`.",
}


@dataclass(frozen=True, slots=True)
class _Program:
    """One program, from whichever layout: what it is given and tested by is in `cases`, or else in `suite`."""

    name: str
    buggy: str
    gold: str
    about: str
    source: str
    cases: tuple[Case, ...] = ()
    suite: Suite | None = None
    row: str = ""


def read_programs(source: Path | str) -> tuple[list[Task], dict[str, str]]:
    """The tasks of a QuixBugs checkout, of a file of rows or of the folder that holds one; and why others are none.

    The checkout's folders are `python_programs`, `correct_python_programs`, `json_testcases`, `python_testcases`;
    rows have `name`, `buggy_program`, `docstring`, `solution` and `tests`. What was refused is keyed by the program's
    name, or by the row's line where it has none. Raises `TaskError` where `source` is neither, or holds no program.
    """
    root = Path(source)
    items = _checkout(root) if (root / BUGGY).is_dir() or (root / CORRECT).is_dir() else _rows(_rows_file(root))
    tasks: dict[str, Task] = {}
    refused: dict[str, str] = {}
    for item, read in items:
        try:
            program = read()
            if program.name in tasks:
                raise TaskError(f"the name {program.name!r} was there before")
            tasks[program.name] = _task(program)
        except TaskError as error:
            refused[item] = error.message
    if not tasks and not refused:
        raise TaskError(f"{root} holds no program")
    return list(tasks.values()), refused


def save_programs(source: Path | str, tasks: list[Task], out: Path | str) -> tuple[list[Task], dict[str, str]]:
    """Write tasks as directories below `out`, and the licence beside them.

    Returns those that were written, and by id why others were not.
    """
    root = Path(source)
    terms = (root if root.is_dir() else root.parent) / "LICENSE"
    return save_tasks(tasks, out, {"LICENSE-quixbugs": _data(terms)} if terms.exists() else None)


# --- the two layouts --------------------------------------------------------------------------------------

_Item = tuple[str, Callable[[], _Program]]


def _checkout(root: Path) -> Iterator[_Item]:
    names = {path.stem for part in (BUGGY, CORRECT) for path in (root / part).glob("*.py")}
    for name in sorted(names - {NODE}):
        if not (name.endswith("_test") and name.removesuffix("_test") in names):  # upstream's own demonstrations
            yield name, partial(_of_checkout, root, name)


def _of_checkout(root: Path, name: str) -> _Program:
    _check_name(name)
    buggy, about = _without_texts(_text(root / BUGGY / f"{name}.py"), f"{BUGGY}/{name}.py")
    gold, _ = _without_texts(_text(root / CORRECT / f"{name}.py"), f"{CORRECT}/{name}.py")
    source = "QuixBugs, jkoppel/QuixBugs"
    program = _Program(name, buggy, gold, "\n\n".join(about), source)
    cases, tests = root / CASES / f"{name}.json", root / TESTS / f"test_{name}.py"
    if cases.exists():
        return replace(program, cases=cases_of_lines(name, _text(cases), f"{CASES}/{cases.name}"))
    if not tests.exists():
        raise TaskError(f"there is neither {CASES}/{cases.name} nor {TESTS}/{tests.name}")
    beside = root / TESTS / f"{NODE}.py"
    node = _text(beside) if beside.exists() else None
    return replace(program, suite=as_suite(name, _text(tests), f"{TESTS}/{tests.name}", node))


def _rows_file(root: Path) -> Path:
    if root.is_file():
        return root
    found = sorted(root.glob("*.jsonl")) if root.is_dir() else []
    if len(found) != 1:
        raise TaskError(
            f"{root} is no QuixBugs: there is no folder {BUGGY}, and not one file of rows but {len(found)}",
            fix=f"name the folder that holds {BUGGY}/ and {CORRECT}/, or a file of rows (.jsonl)",
        )
    return found[0]


def _rows(file: Path) -> Iterator[_Item]:
    for number, line in enumerate(_text(file).split("\n"), 1):
        if line.strip():
            where = f"{file.name} line {number}"
            try:
                row: Any = json.loads(line)
            except (ValueError, RecursionError) as error:
                row = f"is not JSON: {error}"
            name = row.get("name") if isinstance(row, dict) else None
            yield name if isinstance(name, str) else where, partial(_of_row, row, where)


def _of_row(row: Any, where: str) -> _Program:
    if not isinstance(row, dict):
        raise TaskError(f"{where} {row if isinstance(row, str) else 'is not a JSON object'}")
    for field in ("name", "buggy_program", "docstring", "solution", "tests"):
        if not isinstance(row.get(field), str):
            raise TaskError(f"{where}: the field {field!r} is missing or not a string")
    name = row["name"]
    _check_name(name)
    buggy, said = _without_texts(row["buggy_program"], where)
    gold, _ = _without_texts(row["solution"], where)
    about = [*_without_texts(row["docstring"], where)[1], *said]
    origin = "QuixBugs (Python), bigcode-project/octopack"
    program = _Program(name, buggy, gold, "\n\n".join(about), origin, row=json.dumps(row))
    cases = cases_of_asserts(name, row["tests"], where)
    return replace(program, cases=cases) if cases else replace(program, suite=as_suite(name, row["tests"], where))


def _check_name(name: str) -> None:
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        raise TaskError(f"{name!r} cannot be the name of a module")


# --- the task ---------------------------------------------------------------------------------------------


def _task(program: _Program) -> Task:
    name = program.name
    for what, code in (("buggy", program.buggy), ("correct", program.gold)):
        if name not in {node.name for node in _parsed(code, name).body if isinstance(node, ast.FunctionDef)}:
            raise TaskError(f"the {what} program does not define {name!r}")
    if ast.dump(_parsed(program.buggy, name)) == ast.dump(_parsed(program.gold, name)):
        raise TaskError("the buggy and the correct program are the same")
    file = f"{name}.py"
    fast, left_out = _fast(program)
    helper = {f"{name}_listed.py": _listed(name)} if fast and name in _LISTED else {}
    check = _plain(name, fast) if fast else _pytest(program)
    note = "listed" if helper else "node" if check.visible else ""
    provenance = {"source": program.source, "license": "MIT", "program": name, "bug_type": "one line"}
    return Task(
        id=f"quixbugs-{name}",
        instruction=_INSTRUCTION.format(name=name, about=program.about.strip(), note=_NOTES.get(note, "")),
        files={file: File(program.buggy.encode()), **helper, **{name: check.tests[name] for name in check.visible}},
        verification=check,
        editable=(file,),
        limits=replace(Limits(), memory_bytes=_MEMORY),
        solution={
            "solve.sh": File(f"#!/bin/sh\nset -e\ncp /solution/{file} /app/{file}\n".encode(), 0o755),
            file: File(program.gold.encode()),
        },
        split="test",
        provenance=provenance
        | ({"left_out": left_out} if left_out else {})
        | ({"row": program.row} if program.row else {}),
    )


def _fast(program: _Program) -> tuple[list[Case], str]:
    """The cases to judge by, and what was left out and why."""
    slow, why = _SLOW.get(program.name, (lambda _: False, ""))
    fast = [case for case in program.cases if not slow(case.args)]
    left = len(program.cases) - len(fast)
    if program.cases and not fast:
        raise TaskError(f"there is no case but slow ones: {why}")
    return fast, f"{left} of {len(program.cases)} cases: {why}" if left else ""


def _plain(name: str, cases: list[Case]) -> Verification:
    rows = "".join(json.dumps(case.row(f"case-{number}")) + "\n" for number, case in enumerate(cases, 1))
    module = f"{name}_listed" if name in _LISTED else name
    return Verification(
        runner="plain",
        tests={"cases.jsonl": File(rows.encode())},
        fail_to_pass=tuple(f"case-{number}" for number in range(1, len(cases) + 1)),
        plain=PlainCheck(f"{module}:{name}", "cases.jsonl"),
        timeout_s=_PATIENCE_S.get(name, _TIMEOUT_S),
    )


def _listed(name: str) -> File:
    """What makes plain data of a generator, in the candidate's process; nobody may edit it."""
    return File(f"import {name} as _module\n\n\ndef {name}(*args):\n    return list(_module.{name}(*args))\n".encode())


def _pytest(program: _Program) -> Verification:
    suite, file = program.suite, f"test_{program.name}.py"
    assert suite is not None
    node = {f"{NODE}.py": File(suite.node.encode())} if suite.node else {}
    return Verification(
        runner="pytest",
        tests={file: File(suite.text.encode()), **node},
        files=(file,),
        visible=tuple(node),
        fail_to_pass=tuple(f"{file}::{test}" for test in suite.tests),
        timeout_s=_TIMEOUT_S,
    )


def _without_texts(text: str, where: str) -> tuple[str, list[str]]:
    """A program without the strings that stand after it as statements, and those: what it is for, other solutions."""
    body, lines, texts = _parsed(text, where).body, text.split("\n"), list[str]()
    while body and (said := _said(body[-1])) is not None:
        texts.insert(0, said)
        del lines[body.pop().lineno - 1 :]
    return "\n".join(lines).strip("\n") + "\n", texts


def _said(statement: ast.stmt) -> str | None:
    """The string that is all of a statement with a line of its own."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text)), col_offset=0):
            return text
    return None


def _parsed(code: str, where: str) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise TaskError(f"{where} does not parse as Python: {error}") from None


def _data(path: Path) -> bytes:
    if path.is_symlink():
        raise TaskError(f"{path.parent.name}/{path.name} is a symbolic link", fix="put the file itself there")
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path.parent.name}/{path.name} cannot be read: {error.strerror}") from None


def _text(path: Path) -> str:
    try:
        return _data(path).decode()
    except UnicodeDecodeError:
        raise TaskError(f"{path.parent.name}/{path.name} is not UTF-8 text") from None
