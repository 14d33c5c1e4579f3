"""Mutators of arguments, calls, names, constants and class members.

Owns: `NAMES`.
Invariant: each gives valid Python wherever it gives anything.
Must not know: which sites are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from practicum.curation.synthesis.mutation.scene import Edit, Edits, Mutator, Scene

_FUNCTIONS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "int": "float",
    "repr": "str",
    "str": "repr",
    "floor": "ceil",
    "ceil": "floor",
    "round": "int",
    "frozenset": "set",
    "deepcopy": "copy",
}
_METHODS = {
    "append": ("extend",),
    "extend": ("append",),
    "startswith": ("endswith",),
    "endswith": ("startswith",),
    "strip": ("lstrip", "rstrip"),
    "lstrip": ("rstrip",),
    "rstrip": ("lstrip",),
    "lower": ("upper",),
    "upper": ("lower",),
    "split": ("rsplit",),
    "rsplit": ("split",),
    "partition": ("rpartition",),
    "rpartition": ("partition",),
    "find": ("rfind",),
    "rfind": ("find",),
    "index": ("count",),
    "keys": ("values",),
    "values": ("keys",),
    "items": ("keys",),
    "add": ("discard",),
    "union": ("intersection",),
    "intersection": ("union",),
    "update": ("setdefault",),
    "popleft": ("pop",),
    "appendleft": ("append",),
    "match": ("search",),
    "search": ("match",),
    "isdigit": ("isalpha",),
    "isalpha": ("isalnum",),
    "isupper": ("islower",),
    "islower": ("isupper",),
    "ljust": ("rjust",),
    "rjust": ("ljust",),
    "capitalize": ("title",),
    "issubset": ("issuperset",),
    "fullmatch": ("match",),
    "readline": ("read",),
}
_WRAPPERS = {
    "sorted",
    "reversed",
    "list",
    "tuple",
    "set",
    "str",
    "int",
    "abs",
    "iter",
    "dict",
    "float",
    "bool",
    "deepcopy",
}
_STRICT = {"isinstance", "issubclass", "getattr", "hasattr", "setattr", "delattr", "replace", "map", "filter", "super"}
_TIDYING = {"strip", "lstrip", "rstrip", "lower", "upper", "copy", "casefold", "expandtabs"}


def _called(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    if isinstance(node.func, cst.Name) and node.func.value in _FUNCTIONS:
        yield (scene.put(node.func, _FUNCTIONS[node.func.value]),)
    elif isinstance(node.func, cst.Attribute):
        for other in _METHODS.get(node.func.attr.value, ()):
            yield (scene.put(node.func.attr, other),)


def _plain(node: cst.Call) -> bool:
    return all(arg.keyword is None and not arg.star for arg in node.args)


def _strict(node: cst.Call) -> bool:
    """Whether any other order or number of arguments is an error at once."""
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else getattr(node.func, "value", "")
    return name in _STRICT


def _unwrapped(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    if isinstance(node.func, cst.Name) and node.func.value in _WRAPPERS and len(node.args) == 1 and _plain(node):
        if not isinstance(node.args[0].value, cst.GeneratorExp):
            yield (scene.put(node, scene.text(node.args[0].value)),)
    elif isinstance(node.func, cst.Attribute) and node.func.attr.value in _TIDYING and not node.args:
        yield (scene.put(node, scene.text(node.func.value)),)


def _arguments_swapped(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    if _plain(node) and len(node.args) > 1 and not _strict(node):
        for one, other in pairwise(node.args):
            if scene.text(one.value) != scene.text(other.value):
                yield scene.swap(one.value, other.value)


def _argument_dropped(node: cst.Call, scene: Scene) -> Iterator[Edits]:
    """A keyword is forgotten, or the last of several positional arguments."""
    for at, arg in enumerate(node.args):
        keyword = arg.keyword is not None
        if not arg.star and (keyword or (at == len(node.args) - 1 > 0 and _plain(node) and not _strict(node))):
            if at:
                yield (Edit(scene.outer(node.args[at - 1].value)[1], scene.outer(arg.value)[1], ""),)
            elif len(node.args) > 1:
                yield (Edit(scene.span(arg)[0], scene.span(node.args[1])[0], ""),)
            else:
                yield (Edit(scene.span(arg)[0], scene.outer(arg.value)[1], ""),)


def _default(node: cst.Param, scene: Scene) -> Iterator[Edits]:
    """Another default value of the same kind."""
    if node.default is not None:
        for text in _other_values(node.default):
            yield (scene.put(node.default, text),)


def _other_values(value: cst.BaseExpression) -> Iterator[str]:
    if isinstance(value, cst.Name) and value.value in ("True", "False"):
        yield "False" if value.value == "True" else "True"
    elif isinstance(value, cst.Integer):
        number = int(value.value.replace("_", ""), 0)
        yield str(number + 1)
        if number > 0:
            yield str(number - 1)
    elif isinstance(value, cst.Float):
        yield f"{value.value}1" if value.value[-1].isdigit() and "e" not in value.value else "1.0"
    elif isinstance(value, cst.SimpleString) and value.quote in ("'", '"') and "b" not in value.prefix.lower():
        inner = value.raw_value
        shell = f"{value.prefix}{value.quote}", value.quote
        if not inner:
            yield f"{shell[0]} {shell[1]}"
        elif "\\" not in inner and "{" not in inner and "%" not in inner:
            yield f"{shell[0]}{inner[:-1]}{shell[1]}"


def _number(node: cst.Integer | cst.Float, scene: Scene) -> Iterator[Edits]:
    if not isinstance(scene.parents[-1], (cst.Param, cst.Index, cst.Slice)):
        for text in _other_values(node):
            yield (scene.put(node, text),)


def _truth(node: cst.Name, scene: Scene) -> Iterator[Edits]:
    if node.value in ("True", "False") and not isinstance(scene.parents[-1], (cst.Param, cst.Return, cst.While)):
        yield (scene.put(node, "False" if node.value == "True" else "True"),)


def _string(node: cst.SimpleString, scene: Scene) -> Iterator[Edits]:
    """Text that the program works with, not what it tells people."""
    parent = scene.parents[-1]
    short = len(node.raw_value) <= 12
    if short and isinstance(parent, (cst.Arg, cst.ComparisonTarget, cst.Comparison, cst.BinaryOperation, cst.Element)):
        for text in _other_values(node):
            yield (scene.put(node, text),)


def _misnamed(node: cst.Name, scene: Scene) -> Iterator[Edits]:
    """A parameter of the function is read where another was meant."""
    function, parent = scene.function(), scene.parents[-1]
    if function is None or isinstance(parent, (cst.Param, cst.AssignTarget, cst.Attribute, cst.FunctionDef, cst.Call)):
        return
    if isinstance(parent, cst.Arg) and parent.keyword is node:
        return
    names = [param.name.value for param in (*function.params.params, *function.params.kwonly_params)]
    names = [name for name in names if name not in ("self", "cls")]
    if (
        node.value in names
        and len(names) > 1
        and not isinstance(parent, (cst.For, cst.CompFor, cst.AugAssign, cst.Del))
    ):
        yield (scene.put(node, names[(names.index(node.value) + 1) % len(names)]),)


def _attribute(node: cst.Attribute, scene: Scene) -> Iterator[Edits]:
    """Another attribute of the same object is read, of those that its class sets."""
    owner, parent = scene.owner(), scene.parents[-1]
    if owner is None or not isinstance(node.value, cst.Name) or node.value.value != "self":
        return
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del)):
        return
    called = isinstance(parent, cst.Call) and parent.func is node
    others = _methods(owner) if called else _attributes(owner)
    if node.attr.value in others and len(others) > 1:
        yield (scene.put(node.attr, others[(others.index(node.attr.value) + 1) % len(others)]),)


def _attributes(owner: cst.ClassDef) -> list[str]:
    """Names that `self` is given in the class's `__init__`, in order of appearance."""
    found: dict[str, None] = {}
    todo: list[cst.CSTNode] = [
        m for m in owner.body.body if isinstance(m, cst.FunctionDef) and m.name.value == "__init__"
    ]
    while todo:
        node = todo.pop(0)
        target = node.target if isinstance(node, cst.AssignTarget) else None
        if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self":
            found[target.attr.value] = None
        todo[:0] = node.children
    return list(found)


