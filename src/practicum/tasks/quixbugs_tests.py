"""What QuixBugs' tests say, as data where they say it of data, else as a suite for pytest.

Owns: `Case`, `cases_of_lines`, `cases_of_asserts`, `Suite`, `as_suite`.
Invariant: nothing is run or evaluated beyond literals; a test that would be read as something else than its author
wrote is refused. Pure. Must not know: tasks, files.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import Any

from practicum.errors import TaskError

NODE = "node"  # the module, and in capitals the class, of what graph programs are given
_CLASS = "Node"
_TUPLES = {"hanoi"}  # steps are pairs, which JSON has no form for
_WITHIN = {"sqrt"}  # the last argument is how far off the result may be


@dataclass(frozen=True, slots=True)
class Case:
    """One call and its result, a float where it may be off by `within`."""

    args: list[Any]
    expected: Any
    within: float | None = None

    def row(self, name: str) -> dict[str, Any]:
        """As a line of the runner `plain`, whose tolerance counts in proportion where numbers are above 1."""
        row = {"id": name, "args": [_tagged(each) for each in self.args], "expected": _tagged(self.expected)}
        if self.within is None:
            return row
        return row | {"approx": self.within / max(1.0, abs(self.expected) + self.within)}


def _tagged(value: Any) -> Any:
    """A literal as JSON, in the notation of plain cases for what JSON lacks."""
    if isinstance(value, (list, tuple)):
        items = [_tagged(each) for each in value]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, (set, frozenset)):
        return {"$set": [_tagged(each) for each in value]}
    if isinstance(value, dict):
        return {"$dict": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TaskError(f"{value!r} is no plain value")


def cases_of_lines(name: str, text: str, where: str) -> tuple[Case, ...]:
    """Cases of `json_testcases/NAME.json`: `[arguments, expected]` a line, some lines with a comma after them."""
    found: list[Case] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            args, expected = json.loads(line)
            args = args if isinstance(args, list) else [args]  # upstream's own way of calling with one argument
            if name in _TUPLES:
                expected = [tuple(step) for step in expected]
            if name in _WITHIN:
                found.append(Case(args, float(expected), float(args[-1])))
            else:
                found.append(Case(args, expected))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise TaskError(f"{where} line {number} is not [arguments, expected]: {error}") from None
    if not found:
        raise TaskError(f"{where} holds no case")
    return tuple(found)


def cases_of_asserts(name: str, text: str, where: str) -> tuple[Case, ...]:
    """Cases of a row whose tests are asserts about literals; none where they are anything else."""
    body = _parsed(text, where).body
    if not all(isinstance(node, ast.Assert) for node in body):
        return ()
    return tuple(_case(node, name, where) for node in body if isinstance(node, ast.Assert))


def _case(node: ast.Assert, name: str, where: str) -> Case:
    """`assert CALL == VALUE`, `assert list(CALL) == VALUE` or `assert abs(CALL - VALUE) <= WITHIN`.

    CALL is `NAME(*ARGS)`.
    """
    shown = ast.unparse(node)
    within: ast.expr | None = None
    match node.test:
        case ast.Compare(
            left=ast.Call(func=ast.Name("abs"), args=[ast.BinOp(left=call, op=ast.Sub(), right=value)]),
            ops=[ast.LtE()],
            comparators=[within],
        ):
            pass
        case ast.Compare(left=ast.Call(func=ast.Name("list"), args=[call]), ops=[ast.Eq()], comparators=[value]):
            pass
        case ast.Compare(left=call, ops=[ast.Eq()], comparators=[value]):
            pass
        case _:
            raise TaskError(f"{where}: its tests compare in a way that is not known here: {shown[:120]}")
    match call:
        case ast.Call(func=ast.Name(id=called), args=[ast.Starred(value=args)], keywords=[]) if called == name:
            try:
                given, expected = list(ast.literal_eval(args)), ast.literal_eval(value)
                if within is None:
                    return Case(given, expected)
                return Case(given, float(expected), float(ast.literal_eval(within)))
            except (ValueError, TypeError, RecursionError):
                raise TaskError(f"{where}: its tests hold more than literals: {shown[:120]}") from None
    raise TaskError(f"{where}: its tests call something else than {name}: {shown[:120]}")


@dataclass(frozen=True, slots=True)
class Suite:
    """A test file for pytest, the names of its tests, and the source of the module `node` where it uses that."""

    text: str
    tests: tuple[str, ...]
    node: str | None


def as_suite(name: str, text: str, where: str, node: str | None = None) -> Suite:
    """The suite for pytest that `text` is, importing the program as the module `name`.

    Upstream's tests share what the file makes at its top, and some change it; here each test makes it anew, so that
    they do not depend on their order. `node` is the module that upstream's tests import; rows define the class.
    """
    head: list[ast.stmt] = []
    setup: list[ast.stmt] = []
    tests: list[ast.FunctionDef] = []
    for statement in _parsed(text, where).body:
        match statement:
            case ast.ClassDef(name="Node"):
                node = ast.unparse(statement)
            case ast.FunctionDef(name=called) if called.startswith("test"):
                tests.append(_plain_test(statement, where))
            case ast.ImportFrom(module="node") | ast.If() if _mentions(statement, NODE, "use_correct"):
                pass
            case ast.Expr(value=ast.Constant()) | ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=[])):
                pass
            case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
                head.append(statement)
            case _:
                setup.append(statement)
    if not tests or len({test.name for test in tests}) != len(tests):
        raise TaskError(f"{where}: there is no test function, or two have one name")
    for test in tests:
        said = 1 if ast.get_docstring(test) is not None else 0
        test.body[said:said] = setup
    used = {each.id for part in (*head, *tests) for each in ast.walk(part) if isinstance(each, ast.Name)}
    kept = [each for each in head if not isinstance(each, (ast.Import, ast.ImportFrom)) or _binds(each) & used]
    needs_node = _CLASS in used
    if needs_node and node is None:
        raise TaskError(f"{where}: it uses {_CLASS}, which is nowhere")
    imports = [ast.parse(f"from {name} import {name}").body[0]]
    if needs_node:
        imports.insert(0, ast.parse(f"from {NODE} import {_CLASS}").body[0])
    module = ast.Module([*imports, *kept, *tests], [])
    unparsed = ast.unparse(ast.fix_missing_locations(module)) + "\n"
    shown = ast.unparse(_parsed(node, NODE)) + "\n" if needs_node and node is not None else None
    return Suite(unparsed, tuple(test.name for test in tests), shown)


def _plain_test(test: ast.FunctionDef, where: str) -> ast.FunctionDef:
    if test.decorator_list or test.args.args or test.args.vararg or test.args.kwonlyargs:
        raise TaskError(f"{where}: {test.name} takes arguments or is decorated, so its ids cannot be told by reading")
    return test


def _mentions(statement: ast.stmt, *names: str) -> bool:
    text = ast.unparse(statement)
    return any(name in text for name in names)


def _binds(statement: ast.stmt) -> set[str]:
    assert isinstance(statement, (ast.Import, ast.ImportFrom))
    return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}


def _parsed(code: str, where: str) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise TaskError(f"{where}: its tests do not parse as Python: {error}") from None
