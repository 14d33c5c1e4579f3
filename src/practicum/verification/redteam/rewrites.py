"""Single rewrites that keep a function's meaning.

Owns: `REWRITES`.
Invariant: a rewrite changes the function in place, wherever it applies outside nested scopes, and says whether it
did; the conditions under which it keeps meaning are checked on the tree. Evaluation order, results and exceptions
stay; line numbers, frames and local names do not.
Must not know: who wants variants.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from practicum.verification.redteam.scopes import (
    NESTED,
    assign,
    blocks,
    bound,
    fixed_name,
    fresh,
    has,
    load,
    loads,
    names,
    negated,
    parameters,
    rename,
    replace,
    stored,
    walk,
    word,
)

_MIRROR: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
}  # fmt: skip


def rename_locals(function: ast.FunctionDef, tree: ast.Module) -> bool:
    if any(isinstance(node, NESTED) for node in ast.walk(function) if node is not function):
        return False
    bound_otherwise = {str(n.name) for n in ast.walk(function) if isinstance(n, ast.ExceptHandler) and n.name}
    bound_otherwise |= {(n.asname or n.name).split(".")[0] for n in ast.walk(function) if isinstance(n, ast.alias)}
    names = sorted(stored(function) - parameters(function) - bound_otherwise)
    rename(function, {name: fresh(tree, f"{name}_here") for name in names})
    return bool(names)


def invert_if(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    found = [node for node in walk(function) if isinstance(node, ast.If) and node.orelse]
    for node in found:
        node.test, node.body, node.orelse = negated(node.test), node.orelse, node.body
    return bool(found)


def name_the_result(function: ast.FunctionDef, tree: ast.Module) -> bool:
    name = fresh(tree, "outcome")

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Return) or isinstance(statement.value, (ast.Name, ast.Constant, type(None))):
            return None
        return [assign(name, statement.value), ast.Return(load(name))]

    return replace(function, change)


def de_morgan(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    done = False
    for node in walk(function):
        test = getattr(node, "test", None)
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and isinstance(test, ast.BoolOp):
            other = ast.Or() if isinstance(test.op, ast.And) else ast.And()
            node.test = negated(ast.BoolOp(other, [negated(value) for value in test.values]))
            done = True
    return done


def comprehension_to_loop(function: ast.FunctionDef, tree: ast.Module) -> bool:
    name = fresh(tree, "gathered")

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Return, ast.Assign)) or not isinstance(value, ast.ListComp):
            return None
        if len(value.generators) != 1 or has(value, ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom):
            return None
        part = value.generators[0]
        names = {old: fresh(tree, f"{old}_each") for old in stored(part.target)}
        for piece in (part.target, value.elt, *part.ifs):
            rename(piece, names)
        append = ast.Expr(ast.Call(ast.Attribute(load(name), "append", ast.Load()), [value.elt], []))
        body: list[ast.stmt] = [append]
        for test in reversed(part.ifs):
            body = [ast.If(test, body, [])]
        statement.value = load(name)
        return [assign(name, ast.List([], ast.Load())), ast.For(part.target, part.iter, body, [], lineno=0), statement]

    return replace(function, change)


def loop_to_comprehension(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    if has(function, ast.Try, ast.With):  # what a broken-off loop has gathered could be seen
        return False
    for block in blocks(function):
        for at, (first, loop) in enumerate(pairwise(block)):
            made = _gathering(first, loop, function)
            if made is not None:
                block[at : at + 2] = [made]
                return True
    return False


def _gathering(first: ast.stmt, loop: ast.stmt, function: ast.FunctionDef) -> ast.Assign | None:
    """`a = []` and a loop that only appends to `a`, as one assignment."""
    if not (isinstance(first, ast.Assign) and isinstance(first.value, ast.List) and not first.value.elts):
        return None
    if len(first.targets) != 1 or not isinstance(first.targets[0], ast.Name) or not isinstance(loop, ast.For):
        return None
    name, body, tests = first.targets[0].id, loop.body, list[ast.expr]()
    while len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
        tests.append(body[0].test)
        body = body[0].body
    call = getattr(body[0], "value", None) if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != f"{name}.append" or loop.orelse or call.keywords:
        return None
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    pieces = [loop.iter, call.args[0], *tests]
    banned = (*NESTED, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.comprehension)
    if any(has(piece, *banned) or name in names(piece) for piece in pieces):
        return None
    targets = stored(loop.target)
    inside, everywhere = list(ast.walk(loop)), list(ast.walk(function))
    if any(word(node) in targets for node in everywhere if not any(node is other for other in inside)):
        return None  # the loop's variable is seen after it
    comprehension = ast.comprehension(loop.target, loop.iter, tests, 0)
    return assign(name, ast.ListComp(call.args[0], [comprehension]))


def extract_helper(function: ast.FunctionDef, tree: ast.Module) -> bool:
    if function not in tree.body or function.decorator_list:
        return False
    locals_ = bound(function)
    for node in walk(function):
        value = node.value if isinstance(node, ast.Return) else None
        if value is None or isinstance(value, (ast.Name, ast.Constant)) or function.name in names(value):
            continue
        if has(value, ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom) or stored(value) & locals_ & loads(value):
            continue
        used = sorted(loads(value) & (locals_ - stored(value)))
        name = fresh(tree, f"_{function.name}_result")
        arguments = ast.arguments([], [ast.arg(word) for word in used], None, [], [], None, [])
        extra: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
        helper = ast.FunctionDef(name, arguments, [ast.Return(value)], [], None, None, lineno=0, **extra)
        node.value = ast.Call(load(name), [load(word) for word in used], [])  # type: ignore[attr-defined]
        tree.body.insert(tree.body.index(function), helper)
        return True
    return False


def delegate(function: ast.FunctionDef, tree: ast.Module) -> bool:
    """The work moves to a function of another name, and this one calls it."""
    if function not in tree.body or function.decorator_list or function.name in names(ast.Module(function.body, [])):
        return False
    inner = copy.deepcopy(function)
    inner.name = fresh(tree, f"_{function.name}_work")
    tree.body.insert(tree.body.index(function), inner)
    call = ast.parse(f"def f(*given, **named):\n    return {inner.name}(*given, **named)").body[0]
    assert isinstance(call, ast.FunctionDef)
    function.args, function.body, function.returns = call.args, call.body, None
    return True


def nest_conditions(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    found = [n for n in walk(function) if isinstance(n, ast.If) and isinstance(n.test, ast.BoolOp) and not n.orelse]
    found = [node for node in found if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)]
    for node in found:
        first, *rest = node.test.values  # type: ignore[attr-defined]
        inner = rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)
        node.test, node.body = first, [ast.If(inner, node.body, [])]
    return bool(found)


def else_after_return(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    for block in blocks(function):
        for at, statement in enumerate(block[:-1]):
            if (
                isinstance(statement, ast.If)
                and not statement.orelse
                and isinstance(statement.body[-1], (ast.Return, ast.Raise))
            ):
                statement.orelse = block[at + 1 :]
                del block[at + 1 :]
                return True
    return False


def spell_out_choice(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    """`return a if c else b`, and the assignment of it to a name, as a statement."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        value = getattr(statement, "value", None)
        plain = isinstance(statement, ast.Return) or (
            isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
        )
        if not plain or not isinstance(value, ast.IfExp):
            return None
        yes, no = copy.deepcopy(statement), copy.deepcopy(statement)
        yes.value, no.value = value.body, value.orelse  # type: ignore[attr-defined]
        return [ast.If(value.test, [yes], [no])]

    return replace(function, change)