def _methods(owner: cst.ClassDef) -> list[str]:
    """Plain methods of the class that take as much as each other."""
    plain = [m for m in owner.body.body if isinstance(m, cst.FunctionDef) and not m.decorators]
    return [m.name.value for m in plain if not m.name.value.startswith("__") and len(m.params.params) == 1]


def _base_dropped(node: cst.ClassDef, scene: Scene) -> Iterator[Edits]:
    if len(node.bases) > 1:
        last = node.bases[-1]
        yield (Edit(scene.outer(node.bases[-2].value)[1], scene.outer(last.value)[1], ""),)


def _method_dropped(node: cst.FunctionDef, scene: Scene) -> Iterator[Edits]:
    """A method that a base class, or Python itself, stands in for when it is gone."""
    block, owner, name = scene.parents[-1], scene.owner(), node.name.value
    if not isinstance(block, cst.IndentedBlock) or owner is None or owner.body is not block or len(block.body) < 2:
        return
    special = name.startswith("__") and name.endswith("__")
    if name not in ("__init__", "__new__") and (special or owner.bases):
        first = scene.span(node.decorators[0])[0] if node.decorators else scene.span(node)[0]
        yield (Edit(*scene.whole_lines(first, scene.span(node)[1]), ""),)


def _decorator_dropped(node: cst.Decorator, scene: Scene) -> Iterator[Edits]:
    named = node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
    name = named.attr.value if isinstance(named, cst.Attribute) else getattr(named, "value", "")
    if name not in ("overload", "abstractmethod", "setter", "getter", "deleter", "wraps"):
        yield (Edit(*scene.whole_lines(*scene.span(node)), ""),)


