"""The form of a task that is made from a project.

Owns: `build_task`, `frozen_files`, `choose_passing`.
Invariant: the agent's workspace is what it was given and holds no test but the visible ones; the frozen tests are those
files that the chosen ids need; the solution turns the workspace into the gold, byte for byte.
Must not know: how a task was thought of, whether it is any good.
"""

from __future__ import annotations

import ast
import math
import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from practicum.curation.projects.programs import WORKSPACE
from practicum.curation.projects.project import Project
from practicum.errors import TaskError
from practicum.records.task import MIB, Limits, Task, Verification
from practicum.records.tree import File, Tree, matches, tree_digest

_MARGIN = 8.0  # times the measured seconds that the tests may take, on a host that may be busier
_LEAST_S, _START_S = 10.0, 5.0
_EPISODE_S = 600.0
_COMMAND_S = 60.0
_MEMORY = 1024 * MIB  # as in the testbed
_PIDS = 128
_PAGE = 4096


def build_task(
    project: Project,
    *,
    id: str,
    files: Tree,
    gold: Mapping[str, bytes | None],
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    instruction: str,
    provenance: Mapping[str, Any],
    visible: Sequence[str] = (),
    tests: Tree | None = None,
    seconds: Mapping[str, float] | None = None,
    unguarded: Sequence[str] = (),
    editable: Sequence[str] | None = None,
    domain: str = "bug-fix",
    split: str = "train",
) -> Task:
    """The task to turn `files` into what passes `fail_to_pass` without breaking `pass_to_pass`.

    `gold` maps paths to what the solution writes there, None for a file that it removes. `visible` names test files
    that the agent has too. `tests` are the project's own unless given; of them the task keeps what its ids need.
    `seconds` are those of tests as measured; limits follow from them with margin. `provenance` must say how to make the
    task again; what the project says of itself is added. `editable` are the project's sources unless given. Raises
    `TaskError` where ids, gold and files do not fit together.
    """
    editable = tuple(editable) if editable is not None else project.editable
    every = [*fail_to_pass, *pass_to_pass]
    frozen = frozen_files(project.tests if tests is None else tests, project.test_files, [*every, *visible])
    needed = list(dict.fromkeys(name.partition("::")[0] for name in every))
    _check(id, files, gold, fail_to_pass, pass_to_pass, editable, named=[*needed, *visible], frozen=frozen)
    workspace = dict(files) | {name: frozen[name] for name in visible}
    return Task(
        id=id,
        instruction=instruction if instruction.endswith("\n") else f"{instruction}\n",
        files=workspace,
        verification=Verification(
            runner="pytest",
            tests=frozen,
            files=tuple(sorted(needed)),
            visible=tuple(sorted(visible)),
            fail_to_pass=tuple(fail_to_pass),
            pass_to_pass=tuple(pass_to_pass),
            timeout_s=timeout_of(every, seconds or {}),
            unguarded=tuple(unguarded),
        ),
        layer=project.layer,
        workspace=WORKSPACE,
        editable=editable,
        limits=limits_of(files),
        solution=solution_of(gold, files),
        split=split,
        domain=domain,
        provenance=_stated(project, provenance, gold),
    )


def _stated(project: Project, provenance: Mapping[str, Any], gold: Mapping[str, bytes | None]) -> dict[str, Any]:
    return {
        **provenance,
        "project": project.name,
        "project_version": project.version,
        "license": project.licence,
        "origin": dict(project.origin),
        "parent": project.digest,
        "gold": tree_digest({path: File(data) for path, data in gold.items() if data is not None}),
    }


def _check(
    id: str,
    files: Tree,
    gold: Mapping[str, bytes | None],
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    editable: Sequence[str],
    *,
    named: Sequence[str],
    frozen: Tree,
) -> None:
    if not fail_to_pass:
        raise TaskError(f"{id}: no test fails, so there is nothing to do")
    if both := set(fail_to_pass) & set(pass_to_pass):
        raise TaskError(f"{id}: {min(both)!r} cannot both fail and pass before the work is done")
    for path, data in gold.items():
        if not matches(path, editable):
            raise TaskError(f"{id}: the gold changes {path!r}, which is not among the sources")
        if data is None and path not in files:
            raise TaskError(f"{id}: the gold removes {path!r}, which is not there")
    for name in named:
        if name not in frozen:
            raise TaskError(f"{id}: there is no test file {name!r}")


