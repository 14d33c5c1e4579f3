"""Code of tests for a reader who does not have them: a test, the helpers that it calls, and what it compares.

Owns: `test_source`, `helpers_of`, `compared`, `demands_of`.
Invariant: parses only; what cannot be parsed or found is nothing.
Must not know: instructions, the fix.
"""

from __future__ import annotations

import ast
import posixpath
import textwrap
import warnings
from collections.abc import Iterator

from practicum.curation.mining.withholding import text_of
from practicum.records.tree import Tree

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ASSERTING = ("assert", "check", "expect", "verify", "compare")
_COMPARED_LINES = 16


def test_source(name: str, tests: Tree) -> str:
    """The code of a test, or nothing where it cannot be found."""
    file, _, inner = name.partition("::")
    source = text_of(tests[file].data) if file in tests else ""
    scope: ast.AST | None = _parsed(source)
    for part in inner.partition("[")[0].split("::"):
        found = [node for node in _definitions(scope) if node.name == part]
        if not found:
            return ""
        scope = found[-1]
    return _text(source, scope)


def helpers_of(name: str, tests: Tree) -> dict[str, str]:
    """Functions and data of the tests' own files that the code of a test names: name → code. Tests are none."""
    file = name.partition("::")[0]
    own = _parsed(textwrap.dedent(test_source(name, tests)))
    here = text_of(tests[file].data) if file in tests else ""
    if own is None:
        return {}
    called = {node.id for node in ast.walk(own) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    methods = {
        node.func.attr
        for node in ast.walk(own)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    }
    found = _functions(here, called) | _methods(here, name, methods)
    for module, names in _imported(here).items():
        for place in _places(module, file):
            if place in tests:
                found |= _functions(text_of(tests[place].data), called & names)
    return {each: code for each, code in sorted(found.items()) if not each.startswith("test")}


def compared(source: str) -> str:
    """The last call of a helper that asserts, after what made its arguments; nothing without one, or if it is long."""
    tree = _parsed(textwrap.dedent(source))
    calls = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _name_of(node.value.func).lower().lstrip("_").startswith(_ASSERTING)
    ]
    if tree is None or not calls:
        return ""
    last = max(calls, key=lambda node: node.lineno)
    names = {node.id for node in ast.walk(last) if isinstance(node, ast.Name)}
    lines = textwrap.dedent(source).splitlines()
    made: dict[str, ast.stmt] = {}  # what each name was last set to
    for node in sorted((node for node in ast.walk(tree) if isinstance(node, ast.Assign)), key=lambda node: node.lineno):
        for target in node.targets:
            if node.lineno < last.lineno and isinstance(target, ast.Name) and target.id in names:
                made[target.id] = node
    parts = sorted({each.lineno: each for each in (*made.values(), last)}.items())
    text = "\n".join(textwrap.dedent("\n".join(lines[at - 1 : each.end_lineno])) for at, each in parts)
    return text if text.count("\n") < _COMPARED_LINES else ""


def demands_of(source: str) -> frozenset[str]:
    """Names of attributes, arguments and functions that the code of a test speaks of."""
    tree = _parsed(textwrap.dedent(source))
    found = set[str]()
    for node in ast.walk(tree or ast.Module([], [])):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
    return frozenset(found)


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings that are not ours
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _definitions(scope: ast.AST | None) -> Iterator[_Definition]:
    for node in ast.iter_child_nodes(scope) if scope is not None else ():
        if isinstance(node, _Definition):
            yield node


def _text(source: str, node: ast.AST | None) -> str:
    if not isinstance(node, _Definition):
        return ""
    return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])


def _functions(source: str, names: set[str]) -> dict[str, str]:
    tree = _parsed(source)
    nodes = [node for node in _definitions(tree) if node.name in names]
    found = {node.name: _text(source, node) for node in nodes if not isinstance(node, ast.ClassDef)}
    for node in tree.body if tree else ():
        targets = node.targets if isinstance(node, ast.Assign) else ()
        for target in targets:
            if isinstance(target, ast.Name) and target.id in names:
                found[target.id] = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
    return found


def _methods(source: str, name: str, names: set[str]) -> dict[str, str]:
    """Methods of the class in which a test stands."""
    parts = name.partition("::")[2].split("::")
    found = [node for node in _definitions(_parsed(source)) if isinstance(node, ast.ClassDef) and node.name == parts[0]]
    return {
        each.name: textwrap.dedent(_text(source, each))
        for node in found[-1:]
        for each in _definitions(node)
        if each.name in names and not isinstance(each, ast.ClassDef)
    }


def _imported(source: str) -> dict[str, set[str]]:
    """Names that a file imports, by module as written."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(_parsed(source) or ast.Module([], [])):
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", set()).update(each.name for each in node.names if not each.asname)
    return found


def _places(module: str, file: str) -> tuple[str, ...]:
    path = module.replace(".", "/") + ".py"
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), path)), path


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
