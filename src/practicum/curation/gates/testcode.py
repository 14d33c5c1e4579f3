"""The code of frozen tests, as far as it can be read.

Owns: `TestCode`, `test_codes`, `assertions`.
Invariant: pure; nothing of a test is ever run here. Code that a test may reach counts as its own: fixtures, helpers and
set-up of the frozen files, by name. A test that is not Python is left out.
Must not know: what is asked of the tests.
"""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from practicum.records.task import Task

_SETUPS = {
    *("setUp", "setUpClass", "setup_method", "setup_class", "setup_module", "setup_function", "setup"),
    *("tearDown", "tearDownClass", "teardown_method", "asyncSetUp"),
}
_CHECKS = {"raises", "warns", "fail", "deprecated_call", "exit", "_exit", "approx_equal"}
_CATCH_ALL = {"Exception", "BaseException", "AssertionError"}

_PARSED = 32  # files of which the trees are kept: tasks made of one project show the same ones

Asserts = Literal["something", "constants", "nothing"]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class TestCode:
    """One test: its own function (or the whole file), and all that it may reach, itself included."""

    __test__ = False  # no test, though it is called one

    id: str
    file: str
    own: ast.AST
    reached: Sequence[ast.AST]


@lru_cache(_PARSED)
def parsed(data: bytes) -> ast.Module | None:
    """The tree of a Python file, or None. It may be another's as well: nobody changes it."""
    return read(data)


def read(data: bytes) -> ast.Module | None:
    """The tree of a piece of Python that is looked at once, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            return None


@lru_cache(_PARSED)
def _functions(data: bytes) -> tuple[Function, ...]:
    """All functions in a Python file, in whatever they stand."""
    tree = parsed(data)
    return tuple(node for node in ast.walk(tree) if isinstance(node, Function)) if tree is not None else ()


def test_modules(task: Task) -> dict[str, ast.Module]:
    """The frozen Python files by name."""
    trees = {name: parsed(file.data) for name, file in task.verification.tests.items() if name.endswith(".py")}
    return {name: tree for name, tree in trees.items() if tree is not None}


def test_codes(task: Task, ids: Sequence[str]) -> list[TestCode]:
    """The code of those of `ids` that are Python and can be found, parametrised ones once."""
    check, modules = task.verification, test_modules(task)
    functions: defaultdict[str, list[Function]] = defaultdict(list)
    for name in modules:
        for node in _functions(check.tests[name].data):
            functions[node.name].append(node)
    found: dict[str, TestCode] = {}
    for name in ids:
        plain = name.partition("[")[0]
        if check.runner == "command":
            if plain in modules:
                found[plain] = TestCode(plain, plain, modules[plain], [modules[plain]])
            continue
        place = _place(modules, plain, "::" if check.runner == "pytest" else ".")
        if place is not None:
            file, owner, node = place
            found[plain] = TestCode(plain, file, node, list(_reach(node, owner, functions)))
    return list(found.values())


def _place(modules: Mapping[str, ast.Module], name: str, sign: str) -> tuple[str, ast.ClassDef | None, Function] | None:
    for file, tree in modules.items():
        head = file if sign == "::" else file.removesuffix(".py").replace("/", ".")
        if not name.startswith(f"{head}{sign}"):
            continue
        *classes, last = name.removeprefix(f"{head}{sign}").split(sign)
        body: list[ast.stmt] = tree.body
        owner: ast.ClassDef | None = None
        for each in classes:
            owner = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == each), None)
            if owner is None:
                return None
            body = owner.body
        node = _method(body, owner, last, modules)
        return (file, owner, node) if node is not None else None
    return None


def _method(
    body: Sequence[ast.stmt], owner: ast.ClassDef | None, name: str, modules: Mapping[str, ast.Module]
) -> Function | None:
    """The function `name` of a module or class, or of a class of the frozen files that it stems from."""
    classes = {node.name: node for tree in modules.values() for node in tree.body if isinstance(node, ast.ClassDef)}
    todo, seen = [(body, owner)], set[str]()
    while todo:
        body, owner = todo.pop(0)
        for node in body:
            if isinstance(node, Function) and node.name == name:
                return node
        for base in map(named, owner.bases if owner is not None else ()):
            if base in classes and base not in seen:
                seen.add(base)
                todo.append((classes[base].body, classes[base]))
    return None


def _reach(
    test: Function, owner: ast.ClassDef | None, functions: Mapping[str, Sequence[Function]]
) -> Iterator[ast.AST]:
    todo: list[Function] = [test]
    if owner is not None:
        todo += [node for node in owner.body if isinstance(node, Function) and node.name in _SETUPS]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        for inner in ast.walk(node):
            word = getattr(inner, "id", None) or getattr(inner, "attr", None) or getattr(inner, "arg", None)
            if isinstance(word, str) and isinstance(inner, (ast.Name, ast.Attribute, ast.arg)):
                todo += [each for each in functions.get(word, ()) if not each.name.startswith("test")]


def named(node: ast.AST) -> str:
    """The last part of a dotted name; empty for anything else."""
    return str(getattr(node, "attr", None) or getattr(node, "id", None) or "")


def called(call: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    return named(call.func)


def assertions(code: TestCode) -> Asserts:
    """Whether the outcome depends on something that is checked, only on constants, or on nothing but an exception."""
    seen = False
    for node in code.reached:
        for each, swallowed in _checks(node, False):
            if not swallowed and not _constant(each):
                return "something"
            seen = True
    return "constants" if seen else "nothing"


def _checks(node: ast.AST, swallowed: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Statements and calls that can fail a test on purpose, and whether what they raise is caught around them."""
    if isinstance(node, (ast.Assert, ast.Raise)):
        yield node, swallowed
    elif isinstance(node, ast.Call):
        name = called(node)
        if name.lower().startswith(("assert", "check", "expect", "verify")) or name in _CHECKS:
            yield node, swallowed
    for child in ast.iter_child_nodes(node):
        inside = isinstance(node, ast.Try) and child in node.body and any(map(_catches_all, node.handlers))
        yield from _checks(child, swallowed or inside)


