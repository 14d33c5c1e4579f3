"""A test as an example that stands for itself: its statements, with what they import.

Owns: `example_of`.
Invariant: what is shown names nothing that a reader does not have: no fixture, no helper of the test file, no `self`.
Must not know: what was changed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from functools import lru_cache

from practicum.curation.synthesis.cases import case_values, with_values
from practicum.curation.synthesis.wording import function_of
from practicum.records.tree import Tree
from practicum.verification.redteam.variants import parse

_MOST_LINES, _MOST_CHARS = 12, 800
_FRAMEWORKS = frozenset({"pytest", "unittest"})


def _compared(operator: ast.cmpop) -> Callable[[list[ast.expr]], ast.expr]:
    return lambda args: ast.Compare(args[0], [operator], [args[1]])


def _with_none(operator: ast.cmpop) -> Callable[[list[ast.expr]], ast.expr]:
    return lambda args: ast.Compare(args[0], [operator], [ast.Constant(None)])


_ASSERTIONS: Mapping[str, tuple[int, Callable[[list[ast.expr]], ast.expr]]] = {
    "assertEqual": (2, _compared(ast.Eq())),
    "assertEquals": (2, _compared(ast.Eq())),
    "assertNotEqual": (2, _compared(ast.NotEq())),
    "assertIs": (2, _compared(ast.Is())),
    "assertIsNot": (2, _compared(ast.IsNot())),
    "assertIn": (2, _compared(ast.In())),
    "assertNotIn": (2, _compared(ast.NotIn())),
    "assertLess": (2, _compared(ast.Lt())),
    "assertGreater": (2, _compared(ast.Gt())),
    "assertIsNone": (1, _with_none(ast.Is())),
    "assertIsNotNone": (1, _with_none(ast.IsNot())),
    "assertTrue": (1, lambda args: args[0]),
    "assertFalse": (1, lambda args: ast.UnaryOp(ast.Not(), args[0])),
}


class _Plain(ast.NodeTransformer):
    """Assertions of unittest as `assert`."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            count, make = _ASSERTIONS.get(call.func.attr, (0, None))
            if make is not None and len(call.args) >= count:
                return ast.copy_location(ast.Assert(make(call.args[:count])), node)
        return node


def example_of(test: str, tests: Tree) -> str | None:
    """The statements of the test with this id, where they are few and stand for themselves."""
    path = test.partition("::")[0]
    function = function_of(test, tests)
    if function is None or isinstance(function, ast.AsyncFunctionDef):
        return None
    values = case_values(function, test.partition("[")[2].removesuffix("]"))
    if function.decorator_list and values is None:
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    block = ast.Module([_Plain().visit(parse(ast.unparse(node)).body[0]) for node in body], [])
    block = with_values(block, values or {})
    names = [node for node in ast.walk(block) if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | _defined(block)
    needed = {node.id for node in names} - own - set(dir(builtins))
    imports = _imports(tests[path].data)
    if not body or needed - imports.keys() or {imports[name][0] for name in needed} & _FRAMEWORKS:
        return None
    lines = sorted({imports[name][1] for name in needed})
    text = "\n".join([*lines, *([""] if lines else []), ast.unparse(ast.fix_missing_locations(block))])
    return text if len(text.splitlines()) <= _MOST_LINES and len(text) <= _MOST_CHARS else None


def _defined(block: ast.Module) -> set[str]:
    """Names that functions, lambdas, imports and handlers of the statements bind."""
    found: set[str] = set()
    for node in ast.walk(block):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


@lru_cache(maxsize=256)
def _imports(data: bytes) -> Mapping[str, tuple[str, str]]:
    """By the name that an import at the top of a file binds: the package, and the statement for that name alone."""
    found: dict[str, tuple[str, str]] = {}
    for node in parse(data.decode()).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = (alias.asname or alias.name).partition(".")[0]
                found[bound] = alias.name.partition(".")[0], ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                statement = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
                found[alias.asname or alias.name] = node.module.partition(".")[0], statement
    return found
