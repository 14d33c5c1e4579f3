"""Programs of a family, made for one task: parameters become constants, and what they rule out disappears.

Owns: `render`.
Invariant: the text does what the family's own function does under the same parameters; nothing in it is dead because
of them, so a reader, or a mutant of it, finds only what the task is about. Pure: nothing is run here.
Must not know: what the programs do.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

PARAMETERS = "P"  # the class of a family's module that stands for the parameters


def render(
    module: ModuleType, roots: Sequence[str], values: Mapping[str, Any], names: Mapping[str, str] | None = None
) -> str:
    """The functions `roots` of `module` and all that they need, with `P.name` replaced by `values[name]`.

    `names` renames top-level functions, such as `{"solve": "tally"}`. Raises `KeyError` for an unknown parameter.
    """
    tree = ast.parse(inspect.getsource(module))
    renaming = dict(names or {})
    folded = _Rename(renaming).visit(_Fold(values).visit(tree))
    parts = _needed(folded.body, [renaming.get(root, root) for root in roots])
    texts = [ast.unparse(ast.fix_missing_locations(part)) for part in parts]
    heads = [t for t, part in zip(texts, parts, strict=True) if isinstance(part, (ast.Import, ast.ImportFrom))]
    flat = [t for t, part in zip(texts, parts, strict=True) if isinstance(part, ast.Assign)]
    defs = [t for t, part in zip(texts, parts, strict=True) if isinstance(part, ast.FunctionDef)]
    blocks = ["\n".join(heads)] * bool(heads) + ["\n".join(flat)] * bool(flat)
    return "\n\n\n".join(["\n\n".join(blocks)] * bool(blocks) + defs) + "\n"


class _Fold(ast.NodeTransformer):
    """Puts the values in, and decides each condition that they decide."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return None if node.name == PARAMETERS else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == PARAMETERS:
            return ast.parse(repr(self.values[node.attr]), mode="eval").body
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        node.test = _simpler(node.test)
        known, truth = _truth(node.test)
        if not known:
            node.body = node.body or [ast.Pass()]
            return node
        return node.body if truth else node.orelse or None

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        node.test = _simpler(node.test)
        known, truth = _truth(node.test)
        return node if not known else node.body if truth else node.orelse

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs = [test for test in map(_simpler, node.ifs) if _truth(test) != (True, True)]
        return node


def _simpler(test: ast.expr) -> ast.expr:
    """A condition without the parts that are known. Only its truth is kept, so this is for conditions alone."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ast.UnaryOp(test.op, _simpler(test.operand))
    if not isinstance(test, ast.BoolOp):
        return test
    neutral = isinstance(test.op, ast.And)
    left: list[ast.expr] = []
    for value in map(_simpler, test.values):
        known, truth = _truth(value)
        if known and truth != neutral:
            return ast.Constant(truth)
        if not known:
            left.append(value)
    if not left:
        return ast.Constant(neutral)
    return left[0] if len(left) == 1 else ast.BoolOp(test.op, left)


def _truth(node: ast.expr) -> tuple[bool, bool]:
    """Whether an expression has a known truth, and which: it is made of constants only."""
    loose = (ast.Name, ast.Call, ast.Attribute, ast.NamedExpr, ast.Await, ast.JoinedStr, ast.comprehension)
    if any(isinstance(part, loose) for part in ast.walk(node)):
        return False, False
    value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<parameters>", "eval"), {})
    return True, bool(value)


def _needed(body: list[ast.stmt], roots: Sequence[str]) -> list[ast.stmt]:
    """The top-level statements that `roots` reach, in their order."""
    makers: dict[str, ast.stmt] = {}
    for statement in body:
        for name in _made(statement):
            makers[name] = statement
    wanted, todo = list[ast.stmt](), [makers[root] for root in roots]
    while todo:
        statement = todo.pop()
        if any(statement is other for other in wanted):
            continue
        wanted.append(statement)
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        todo += [makers[name] for name in sorted(used) if name in makers]
    return [statement for statement in body if any(statement is other for other in wanted)]


def _made(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


class _Rename(ast.NodeTransformer):
    """Also leaves out docstrings and types: they are ours, and say nothing about the work."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.name = self.names.get(node.name, node.name)
        node.returns = None
        if ast.get_docstring(node) is not None:
            del node.body[0]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        return node if node.value is None else ast.Assign([node.target], node.value)

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self.names.get(node.id, node.id)
        return node
