"""Every place in a file where a mutator has something to change.

Owns: `Site`, `scan`.
Invariant: nothing is proposed in docstrings, annotations, version and export lists, `if TYPE_CHECKING` and
`__main__` blocks, assertions, messages of errors, or calls that only log or print; the order is that of the text.
Must not know: tests, which sites are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from practicum.curation.synthesis.mutation.scene import Edits, Scene
from practicum.curation.synthesis.mutation.table import BY_NODE

_LOGGERS = frozenset({"logging", "logger", "log", "_logger", "_log", "LOG", "LOGGER", "warnings"})
_TYPING = frozenset({"TypeVar", "NewType", "ParamSpec", "TypeVarTuple", "namedtuple", "NamedTuple", "cast"})
_QUIET = (cst.Annotation, cst.Import, cst.ImportFrom, cst.Assert, cst.FormattedString, cst.Global, cst.Nonlocal)


@dataclass(frozen=True, slots=True)
class Site:
    """Where one mutator can change one file, and each way to. `start` is a byte, `lines` are 1-based.

    `reach` is what tests must run for the change to matter to them: the statement itself inside a function, else the
    whole function or class that it shapes. `around` is the function, class or file that it stands in.
    """

    mutator: str
    kind: str
    version: str
    start: int
    line: int
    function: str
    reach: range
    around: range
    ways: tuple[Edits, ...]


def scan(data: bytes) -> tuple[Site, ...]:
    """The sites in a file. Raises `libcst.ParserSyntaxError` or `UnicodeDecodeError`."""
    scene = Scene(data)
    return tuple(_visit(scene.module, scene, (), range(1, len(scene.starts) + 1)))


def _visit(node: cst.CSTNode, scene: Scene, names: tuple[str, ...], statement: range) -> Iterator[Site]:
    """Sites at `node` and below; `names` lead to the function it is in, `statement` are the lines it belongs to."""
    if _skipped(node, scene):
        return
    if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
        statement = _header(node, scene)
    for mutator in BY_NODE.get(type(node), ()):
        ways = tuple(mutator.changes(node, scene))
        if ways:
            start = min(edit.start for edits in ways for edit in edits)
            line = scene.lines(node).start
            reach = statement if _runs(node, scene) else _around(node, scene)
            name = ".".join((*names, node.name.value) if isinstance(node, _SCOPES) else names)
            around = _around(node, scene)
            yield Site(mutator.name, mutator.kind, mutator.version, start, line, name, reach, around, ways)
    if isinstance(node, _SCOPES):
        names = (*names, node.name.value)
    scene.parents.append(node)
    for child in node.children:
        if not isinstance(child, cst.BaseParenthesizableWhitespace):
            yield from _visit(child, scene, names, statement)
    scene.parents.pop()


_SCOPES = (cst.FunctionDef, cst.ClassDef)


def _header(node: cst.SimpleStatementLine | cst.BaseCompoundStatement, scene: Scene) -> range:
    """The lines of a statement, without those of the block below it."""
    lines = scene.lines(node)
    body = getattr(node, "body", None)
    if isinstance(body, cst.IndentedBlock) and body.body:
        return range(lines.start, max(lines.start + 1, scene.lines(body.body[0]).start))
    return lines


def _runs(node: cst.CSTNode, scene: Scene) -> bool:
    """Whether `node` runs as a statement of a function's body, and not while something is defined."""
    function = scene.function()
    return function is not None and function.body in scene.parents and not isinstance(node, _SCOPES)


def _around(node: cst.CSTNode, scene: Scene) -> range:
    """The lines of the function, else the class, else the file that `node` shapes: itself, where it is one."""
    for around in (node, *reversed(scene.parents)):
        if isinstance(around, cst.ClassDef):
            return scene.lines(around)
        if isinstance(around, cst.FunctionDef):
            whole = scene.owner() if around is node else None  # what a class has, all of it may use
            return scene.lines(whole or around)
    return range(1, len(scene.starts) + 1)


def _skipped(node: cst.CSTNode, scene: Scene) -> bool:
    if isinstance(node, _QUIET):
        return True
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        inner = node.body[0]
        if isinstance(inner, cst.Expr):
            return isinstance(inner.value, (cst.SimpleString, cst.ConcatenatedString)) or _logs(inner.value)
        if isinstance(inner, (cst.Assign, cst.AnnAssign)):
            return _names_only(inner)
    if isinstance(node, cst.If):
        words = scene.text(node.test)
        return "TYPE_CHECKING" in words or ("__name__" in words and "__main__" in words)
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        return any(isinstance(around, cst.Raise) for around in scene.parents[-4:])
    return isinstance(node, cst.FunctionDef) and any(_word(d.decorator) == "overload" for d in node.decorators)


def _word(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Call):
        return _word(node.func)
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _logs(node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Attribute):
        value = node.func.value
        return (_word(value) in _LOGGERS) if isinstance(value, (cst.Name, cst.Attribute)) else False
    return _word(node.func) == "print"


def _names_only(node: cst.Assign | cst.AnnAssign) -> bool:
    """Whether an assignment tells versions, exports or types, and nothing that a program does."""
    targets = [target.target for target in node.targets] if isinstance(node, cst.Assign) else [node.target]
    words = [_word(target) for target in targets]
    if any(word.startswith("__") and word.endswith("__") for word in words if word):
        return True
    if any(word.lower() in ("version", "version_info", "author", "license", "release") for word in words):
        return True
    return node.value is not None and isinstance(node.value, cst.Call) and _word(node.value) in _TYPING