def _catches_all(handler: ast.ExceptHandler) -> bool:
    """Whether it takes a failed assertion and lets the test go on."""
    if any(isinstance(inner, (ast.Raise, ast.Assert, ast.Call)) for each in handler.body for inner in ast.walk(each)):
        return False
    kinds = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    return any(kind is None or getattr(kind, "id", "") in _CATCH_ALL for kind in kinds)


def _constant(check: ast.AST) -> bool:
    """Whether what is checked is the same whatever the submission does."""
    if isinstance(check, ast.Raise):
        return False
    if isinstance(check, ast.Assert):
        return _with_itself(check.test) or not _speaks_of_something(check.test)
    assert isinstance(check, ast.Call)
    given = [*check.args, *(word.value for word in check.keywords)]
    name = called(check)
    if name in _CHECKS or not given:
        return False
    if name in ("assertEqual", "assertIs", "assertListEqual") and len(given) > 1 and _same(given[0], given[1]):
        return True
    return not any(map(_speaks_of_something, given))


def _with_itself(test: ast.expr) -> bool:
    """Whether `test` compares something with the very same, as in `f(1) == f(1)`."""
    return (
        isinstance(test, ast.Compare)
        and all(isinstance(op, (ast.Eq, ast.Is, ast.LtE, ast.GtE)) for op in test.ops)
        and all(_same(test.left, other) for other in test.comparators)
    )


def _speaks_of_something(node: ast.expr) -> bool:
    return any(isinstance(inner, (ast.Name, ast.Call, ast.Attribute)) for inner in ast.walk(node))


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def calls_anything(code: TestCode) -> bool:
    """Whether the test does anything beyond naming constants."""
    return any(isinstance(inner, (ast.Call, ast.Import, ast.ImportFrom)) for inner in ast.walk(code.own))
