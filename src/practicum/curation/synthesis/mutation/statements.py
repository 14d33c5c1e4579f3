"""Mutators of returns, loops, assignments, exceptions and branches.

Owns: `STATEMENTS`.
Invariant: each gives valid Python wherever it gives anything.
Must not know: which sites are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from practicum.curation.synthesis.mutation.scene import Edit, Edits, Mutator, Scene

_AUGMENTED: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.AddAssign: ("-=", "="),
    cst.SubtractAssign: ("+=", "="),
    cst.MultiplyAssign: ("+=", "="),
    cst.DivideAssign: ("*=", "//="),
    cst.FloorDivideAssign: ("/=", "%="),
    cst.ModuloAssign: ("//=",),
    cst.BitOrAssign: ("&=", "="),
    cst.BitAndAssign: ("|=", "="),
    cst.BitXorAssign: ("|=",),
    cst.LeftShiftAssign: (">>=",),
    cst.RightShiftAssign: ("<<=",),
}
_ERRORS = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "KeyError",
    "StopIteration": "RuntimeError",
    "RuntimeError": "ValueError",
    "NotImplementedError": "RuntimeError",
    "OSError": "ValueError",
    "ImportError": "AttributeError",
    "UnicodeDecodeError": "UnicodeEncodeError",
    "OverflowError": "ZeroDivisionError",
    "ZeroDivisionError": "OverflowError",
    "LookupError": "ValueError",
}


def _single(line: cst.SimpleStatementLine) -> cst.CSTNode | None:
    return line.body[0] if len(line.body) == 1 else None


def _return(node: cst.Return, scene: Scene) -> Iterator[Edits]:
    if node.value is None or (isinstance(node.value, cst.Name) and node.value.value == "None"):
        return
    value = node.value
    yield (scene.put(value, "None"),)
    if isinstance(value, cst.Name) and value.value in ("True", "False"):
        yield (scene.put(value, "False" if value.value == "True" else "True"),)
    elif isinstance(value, (cst.Comparison, cst.BooleanOperation)):
        yield (scene.put(value, f"not ({scene.text(value)})"),)
    elif isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not):
        yield (scene.put(value, scene.text(value.expression)),)


def _return_fallen_through(node: cst.SimpleStatementLine, scene: Scene) -> Iterator[Edits]:
    """A return that is forgotten, where more statements follow somewhere."""
    if isinstance(_single(node), cst.Return) and scene.inside(cst.If, cst.For, cst.While, cst.Try):
        yield scene.remove(node)


def _yield(node: cst.SimpleStatementLine, scene: Scene) -> Iterator[Edits]:
    inner = _single(node)
    if isinstance(inner, cst.Expr) and isinstance(inner.value, cst.Yield) and scene.inside(cst.If, cst.For, cst.While):
        yield scene.remove(node)


def _break(node: cst.Break | cst.Continue, scene: Scene) -> Iterator[Edits]:
    yield (scene.put(node, "continue" if isinstance(node, cst.Break) else "break"),)


def _break_dropped(node: cst.SimpleStatementLine, scene: Scene) -> Iterator[Edits]:
    if isinstance(_single(node), (cst.Break, cst.Continue)):
        yield scene.remove(node)


def _early_exit(node: cst.For, scene: Scene) -> Iterator[Edits]:
    """The loop ends after its first round."""
    if isinstance(node.body, cst.IndentedBlock) and node.body.body:
        last = node.body.body[-1]
        if not isinstance(_single(last) if isinstance(last, cst.SimpleStatementLine) else last, _ENDS):
            start, end = scene.span(last)
            column = scene.data[scene.starts[scene.line(start) - 1] : start]
            if not column.strip():
                at = scene.whole_lines(start, end)[1]
                newline = scene.module.default_newline
                before = "" if scene.data[:at].endswith(b"\n") else newline
                yield (Edit(at, at, f"{before}{column.decode()}break{newline}"),)


_ENDS = (cst.Return, cst.Raise, cst.Break, cst.Continue)


def _range(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    plain = all(arg.keyword is None and not arg.star for arg in node.args)
    if not (isinstance(node.func, cst.Name) and node.func.value == "range" and node.args and plain):
        return
    stop = node.args[0] if len(node.args) == 1 else node.args[1]
    compact = isinstance(stop.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation))
    if compact and not (isinstance(stop.value, cst.BinaryOperation) and isinstance(stop.value.right, cst.Integer)):
        yield (scene.put(stop.value, f"{scene.text(stop.value)} - 1"),)
        yield (scene.put(stop.value, f"{scene.text(stop.value)} + 1"),)
    if len(node.args) == 1:
        yield (scene.put(stop.value, f"1, {scene.text(stop.value)}"),)
    elif isinstance(node.args[0].value, cst.Integer):
        start = int(node.args[0].value.value, 0)
        yield (scene.put(node.args[0].value, str(start - 1 if start == 1 else start + 1)),)
    if len(node.args) == 3 and isinstance(node.args[2].value, cst.UnaryOperation):
        yield (scene.put(node.args[2].value, scene.text(node.args[2].value.expression)),)


def _enumerate(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    if isinstance(node.func, cst.Name) and node.func.value == "enumerate":
        if len(node.args) == 1:
            yield (scene.put(node.args[0].value, f"{scene.text(node.args[0].value)}, 1"),)
        elif len(node.args) == 2:
            yield (Edit(scene.outer(node.args[0].value)[1], scene.span(node.args[1])[1], ""),)


def _assigned_names(function: cst.FunctionDef, before: int, scene: Scene) -> set[str]:
    """Parameters, and names that an assignment in `function` gives a value above byte `before`."""
    found = set(_parameters(function))
    todo: list[cst.CSTNode] = [function.body]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Name):
            if scene.span(node)[0] < before:
                found.add(node.target.value)
        elif not isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            todo.extend(node.children)
    return found


def _parameters(function: cst.FunctionDef) -> Iterator[str]:
    params = function.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        yield param.name.value


def _assignment(node: cst.SimpleStatementLine, scene: Scene) -> Iterator[Edits]:
    """An assignment that is forgotten, where the name or attribute has a value without it too."""
    inner, function = _single(node), scene.function()
    if function is None or not isinstance(inner, (cst.Assign, cst.AugAssign, cst.Del)):
        return
    if isinstance(inner, cst.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0].target, cst.Name):
        if inner.targets[0].target.value not in _assigned_names(function, scene.span(inner)[0], scene):
            return
    elif isinstance(inner, cst.Assign) and not isinstance(inner.targets[0].target, (cst.Attribute, cst.Subscript)):
        return
    elif isinstance(inner, cst.Assign) and function.name.value == "__init__":
        return  # an attribute that is missing everywhere is no bug that anyone looks for
    yield scene.remove(node)


def _augmented(node: cst.AugAssign, scene: Scene) -> Iterator[Edits]:
    for other in _AUGMENTED.get(type(node.operator), ()):
        yield (scene.put(node.operator, other),)


def _targets(node: cst.Assign, scene: Scene) -> Iterator[Edits]:
    """`a, b = …` written as `b, a = …`."""
    target = node.targets[0].target if len(node.targets) == 1 else None
    if isinstance(target, cst.Tuple) and not isinstance(node.value, cst.Tuple):
        names = [element.value for element in target.elements if isinstance(element, cst.Element)]
        if len(names) == len(target.elements) in (2, 3) and all(isinstance(name, cst.Name) for name in names):
            yield scene.swap(names[0], names[1])


def _raise(node: cst.SimpleStatementLine, scene: Scene) -> Iterator[Edits]:
    if isinstance(_single(node), cst.Raise) and scene.inside(cst.If, cst.For, cst.While, cst.Try):
        yield scene.remove(node)


def _error_type(node: cst.Raise, scene: Scene) -> Iterator[Edits]:
    name = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
    if isinstance(name, cst.Name) and name.value in _ERRORS:
        yield (scene.put(name, _ERRORS[name.value]),)


def _handler_type(node: cst.ExceptHandler, scene: Scene) -> Iterator[Edits]:
    if isinstance(node.type, cst.Name) and node.type.value in _ERRORS:
        yield (scene.put(node.type, _ERRORS[node.type.value]),)
    elif isinstance(node.type, cst.Tuple) and len(node.type.elements) > 1:
        for element in node.type.elements:
            yield (scene.put(node.type, scene.text(element.value)),)


def _handler_dropped(node: cst.ExceptHandler, scene: Scene) -> Iterator[Edits]:
    """One of several handlers goes; an only one lets the error through."""
    around = scene.parents[-1]
    if isinstance(around, cst.Try) and len(around.handlers) > 1:
        yield (Edit(*scene.whole_lines(*scene.span(node)), ""),)
    elif isinstance(node.body, cst.IndentedBlock) and not _raises_only(node.body):
        start = scene.span(node.body.body[0])[0]
        yield (Edit(start, scene.span(node.body.body[-1])[1], "raise"),)


def _raises_only(block: cst.IndentedBlock) -> bool:
    first = block.body[0]
    return isinstance(first, cst.SimpleStatementLine) and isinstance(_single(first), cst.Raise)


def _if_dropped(node: cst.If, scene: Scene) -> Iterator[Edits]:
    parent = scene.parents[-1]
    if isinstance(parent, cst.If):  # an elif: what follows it stays
        start, end = scene.whole_lines(*scene.span(node))
        if node.orelse is not None:
            end = scene.starts[scene.line(scene.span(node.orelse)[0]) - 1]
        if isinstance(node.body, cst.IndentedBlock):
            yield (Edit(start, end, ""),)
    elif node.orelse is None:
        yield scene.remove(node)


def _else_dropped(node: cst.Else, scene: Scene) -> Iterator[Edits]:
    if isinstance(scene.parents[-1], (cst.If, cst.For, cst.While, cst.Try)) and isinstance(
        node.body, cst.IndentedBlock
    ):
        yield (Edit(*scene.whole_lines(*scene.span(node)), ""),)


def _branches_swapped(node: cst.If, scene: Scene) -> Iterator[Edits]:
    other = node.orelse.body if isinstance(node.orelse, cst.Else) else None
    if isinstance(other, cst.IndentedBlock) and isinstance(node.body, cst.IndentedBlock):
        yield _blocks(node.body.body, other.body, scene)


def _blocks(one: Sequence[cst.CSTNode], other: Sequence[cst.CSTNode], scene: Scene) -> Edits:
    spans = [scene.whole_lines(scene.span(body[0])[0], scene.span(body[-1])[1]) for body in (one, other)]
    texts = [scene.data[start:end].decode().removesuffix("\n") + "\n" for start, end in spans]
    return tuple(Edit(*span, text) for span, text in zip(spans, reversed(texts), strict=True))


def _call_dropped(node: cst.SimpleStatementLine, scene: Scene) -> Iterator[Edits]:
    """A call made for its effect is forgotten."""
    inner = _single(node)
    if isinstance(inner, cst.Expr) and isinstance(inner.value, cst.Call) and scene.function() is not None:
        yield scene.remove(node)


_LINE = (cst.SimpleStatementLine,)
STATEMENTS = (
    Mutator("return-value", "returns", (cst.Return,), _return),
    Mutator("return-dropped", "returns", _LINE, _return_fallen_through),
    Mutator("yield-dropped", "returns", _LINE, _yield),
    Mutator("break-continue", "loops", (cst.Break, cst.Continue), _break),
    Mutator("break-dropped", "loops", _LINE, _break_dropped),
    Mutator("early-exit", "loops", (cst.For,), _early_exit),
    Mutator("range", "loops", (cst.Call,), _range),
    Mutator("enumerate", "loops", (cst.Call,), _enumerate),
    Mutator("assignment-dropped", "assignments", _LINE, _assignment),
    Mutator("augmented", "assignments", (cst.AugAssign,), _augmented),
    Mutator("targets-swapped", "assignments", (cst.Assign,), _targets),
    Mutator("raise-dropped", "exceptions", _LINE, _raise),
    Mutator("error-type", "exceptions", (cst.Raise,), _error_type),
    Mutator("handler-type", "exceptions", (cst.ExceptHandler,), _handler_type),
    Mutator("handler-dropped", "exceptions", (cst.ExceptHandler,), _handler_dropped),
    Mutator("if-dropped", "branches", (cst.If,), _if_dropped),
    Mutator("else-dropped", "branches", (cst.Else,), _else_dropped),
    Mutator("branches-swapped", "branches", (cst.If,), _branches_swapped),
    Mutator("call-dropped", "calls", _LINE, _call_dropped),
)
