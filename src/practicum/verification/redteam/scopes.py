"""Scopes, names and statements of a function's tree: what rewrites are made with.

Owns: `unsafe`, walking a function's own scope, new names, replacing statements.
Invariant: nested functions, classes and lambdas are never entered; a new name is no word of the file.
Must not know: any rewrite.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_REFLECTIVE = frozenset(
    {"locals", "vars", "globals", "eval", "exec", "dir", "super", "_getframe", "inspect", "__class__"}
)


def unsafe(function: ast.FunctionDef) -> bool:
    """Whether the function looks at its own frame or scope, so that no rewrite is sure to keep its meaning."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Await, ast.Match)) or word(node) in _REFLECTIVE:
            return True
    return False


def word(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below `node` that are in its own scope, comprehensions included."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, NESTED):
            yield child
            yield from walk(child)


def blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """Every list of statements in the function's own scope, innermost last."""
    for node in (function, *walk(function)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                yield block


def names(tree: ast.AST) -> set[str]:
    """Every word in `tree`, so that a new name can be none of them."""
    found = {word(node) for node in ast.walk(tree)}
    found |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return found | {str(getattr(node, "name", "")) for node in ast.walk(tree)}


def fresh(tree: ast.AST, stem: str) -> str:
    taken, name, number = names(tree), stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def bound(function: ast.FunctionDef) -> set[str]:
    """Names that the function's own scope gives a meaning to: variables, parameters, inner functions, imports."""
    found = parameters(function) | stored(function)
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        todo += ast.iter_child_nodes(node)
    return found


def parameters(function: ast.FunctionDef) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def has(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(inner, kinds) for inner in ast.walk(node))


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def rename(node: ast.AST, names: Mapping[str, str]) -> None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in names:
            inner.id = names[inner.id]


def replace(function: ast.FunctionDef, change: Callable[[ast.stmt], list[ast.stmt] | None]) -> bool:
    """Put what `change` gives in place of each statement of the function's scope; None leaves one alone."""
    done = False
    for block in reversed(list(blocks(function))):  # inner blocks first, since an outer one may be taken apart
        result: list[ast.stmt] = []
        for statement in block:
            new = change(statement)
            done = done or new is not None
            result += [statement] if new is None else new
        block[:] = result
    return done


def loads(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def fixed_name(statement: ast.stmt) -> str | None:
    """The name that `statement` gives a constant or an empty container, and does nothing else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    empty = (isinstance(value, (ast.List, ast.Tuple)) and not value.elts) or (
        isinstance(value, ast.Dict) and not value.keys
    )
    return target.id if isinstance(target, ast.Name) and (isinstance(value, ast.Constant) or empty) else None
