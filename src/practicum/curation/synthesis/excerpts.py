"""A test file cut down to a few of its tests, for an agent to see.

Owns: `shown_tests`.
Invariant: nothing of a test that was not asked for stands in what is shown; pure.
Must not know: which tests are asked for, and why.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Sequence

from practicum.curation.projects.project import Project
from practicum.records.tree import File
from practicum.verification.redteam.variants import parse

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_SUPPORT = 1 << 20  # bytes of helpers and data


def shown_tests(project: Project, ids: Sequence[str]) -> tuple[dict[str, File], tuple[str, ...]]:
    """New test files by path that hold only the tests `ids`, and all files that these need to run, themselves included.

    Empty where a file cannot be cut.
    """
    wanted: dict[str, set[str]] = {}
    for name in ids:
        path, _, place = name.partition("::")
        wanted.setdefault(path, set()).add(place.partition("[")[0])
    made: dict[str, File] = {}
    for path, places in sorted(wanted.items()):
        text = _cut(project.tests[path].data, places)
        if text is not None:
            folder, name = posixpath.split(path)
            made[posixpath.join(folder, f"test_shown_{name.removeprefix('test_')}")] = File(text.encode())
    support = sorted(path for path in project.tests if path not in project.test_files)
    if not made or sum(len(project.tests[path].data) for path in support) > _MOST_SUPPORT:
        return {}, ()
    return made, (*made, *support)


def _cut(data: bytes, places: set[str]) -> str | None:
    """The file without the tests that are not at `places` (`Class::test` or `test`)."""
    try:
        text = data.decode()
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    gone = {line for first, last in _unwanted(tree, places) for line in range(first, last + 1)}
    kept = "".join(line for at, line in enumerate(text.splitlines(keepends=True), 1) if at not in gone)
    try:
        parse(kept)
    except SyntaxError:
        return None
    return kept


def _unwanted(tree: ast.Module, places: set[str]) -> Iterator[tuple[int, int]]:
    """Line ranges of tests, and of classes of which no test is wanted."""
    for node in tree.body:
        if isinstance(node, _Function) and node.name.startswith("test") and node.name not in places:
            yield _lines(node)
        elif isinstance(node, ast.ClassDef):
            tests = [inner for inner in node.body if isinstance(inner, _Function) and inner.name.startswith("test")]
            others = [inner for inner in tests if f"{node.name}::{inner.name}" not in places]
            if len(others) == len(node.body):
                yield _lines(node)
            else:
                yield from (_lines(inner) for inner in others)


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[int, int]:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or node.lineno