def while_true(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    found = [
        n for n in walk(function) if isinstance(n, ast.While) and not n.orelse and not isinstance(n.test, ast.Constant)
    ]
    for node in found:
        node.body.insert(0, ast.If(negated(node.test), [ast.Break()], []))
        node.test = ast.Constant(True)
    return bool(found)


def iterate_by_hand(function: ast.FunctionDef, tree: ast.Module) -> bool:
    source, each = fresh(tree, "source"), fresh(tree, "each")
    count = 0

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        nonlocal count
        if not isinstance(statement, ast.For) or statement.orelse:
            return None
        count += 1
        iterator, item = f"{source}_{count}", f"{each}_{count}"
        take = assign(item, ast.Call(load("next"), [load(iterator)], []))
        handler = ast.ExceptHandler(load("StopIteration"), None, [ast.Break()])
        step = ast.Assign([statement.target], load(item), lineno=0)
        body = [ast.Try([take], [handler], [], []), step, *statement.body]
        start = assign(iterator, ast.Call(load("iter"), [statement.iter], []))
        return [start, ast.While(ast.Constant(True), body, [])]

    return not {"iter", "next", "StopIteration"} & stored(tree) and replace(function, change)


def mirror_comparisons(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    """Only where one side is a number written out: no order of evaluation changes."""
    done = False
    for node in walk(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _MIRROR:
            left, right = node.left, node.comparators[0]
            if any(isinstance(s, ast.Constant) and type(s.value) in (int, float) for s in (left, right)):
                node.left, node.comparators, node.ops = right, [left], [_MIRROR[type(node.ops[0])]()]
                done = True
    return done


def swap_assignments(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    """Neighbours that give different names values which nothing can change or observe."""
    for block in blocks(function):
        for at, pair in enumerate(pairwise(block)):
            names = [fixed_name(statement) for statement in pair]
            if None not in names and names[0] != names[1]:
                block[at], block[at + 1] = pair[1], pair[0]
                return True
    return False


def document(function: ast.FunctionDef, _tree: ast.Module) -> bool:
    """A docstring where there is none, and annotations that say nothing."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for argument in arguments:
        argument.annotation = argument.annotation or ast.Constant("object")
    if ast.get_docstring(function) is None:
        function.body.insert(0, ast.Expr(ast.Constant("Do what the name says.")))
    return True


REWRITES: Mapping[str, Callable[[ast.FunctionDef, ast.Module], bool]] = {
    "locals renamed": rename_locals,
    "if and else inverted": invert_if,
    "result named": name_the_result,
    "De Morgan": de_morgan,
    "comprehension to loop": comprehension_to_loop,
    "loop to comprehension": loop_to_comprehension,
    "helper extracted": extract_helper,
    "work delegated": delegate,
    "conditions nested": nest_conditions,
    "else after return": else_after_return,
    "choice spelled out": spell_out_choice,
    "endless loop with break": while_true,
    "iterator by hand": iterate_by_hand,
    "comparisons mirrored": mirror_comparisons,
    "assignments swapped": swap_assignments,
    "documented and annotated": document,
}
