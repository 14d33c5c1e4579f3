"""What one assertion asks, and which answers exclude each other.

Owns: `Question` (as found, before names are settled), `ask`: from a statement to its question, or None.
Invariant: whatever deterministic value the tested code gives, at most one alternative of a question holds (an
`unlikely` needle aside). An alternative that changes a constant is *strong*: nothing in the file tells it from the
author's, though a language may (`literals.is_readable`). One that turns a condition round, or changes a value while the
test runs, is *weak*: a reader can guess.
Must not know: variants, where names get their values.
"""

from __future__ import annotations

import ast
import copy
import math
from dataclasses import dataclass, field, replace
from typing import Literal

from practicum.verification.sentinels.literals import is_literal, magnitude

Kind = Literal["constant", "disjoint", "condition", "value", "exception", "no_exception"]

_INVERSE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_METHOD_PAIRS = (
    *(("assertTrue", "assertFalse"), ("assertIs", "assertIsNot"), ("assertIsNone", "assertIsNotNone")),
    *(("assertIn", "assertNotIn"), ("assertIsInstance", "assertNotIsInstance"), ("assertRegex", "assertNotRegex")),
    *(("assertGreater", "assertLessEqual"), ("assertGreaterEqual", "assertLess"), ("assertEqual", "assertNotEqual")),
    ("assertAlmostEqual", "assertNotAlmostEqual"),
)
_OPPOSITE = dict(_METHOD_PAIRS) | {other: one for one, other in _METHOD_PAIRS}
_EQUAL_METHODS = frozenset(
    f"assert{name}Equal" for name in ("", "List", "Tuple", "Dict", "Set", "MultiLine", "Sequence", "Count", "Almost")
)
_EQUAL_FUNCTIONS = frozenset(
    ["assert_equal", "assert_array_equal", "assert_almost_equal", "assert_array_almost_equal", "assert_allclose"]
)
_CLOSE = frozenset(["isclose", "allclose", "array_equal"])
_RAISES = frozenset(["raises", "assertRaises", "assertRaisesRegex"])
_ABSOLUTE = frozenset(["abs", "abs_tol", "atol", "delta"])
_RELATIVE = frozenset(["rel", "rel_tol", "rtol"])
_DIGITS = frozenset(["places", "decimal"])
MOVE = 1.0  # `inside/checks.py` changes a number by more than this, and by more than its own size
_TOLERANCES = {"assertAlmostEqual": 1e-6, "assert_almost_equal": 1e-5, "assert_array_almost_equal": 1e-4}


@dataclass(frozen=True, slots=True)
class Question:
    """Alternatives are made by changing every expression of `slots`, in the way that `kind` names.

    `names` are slots that are names, to be settled by where they get their values. `gap` is the tolerance that a
    changed number must exceed, `relative` the part of its own size that does so. `replacement` is the other side of
    a condition. `broad` says that any exception within the statement is its failure, not the test's. `caught` is the
    name under which the test can look at what was raised: it can be asked only where it does not.
    """

    kind: Kind
    slots: tuple[ast.expr, ...]
    gap: float = 0.0
    relative: float = 0.0
    replacement: ast.expr | None = None
    names: tuple[ast.Name, ...] = field(default=())
    broad: bool = False
    caught: str | None = None


def ask(statement: ast.stmt) -> Question | None:
    """The question of an assertion; None where `statement` is none that has another answer."""
    if isinstance(statement, ast.Assert):
        return _condition(statement.test)
    if isinstance(statement, (ast.With, ast.AsyncWith)) and len(statement.items) == 1:
        found, caught = _raises(statement.items[0].context_expr), statement.items[0].optional_vars
        if found is None or caught is None:
            return found
        return replace(found, caught=caught.id) if isinstance(caught, ast.Name) else None
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    name, arguments = called(call), call.args
    if name in _RAISES and len(arguments) > 1:
        return _raises(call)
    if name in _EQUAL_METHODS | _EQUAL_FUNCTIONS and len(arguments) >= 2:
        gap, relative = _tolerance(call, _TOLERANCES.get(name, 0.0), 1e-6 if name == "assert_allclose" else 0.0)
        if (equal := _equal(arguments[0], arguments[1], gap, relative)) is not None:
            return equal
    if isinstance(call.func, ast.Attribute) and name in ("assertTrue", "assertFalse") and arguments:
        inner = _condition(arguments[0])
        if name == "assertTrue" and inner.kind in ("constant", "disjoint"):
            return inner
    if isinstance(call.func, ast.Attribute) and name in _OPPOSITE and arguments:
        other = copy.copy(call.func)
        other.attr = _OPPOSITE[name]
        return Question("condition", (call.func,), replacement=other)
    return None