def timeout_of(ids: Iterable[str], seconds: Mapping[str, float]) -> float:
    """Wall seconds that one run of `ids` may take: several times what was measured, and never little."""
    measured = sum(seconds.get(name, 0.05) for name in ids)
    return float(math.ceil(max(_LEAST_S, _START_S + _MARGIN * measured)))


def limits_of(files: Tree) -> Limits:
    """The limits of the agent's and the judge's boxes: room for a copy or two of the project."""
    # A file takes whole pages, and its name some more: many small ones are larger than what is in them.
    size = sum((len(file.data) // _PAGE + 2) * _PAGE for file in files.values())
    disk = max(64 * MIB, 4 * (size // MIB + 1) * MIB)
    return replace(
        Limits(), memory_bytes=_MEMORY, pids=_PIDS, disk_bytes=disk, command_s=_COMMAND_S, episode_s=_EPISODE_S
    )


def solution_of(gold: Mapping[str, bytes | None], files: Tree) -> dict[str, File]:
    """`solve.sh`, which copies the gold's files into the workspace and removes what the gold removes."""
    lines = ["#!/bin/sh", "set -e", f"cd {WORKSPACE}"]
    found: dict[str, File] = {}
    for path in sorted(gold):
        data = gold[path]
        if data is None:
            lines.append(f"rm -- {shlex.quote(path)}")
            continue
        mode = files[path].mode if path in files else 0o644
        found[f"gold/{path}"] = File(data, mode)
        if (folder := posixpath.dirname(path)) and path not in files:
            lines.append(f"mkdir -p -- {shlex.quote(folder)}")
        lines.append(f"cp -- {shlex.quote(f'/solution/gold/{path}')} {shlex.quote(path)}")
    return found | {"solve.sh": File(("\n".join(lines) + "\n").encode(), 0o755)}


def frozen_files(tests: Tree, test_files: Iterable[str], ids: Iterable[str]) -> dict[str, File]:
    """What `ids` need of `tests`: their files, all that is no test file, and test files that those import."""
    others = set(test_files)
    stems = {posixpath.basename(path).removesuffix(".py"): path for path in sorted(others)}
    wanted = {name.partition("::")[0] for name in ids}
    todo = [*sorted(wanted & tests.keys()), *(path for path in tests if path not in others and path.endswith(".py"))]
    while todo:
        for name in _imported(tests[todo.pop()].data):
            other = stems.get(name)
            if other is not None and other not in wanted:
                wanted.add(other)
                todo.append(other)
    return {path: file for path, file in sorted(tests.items()) if path not in others or path in wanted}


def _imported(data: bytes) -> set[str]:
    """Last parts of the names of modules that a file may import."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.rpartition(".")[2] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} | {(node.module or "").rpartition(".")[2]}
    return found


def choose_passing(
    passing: Iterable[str],
    failing: Sequence[str],
    *,
    seconds: Mapping[str, float],
    near: Iterable[str] = (),
    budget_s: float = 2.0,
    most: int = 50,
) -> tuple[str, ...]:
    """Of the tests that `passing` before and after, those that are worth keeping, within a budget of measured seconds.

    First come those `near` the change (that run a line of a changed function), then those of the files that `failing`
    are in, then the others; among equals the fastest, then by name.
    """
    close, files = set(near), {name.partition("::")[0] for name in failing}

    def rank(name: str) -> tuple[int, float, str]:
        place = 0 if name in close else 1 if name.partition("::")[0] in files else 2
        return place, seconds.get(name, 0.05), name

    chosen: list[str] = []
    spent = 0.0
    for name in sorted(set(passing) - set(failing), key=rank):
        cost = seconds.get(name, 0.05)
        if len(chosen) == most:
            break
        if spent + cost > budget_s:
            continue
        chosen.append(name)
        spent += cost
    return tuple(sorted(chosen))
