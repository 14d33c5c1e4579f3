"""Mutators of operators, comparisons, boundaries and conditions.

Owns: `EXPRESSIONS`.
Invariant: each gives valid Python wherever it gives anything.
Must not know: which sites are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from practicum.curation.synthesis.mutation.scene import Edit, Edits, Mutator, Scene

_BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "-",
    cst.Subtract: "+",
    cst.Multiply: "//",
    cst.Divide: "//",
    cst.FloorDivide: "%",
    cst.Modulo: "//",
    cst.Power: "*",
    cst.LeftShift: ">>",
    cst.RightShift: "<<",
    cst.BitAnd: "|",
    cst.BitOr: "&",
    cst.BitXor: "|",
}
_OPPOSITE: dict[type[cst.CSTNode], str] = {
    cst.Equal: "!=",
    cst.NotEqual: "==",
    cst.In: "not in",
    cst.NotIn: "in",
    cst.Is: "is not",
    cst.IsNot: "is",
}
_BOUNDARY: dict[type[cst.CSTNode], str] = {
    cst.LessThan: "<=",
    cst.LessThanEqual: "<",
    cst.GreaterThan: ">=",
    cst.GreaterThanEqual: ">",
}
_REVERSED: dict[type[cst.CSTNode], str] = {
    cst.LessThan: ">",
    cst.LessThanEqual: ">=",
    cst.GreaterThan: "<",
    cst.GreaterThanEqual: "<=",
}
_ORDERED = (cst.Subtract, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power, cst.LeftShift, cst.RightShift)
_TEXT = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


def _operator(node: cst.BinaryOperation, scene: Scene) -> Iterator[Edits]:
    text = isinstance(node.left, _TEXT) or isinstance(node.right, _TEXT)
    if type(node.operator) in _BINARY and not text:
        yield (scene.put(node.operator, _BINARY[type(node.operator)]),)


def _operands(node: cst.BinaryOperation, scene: Scene) -> Iterator[Edits]:
    formatting = isinstance(node.operator, cst.Modulo) and isinstance(node.left, _TEXT)
    joined = isinstance(node.operator, cst.Add) and (isinstance(node.left, _TEXT) or isinstance(node.right, _TEXT))
    # a swapped operand keeps its parentheses, but a bare one may bind weaker on the other side
    plain = all(not isinstance(side, cst.BinaryOperation) or side.lpar for side in (node.left, node.right))
    if plain and (joined or (isinstance(node.operator, _ORDERED) and not formatting)):
        yield scene.swap(node.left, node.right)


def _operand_dropped(node: cst.BinaryOperation, scene: Scene) -> Iterator[Edits]:
    if isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply)):
        yield (scene.put_inner(node, scene.text(node.left)),)
        if isinstance(node.operator, cst.Add):
            yield (scene.put_inner(node, scene.text(node.right)),)


def _sign_dropped(node: cst.UnaryOperation, scene: Scene) -> Iterator[Edits]:
    literal = isinstance(node.operator, cst.Minus) and isinstance(node.expression, (cst.Integer, cst.Float))
    if isinstance(node.operator, (cst.Minus, cst.BitInvert)) and not literal:
        yield (scene.put_inner(node, scene.text(node.expression)),)


def _comparison(node: cst.ComparisonTarget, scene: Scene) -> Iterator[Edits]:
    for table in (_OPPOSITE, _REVERSED):
        if type(node.operator) in table:
            yield (scene.put(node.operator, table[type(node.operator)]),)


def _identity(node: cst.ComparisonTarget, scene: Scene) -> Iterator[Edits]:
    """`is None` taken for falsehood, a frequent slip."""
    comparison = scene.parents[-1]
    if isinstance(comparison, cst.Comparison) and len(comparison.comparisons) == 1 and not comparison.lpar:
        none = isinstance(node.comparator, cst.Name) and node.comparator.value == "None"
        simple = isinstance(comparison.left, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        if none and simple and isinstance(node.operator, (cst.Is, cst.IsNot)):
            left = scene.text(comparison.left)
            yield (scene.put(comparison, f"not {left}" if isinstance(node.operator, cst.Is) else left),)


def _boundary(node: cst.ComparisonTarget, scene: Scene) -> Iterator[Edits]:
    if type(node.operator) in _BOUNDARY:
        yield (scene.put(node.operator, _BOUNDARY[type(node.operator)]),)


def _chain(node: cst.Comparison, scene: Scene) -> Iterator[Edits]:
    """`a < b < c` loses a bound."""
    if len(node.comparisons) == 2:
        last = scene.span(node.comparisons[1])
        yield (Edit(*last, ""),)
        yield (Edit(scene.outer(node.left)[0], scene.outer(node.comparisons[0].comparator)[0], ""),)


def _index(node: cst.Index, scene: Scene) -> Iterator[Edits]:
    value = node.value
    if isinstance(value, cst.Integer):
        yield (scene.put(value, "1" if value.value == "0" else "0"),)
    elif isinstance(value, cst.UnaryOperation) and isinstance(value.expression, cst.Integer):
        yield (scene.put(value, "0" if value.expression.value == "1" else "-1"),)


def _slice(node: cst.Slice, scene: Scene) -> Iterator[Edits]:
    for bound in (node.lower, node.upper):
        if bound is None:
            continue
        yield (scene.put(bound, ""),)
        if isinstance(bound, cst.Integer):
            yield (scene.put(bound, str(int(bound.value, 0) + 1)),)
        elif isinstance(bound, (cst.Name, cst.Attribute, cst.Call)):
            yield (scene.put(bound, f"{scene.text(bound)} + 1"),)
            yield (scene.put(bound, f"{scene.text(bound)} - 1"),)


def _offset(node: cst.BinaryOperation, scene: Scene) -> Iterator[Edits]:
    """`n + 1` and `n - 1` written as `n`."""
    one = isinstance(node.right, cst.Integer) and node.right.value == "1"
    if one and isinstance(node.operator, (cst.Add, cst.Subtract)):
        yield (scene.put_inner(node, scene.text(node.left)),)


def _length(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    if isinstance(node.func, cst.Name) and node.func.value == "len" and len(node.args) == 1:
        weak = isinstance(scene.parents[-1], (cst.BinaryOperation, cst.UnaryOperation))
        text = f"{scene.text(node)} - 1"
        yield (scene.put(node, f"({text})" if weak else text),)


def _negated(node: cst.If | cst.While | cst.IfExp, scene: Scene) -> Iterator[Edits]:
    test = node.test
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield (scene.put(test, scene.text(test.expression)),)
    elif (
        isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and type(test.comparisons[0].operator) in (_OPPOSITE | _REVERSED)
    ):
        return  # said in the same place by the other operator
    elif isinstance(test, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Comparison)) or test.lpar:
        if not (isinstance(node, cst.While) and isinstance(test, cst.Name) and test.value == "True"):
            yield (scene.put(test, f"not {scene.text(test)}"),)
    elif isinstance(test, cst.BooleanOperation):
        yield (scene.put(test, f"not ({scene.text(test)})"),)


def _filter(node: cst.CompIf, scene: Scene) -> Iterator[Edits]:
    """A comprehension that keeps everything, or the wrong half."""
    yield (Edit(*scene.span(node), ""),)
    if isinstance(node.test, (cst.Name, cst.Attribute, cst.Call)):
        yield (scene.put(node.test, f"not {scene.text(node.test)}"),)


def _joined(node: cst.BooleanOperation, scene: Scene) -> Iterator[Edits]:
    mixed = any(isinstance(side, cst.BooleanOperation) and not side.lpar for side in (node.left, node.right))
    if not mixed and not isinstance(scene.parents[-1], cst.BooleanOperation):
        yield (scene.put(node.operator, "or" if isinstance(node.operator, cst.And) else "and"),)


def _operand_forgotten(node: cst.BooleanOperation, scene: Scene) -> Iterator[Edits]:
    yield (scene.put_inner(node, scene.text(node.left)),)
    yield (scene.put_inner(node, scene.text(node.right)),)


def _choice(node: cst.IfExp, scene: Scene) -> Iterator[Edits]:
    if not any(isinstance(side, (cst.IfExp, cst.Lambda)) for side in (node.body, node.orelse)):
        yield scene.swap(node.body, node.orelse)
        yield (scene.put_inner(node, scene.text(node.body)),)
        yield (scene.put_inner(node, scene.text(node.orelse)),)


def _elements(node: cst.Tuple | cst.List, scene: Scene) -> Iterator[Edits]:
    """Two neighbours of a display change places; of a literal without names there is no telling the order."""
    values = [element.value for element in node.elements if isinstance(element, cst.Element)]
    if len(values) == len(node.elements) <= 4:
        for one, other in pairwise(values):
            if scene.text(one) != scene.text(other):
                yield scene.swap(one, other)


EXPRESSIONS = (
    Mutator("operator", "operators", (cst.BinaryOperation,), _operator),
    Mutator("operands-swapped", "operators", (cst.BinaryOperation,), _operands),
    Mutator("operand-dropped", "operators", (cst.BinaryOperation,), _operand_dropped),
    Mutator("sign-dropped", "operators", (cst.UnaryOperation,), _sign_dropped),
    Mutator("elements-swapped", "operators", (cst.Tuple, cst.List), _elements),
    Mutator("comparison", "comparisons", (cst.ComparisonTarget,), _comparison),
    Mutator("none-as-false", "comparisons", (cst.ComparisonTarget,), _identity),
    Mutator("boundary", "boundaries", (cst.ComparisonTarget,), _boundary),
    Mutator("bound-dropped", "boundaries", (cst.Comparison,), _chain),
    Mutator("index", "boundaries", (cst.Index,), _index),
    Mutator("slice", "boundaries", (cst.Slice,), _slice),
    Mutator("offset-dropped", "boundaries", (cst.BinaryOperation,), _offset),
    Mutator("length", "boundaries", (cst.Call,), _length),
    Mutator("condition-negated", "conditions", (cst.If, cst.While, cst.IfExp), _negated),
    Mutator("filter", "conditions", (cst.CompIf,), _filter),
    Mutator("and-or", "conditions", (cst.BooleanOperation,), _joined),
    Mutator("operand-forgotten", "conditions", (cst.BooleanOperation,), _operand_forgotten),
    Mutator("choice", "conditions", (cst.IfExp,), _choice),
)
