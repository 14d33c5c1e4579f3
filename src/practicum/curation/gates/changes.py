"""Which statements of a Python file are new or differ.

Owns: `changed_nodes`, `changed_docs`, `reached_within`.
Invariant: pure. Of a class, only the statements of its body count. Must not know: tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from practicum.curation.gates.testcode import named, parsed
from practicum.records.tree import Tree

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def changed_nodes(before: ast.Module | None, after: ast.Module) -> list[ast.stmt]:
    """Statements of `after`, methods by themselves, that do not stand in `before` as they are."""
    known = {ast.dump(node) for node in _statements(before)} if before is not None else set()
    return [node for node in _statements(after) if ast.dump(node) not in known]


def changed_docs(start: Tree, gold: Tree) -> str:
    """What the start says, in docstrings, of the functions that `gold` changes."""
    found: list[str] = []
    for path, file in gold.items():
        if path.endswith(".py") and path in start and start[path] != file:
            before, after = parsed(start[path].data), parsed(file.data)
            if before is not None and after is not None:
                nodes = changed_nodes(after, before)
                found += [ast.get_docstring(node) or "" for node in nodes if isinstance(node, _Definition)]
    return "\n".join(found)


def reached_within(nodes: Sequence[ast.stmt], module: ast.Module) -> list[ast.stmt]:
    """`nodes`, and the functions and classes of the same file that they call by their own names, or as methods of
    `self`, and so on."""
    by_name: dict[str, list[ast.stmt]] = {}
    for node in (*module.body, *_statements(module)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            by_name.setdefault(node.name, []).append(node)
    found, todo = dict[int, ast.stmt](), list(nodes)
    while todo:
        node = todo.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        for inner in ast.walk(node):
            own = isinstance(inner, ast.Attribute) and named(inner.value) in ("self", "cls")
            if own or isinstance(inner, ast.Name):
                todo += by_name.get(named(inner), ())
    return list(found.values())


def _statements(tree: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _statements(node)
        else:
            yield node
