"""The tests in a test file, told by reading it.

Owns: `Suite`, `read_suite`.
Invariant: a test is named only where reading is enough to know its id; where it is not, the file is refused.
Must not know: whose tests they are, how they are run. Nothing is imported.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from practicum.errors import TaskError

_CASES = {"unittest.TestCase", "TestCase", "unittest.IsolatedAsyncioTestCase", "IsolatedAsyncioTestCase"}
_NEVER_PASS = ("unittest.skip", "skip", "pytest.mark.skip", "pytest.mark.xfail", "unittest.expectedFailure")
_FIX = "name each of its tests"


@dataclass(frozen=True, slots=True)
class Suite:
    """`tests` as `(class or "", function)`, without those that are skipped. `runner` is one that can run them."""

    runner: Literal["pytest", "unittest"]
    tests: tuple[tuple[str, str], ...]

    def ids(self, file: str) -> tuple[str, ...]:
        """The runner's ids of the tests, where the suite is `file` below the folder of frozen tests."""
        if self.runner == "unittest":
            module = file.removesuffix(".py").replace("/", ".")
            return tuple(f"{module}.{owner}.{name}" for owner, name in self.tests)
        return tuple("::".join(filter(None, (file, owner, name))) for owner, name in self.tests)


def read_suite(text: str, where: str) -> Suite:
    """The tests that `text` holds; none where it holds none.

    Raises `TaskError` for text that does not parse, and for tests whose ids depend on more than their names:
    parametrised or inherited ones.
    """
    tests: list[tuple[str, str]] = []
    runner: Literal["pytest", "unittest"] = "unittest"
    for owner, test in _tests(_parsed(text, where), where):
        marks = [ast.unparse(mark) for mark in test.decorator_list]
        if any("parametrize" in mark for mark in marks):
            raise TaskError(f"{where}: {test.name} is parametrised, so its ids cannot be told by reading", fix=_FIX)
        if owner is None or not _is_case(owner):
            runner = "pytest"
        if not any(mark.startswith(_NEVER_PASS) for mark in marks):
            tests.append((owner.name if owner else "", test.name))
    return Suite(runner, tuple(tests))


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _tests(body: list[ast.stmt], where: str) -> Iterator[tuple[ast.ClassDef | None, _Function]]:
    """Each test with the class that it is collected in, in the order of the file."""
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    for node in body:
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield None, node
        if isinstance(node, ast.ClassDef) and not any(_never(mark) for mark in node.decorator_list):
            if _is_case(node) or node.name.startswith("Test"):
                for test in _own_and_inherited(node, classes, where).values():
                    yield node, test
            elif any("Test" in ast.unparse(base) for base in node.bases):
                raise TaskError(f"{where}: whether {node.name} is a test case cannot be told by reading", fix=_FIX)


def _own_and_inherited(
    node: ast.ClassDef, classes: dict[str, ast.ClassDef], where: str, seen: tuple[str, ...] = ()
) -> dict[str, _Function]:
    """The tests of a class by name, those of its bases in the same file included."""
    found: dict[str, _Function] = {}
    for base in (ast.unparse(each) for each in reversed(node.bases)):
        if base in _CASES or base == "object":
            continue
        if base not in classes or base in seen:
            raise TaskError(f"{where}: {node.name} may inherit tests from {base}, which is not there", fix=_FIX)
        found |= _own_and_inherited(classes[base], classes, where, (*seen, node.name))
    return found | {each.name: each for each in node.body if isinstance(each, _Function) and each.name[:4] == "test"}


def _is_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) in _CASES for base in node.bases)


def _never(mark: ast.expr) -> bool:
    return ast.unparse(mark).startswith(_NEVER_PASS)


def _parsed(text: str, where: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the strings of others
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise TaskError(f"{where} does not parse as Python: {error}") from None
