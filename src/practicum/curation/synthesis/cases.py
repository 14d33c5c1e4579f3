"""The values of a parametrised test's case, where they can be told from its source.

Owns: `case_values`, `with_values`.
Invariant: pure; a case is named only where exactly one entry of the list has its id.
Must not know: what was changed.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def case_values(function: _Function, case: str) -> Mapping[str, ast.expr] | None:
    """The values by parameter of the case with this id, of a test with one `parametrize` and a plain list behind it."""
    if len(function.decorator_list) != 1 or not isinstance(call := function.decorator_list[0], ast.Call):
        return None
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "parametrize" or call.keywords:
        return None
    if len(call.args) != 2 or not isinstance(call.args[1], (ast.List, ast.Tuple)):
        return None
    names = _names(call.args[0])
    found = []
    for at, entry in enumerate(call.args[1].elts):
        values = [entry] if len(names) == 1 else entry.elts if isinstance(entry, (ast.Tuple, ast.List)) else []
        if len(values) != len(names) or any(map(_wrapped, [entry, *values])):
            return None
        if "-".join(_id(name, at, value) for name, value in zip(names, values, strict=True)) == case:
            found.append(dict(zip(names, values, strict=True)))
    return found[0] if len(found) == 1 else None


def with_values(block: ast.Module, values: Mapping[str, ast.expr]) -> ast.Module:
    """`block` with values in place of the parameters; those that it binds itself stay as they are."""
    bound = {node.id for node in ast.walk(block) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(values[node.id]) if node.id in values and node.id not in bound else node

        def visit_Call(self, node: ast.Call) -> ast.expr:
            self.generic_visit(node)
            args: list[ast.expr] = []
            for arg in node.args:  # f(*[1, 2]) is f(1, 2)
                plain = isinstance(arg, ast.Starred) and isinstance(arg.value, (ast.List, ast.Tuple))
                args += arg.value.elts if plain else [arg]  # type: ignore[attr-defined]
            node.args = args
            return node

    made = Put().visit(copy.deepcopy(block))
    assert isinstance(made, ast.Module)
    return made


def _wrapped(value: ast.expr) -> bool:
    """Whether it stands for something else: `*many`, or `pytest.param(...)`."""
    name = getattr(value.func, "attr", getattr(value.func, "id", "")) if isinstance(value, ast.Call) else ""
    return isinstance(value, ast.Starred) or name == "param"


def _names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return []


def _id(name: str, at: int, node: ast.expr) -> str:
    """As pytest names a value: by what it is where that is plain, else by the parameter and its place."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    value = node.operand if negative and isinstance(node, ast.UnaryOp) else node
    if isinstance(value, ast.Constant):
        if isinstance(value.value, str) and value.value.isascii() and value.value.isprintable():
            return value.value
        if isinstance(value.value, (bool, int, float, complex)) or value.value is None:
            return f"{'-' if negative else ''}{value.value}"
    return f"{name}{at}"
