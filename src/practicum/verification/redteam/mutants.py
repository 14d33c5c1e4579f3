"""Wrong variants of a gold: one small change each, of the kinds that people and models make.

Owns: `mutants_of`.
Invariant: pure and seeded; no two mutants, and no mutant and the gold, are provably the same program. A mutant may
still be right by the meaning of the work: only tests tell, so one that they accept is shown, not judged, here.
Must not know: tasks, boxes.
"""

from __future__ import annotations

import ast
import copy
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from practicum.verification.redteam.variants import Source, Variant, function_key, parse

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_BINARY: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Pow),
    ast.Div: (ast.FloorDiv, ast.Mult),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "append": "extend",
    "lower": "upper",
}
_SYMMETRIC = {"min", "max", "gcd", "lcm", "hypot", "isclose", "union", "intersection"}
"""Functions to which the order of their arguments is all the same, or that tell it apart only between equals."""
_SHOWN_CHARS = 20
_REMOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete, ast.If, ast.For, ast.Break, ast.Continue)

Edit = Callable[[ast.AST], None]


def mutants_of(source: Source, limit: int, seed: str) -> list[Variant]:
    """At most `limit` mutants of the functions in `source`, spread evenly over kinds of change."""
    functions = source.functions(source.tree())
    keys = {(which, repr(function_key(function))) for which, function in enumerate(functions)}
    by_kind: dict[str, list[_Change]] = {}
    for change in _changes(functions):
        by_kind.setdefault(change.name.partition(":")[0], []).append(change)
    rng = random.Random(f"mutants-{seed}")
    for kind in sorted(by_kind):
        rng.shuffle(by_kind[kind])
    stored = [pickle.dumps(function) for function in functions]  # read back far faster than copied
    chosen: list[Variant] = []
    fit = set[int]()
    while len(chosen) < limit and any(by_kind.values()):
        for kind in sorted(by_kind):
            made = None
            while by_kind[kind] and made is None and len(chosen) < limit:
                change = by_kind[kind].pop()
                made = _made(source, functions, change, pickle.loads(stored[change.which]), keys, fit)
            chosen += [made] if made is not None else []
    return chosen


@dataclass(frozen=True, slots=True)
class _Change:
    """What is done to the node that a walk of function `which` comes to as number `at`."""

    name: str
    line: int
    which: int
    at: int
    edit: Edit


def _made(
    source: Source,
    functions: Sequence[ast.FunctionDef],
    change: _Change,
    function: ast.FunctionDef,
    keys: set[tuple[int, str]],
    fit: set[int],
) -> Variant | None:
    """The mutant, where it is a program and none of `keys`, to which it is added. `function` is changed.

    `fit` are the numbers of functions that were seen to fit into the file, changed.
    """
    change.edit(list(ast.walk(function))[change.at])
    key = change.which, repr(function_key(function))
    if key[1] == repr(None) or key in keys:
        return None
    keys.add(key)
    try:
        text = source.with_function(functions[change.which], function)
        # Where one fits into the file, others do that are written without a fault.
        parse(ast.unparse(function) if change.which in fit else text)
        fit.add(change.which)
    except (SyntaxError, ValueError, RecursionError):  # a text that Python's own printer cannot write
        return None
    return Variant(change.name, change.line, text)


def _changes(functions: Sequence[ast.FunctionDef]) -> Iterator[_Change]:
    """Every change, a place being told by its number in the walk."""
    for which, function in enumerate(functions):
        nodes = list(ast.walk(function))
        notes = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings among them
        messages = notes | {
            id(part) for node in nodes if isinstance(node, ast.Raise) for part in ast.walk(node) if _text(part)
        }
        for at, node in enumerate(nodes):
            # what is told to people, here or by an exception, is hardly ever part of the work
            for name, edit in _edits(node) if id(node) not in messages else ():
                yield _Change(name, getattr(node, "lineno", 0), which, at, edit)


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _edits(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    if isinstance(node, ast.Compare):
        yield from _compare(node)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        for other in _BINARY.get(type(node.op), ()):
            yield f"operator: {_name(node.op)} to {other.__name__}", _setter("op", other())
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"boolean: {_name(node.op)} to {_name(other_op)}", _setter("op", other_op)
        yield "boolean: last operand dropped", _drop_operand
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield f"operator: {_name(node.op)} dropped", _drop_unary
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in _NAMES:
            field = "id" if isinstance(node, ast.Name) else "attr"
            yield f"call: {name} to {_NAMES[name]}", _setter(field, _NAMES[name])
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield "condition: negated", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))  # type: ignore[attr-defined]
        if not isinstance(node, ast.While):
            yield "condition: always true", _setter("test", ast.Constant(True))
            yield "condition: always false", _setter("test", ast.Constant(False))
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "return: nothing", _setter("value", ast.Constant(None))
    if isinstance(getattr(node, "body", None), list) and not isinstance(node, ast.Module):
        yield from _statements(node)