def _methods_swapped(node: cst.ClassDef, scene: Scene) -> Iterator[Edits]:
    """Two neighbouring methods that take the same are named as each other."""
    methods = [member for member in node.body.body if isinstance(member, cst.FunctionDef)]
    for one, other in pairwise(methods):
        same = scene.text(one.params) == scene.text(other.params) if one.params.params else False
        if same and not (one.decorators or other.decorators) and one.name.value != "__init__":
            yield scene.swap(one.name, other.name)


NAMES = (
    Mutator("call-swapped", "calls", (cst.Call,), _called),
    Mutator("wrapper-dropped", "calls", (cst.Call,), _unwrapped),
    Mutator("arguments-swapped", "arguments", (cst.Call,), _arguments_swapped),
    Mutator("argument-dropped", "arguments", (cst.Call,), _argument_dropped),
    Mutator("default", "arguments", (cst.Param,), _default),
    Mutator("parameter-misnamed", "arguments", (cst.Name,), _misnamed),
    Mutator("number", "constants", (cst.Integer, cst.Float), _number),
    Mutator("truth", "constants", (cst.Name,), _truth),
    Mutator("string", "constants", (cst.SimpleString,), _string),
    Mutator("attribute-misnamed", "members", (cst.Attribute,), _attribute),
    Mutator("base-dropped", "members", (cst.ClassDef,), _base_dropped),
    Mutator("method-dropped", "members", (cst.FunctionDef,), _method_dropped),
    Mutator("decorator-dropped", "members", (cst.Decorator,), _decorator_dropped),
    Mutator("methods-swapped", "members", (cst.ClassDef,), _methods_swapped),
)