def called(call: ast.Call) -> str:
    """The last part of the called name, or ""."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _condition(test: ast.expr) -> Question:
    """What `assert test` asks."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(operator, ast.Eq) and (equal := _equal(left, right)) is not None:
            return equal
        if isinstance(operator, ast.Is) and isinstance(right, ast.Constant) and isinstance(right.value, bool):
            return Question("constant", (right,))
        if isinstance(operator, ast.In) and isinstance(right, (ast.List, ast.Tuple, ast.Set)) and is_literal(right):
            return Question("disjoint", (right,))
        if isinstance(operator, (ast.Lt, ast.LtE)) and (near := _near(left, right)) is not None:
            return near
        other = ast.Compare(left, [_INVERSE[type(operator)]()], [right])
        return Question("condition", (test,), replacement=other)
    if isinstance(test, ast.Call) and called(test) in _CLOSE and len(test.args) >= 2:
        found = _equal(test.args[0], test.args[1], *_tolerance(test, 1e-8, 1e-4))
        if found is not None:
            return found
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = [_condition(value) for value in test.values]
        strong = [part for part in parts if part.kind == "constant" and not part.names]
        if strong:
            return Question("constant", strong[0].slots, gap=strong[0].gap, relative=strong[0].relative)
    negated = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    return Question("condition", (test,), replacement=negated or ast.UnaryOp(ast.Not(), test))


def _equal(left: ast.expr, right: ast.expr, gap: float = 0.0, relative: float = 0.0) -> Question | None:
    """Of two operands that must be equal, the one that is written down; None where a tolerance is not."""
    sides = [_inner(right, gap, relative), _inner(left, gap, relative)]
    for side, near, part in sides:
        if is_literal(side):
            return Question("constant", (side,), near, part) if math.isfinite(near) else None
    for side, near, part in sides:
        if isinstance(side, ast.Name):
            return Question("constant", (side,), near, part, names=(side,)) if math.isfinite(near) else None
    quiet = [item for item in sides if not any(isinstance(node, ast.Call) for node in ast.walk(item[0]))]
    side, near, part = (quiet or sides)[0]
    return Question("value", (side,), near, part) if near <= MOVE else None


def _inner(operand: ast.expr, gap: float, relative: float) -> tuple[ast.expr, float, float]:
    """What an operand holds, and the tolerance it is compared with: of `approx(x)` that is x."""
    if isinstance(operand, ast.Call) and called(operand) == "approx" and operand.args:
        return operand.args[0], *_tolerance(operand, 1e-11, 1e-5)
    return operand, gap, relative


def _tolerance(call: ast.Call, absolute: float, relative: float) -> tuple[float, float]:
    """How far a number must move to be outside the call's tolerance: at least so much, and this part of itself.

    Infinite where the tolerance is not written down as a number.
    """
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if called(call) in _TOLERANCES and len(call.args) > 2:
        given["places"] = call.args[2]
    for name, value in given.items():
        if name not in _ABSOLUTE | _RELATIVE | _DIGITS:
            continue
        number = ast.literal_eval(value) if is_literal(value) else ""
        if number is None:
            continue  # as if it was not given
        if not isinstance(number, (int, float)):
            return math.inf, 0.0
        if name in _ABSOLUTE:
            absolute = 4 * magnitude(number)
        elif name in _RELATIVE:
            relative = 4 * magnitude(number)
        else:
            absolute = 4 * 10.0 ** -min(300, number) if number > -300 else math.inf
    return absolute, relative


def _near(left: ast.expr, right: ast.expr) -> Question | None:
    """`abs(a - b) < tolerance`, which is equality as well."""
    if not (isinstance(left, ast.Call) and called(left) == "abs" and len(left.args) == 1 and is_literal(right)):
        return None
    difference, tolerance = left.args[0], ast.literal_eval(right)
    if not (isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Sub)):
        return None
    if type(tolerance) not in (int, float):
        return None
    found = _equal(difference.left, difference.right, 4 * magnitude(tolerance))
    return found if found is not None and found.kind == "constant" else None


def _raises(call: ast.expr) -> Question | None:
    """A statement that must raise: another exception, or none at all where every exception would do."""
    if not isinstance(call, ast.Call) or called(call) not in _RAISES or not call.args:
        return None
    wanted = call.args[0]
    names = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    if any(isinstance(name, ast.Name) and name.id in ("Exception", "BaseException") for name in names):
        return Question("no_exception", (call,), broad=True) if len(call.args) == 1 else None
    if not all(isinstance(name, (ast.Name, ast.Attribute)) for name in names):
        return None
    return Question("exception", (wanted,), broad=True)