def _compare(node: ast.Compare) -> Iterator[tuple[str, Edit]]:
    for at, op in enumerate(node.ops):
        for other in _COMPARE.get(type(op), ()):
            kind = "boundary" if {type(op), other} in ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE}) else "comparison"

            def edit(n: ast.AST, at: int = at, other: type[ast.cmpop] = other) -> None:
                n.ops[at] = other()  # type: ignore[attr-defined]

            yield f"{kind}: {_name(op)} to {other.__name__}", edit


def _constant(node: ast.Constant) -> Iterator[tuple[str, Edit]]:
    value = node.value
    others: Sequence[object] = ()
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int):
        others = (value + 1, value - 1)
    elif isinstance(value, float):
        others = (value + 1.0, -value)
    elif isinstance(value, str):
        others = (value + "x", "") if value else ("x",)
    for other in others:
        yield f"constant: {_shown(value)} to {_shown(other)}", _setter("value", other)


def _shown(value: object) -> str:
    if isinstance(value, str) and len(value) > _SHOWN_CHARS:
        return repr(f"{value[:_SHOWN_CHARS]}…")
    return f"{value!r:.{2 * _SHOWN_CHARS}}"


def _call(node: ast.Call) -> Iterator[tuple[str, Edit]]:
    in_order = _name_of(node.func) not in _SYMMETRIC
    if in_order and len(node.args) >= 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
        yield "call: first arguments swapped", lambda n: n.args.__setitem__(slice(0, 2), n.args[1::-1])  # type: ignore[attr-defined]
    if isinstance(node.func, ast.Name) and node.func.id in ("range", "len") and node.args:
        for step in (ast.Add, ast.Sub):
            last = len(node.args) - 1 if node.func.id == "range" else None

            def edit(n: ast.AST, step: type[ast.operator] = step, last: int | None = last) -> None:
                call: ast.Call = n  # type: ignore[assignment]
                if last is None:  # len(x) as a whole: keep the call, change what it stands for
                    inner = copy.deepcopy(call)
                    call.func, call.args = ast.Name("int", ast.Load()), [ast.BinOp(inner, step(), ast.Constant(1))]
                else:
                    call.args[last] = ast.BinOp(call.args[last], step(), ast.Constant(1))

            yield f"boundary: {node.func.id} {'+' if step is ast.Add else '-'} 1", edit


def _statements(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    for at, statement in enumerate(body):
        if isinstance(statement, (ast.Break, ast.Continue)):
            other = ast.Continue if isinstance(statement, ast.Break) else ast.Break
            yield f"loop: {_name(statement)} to {other.__name__}", _replacer(at, other())
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, _REMOVABLE) and not docstring:
            yield f"removed: {ast.unparse(statement).splitlines()[0]:.40}", _replacer(at, ast.Pass())


def _setter(field: str, value: object) -> Edit:
    return lambda node: setattr(node, field, copy.deepcopy(value))


def _replacer(at: int, statement: ast.stmt) -> Edit:
    return lambda node: node.body.__setitem__(at, copy.deepcopy(statement))  # type: ignore[attr-defined]


def _drop_operand(node: ast.AST) -> None:
    values: list[ast.expr] = node.values  # type: ignore[attr-defined]
    values.pop()
    if len(values) == 1:  # the printer wants two; one operand twice is that operand
        values.append(copy.deepcopy(values[0]))


def _drop_unary(node: ast.AST) -> None:
    unary: ast.UnaryOp = node  # type: ignore[assignment]
    unary.op = ast.UAdd() if isinstance(unary.op, ast.USub) else ast.Not()
    if isinstance(unary.op, ast.Not):
        unary.operand = ast.UnaryOp(ast.Not(), unary.operand)


def _name_of(function: ast.expr) -> str:
    return str(getattr(function, "attr", None) or getattr(function, "id", ""))


def _name(node: ast.AST) -> str:
    return type(node).__name__
