"""A fingerprint of a program that does not see the names which a person chose.

Owns: `fingerprint`, `numbered`.
Invariant: renaming variables, functions, parameters and classes, comments, docstrings, annotations and layout do not
change it; another operator, constant, call of a built-in or order of statements does. Pure.
Must not know: tasks.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

from practicum.curation.similarity.tokens import NAME, code_tokens, shape_tokens, text_hash

_BUILTIN = frozenset(dir(builtins))
_LEFT_OUT = frozenset({"ctx", "type_comment", "annotation", "returns", "kind", "type_params"})
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def fingerprint(code: str) -> tuple[int, int]:
    """(hash, size) of `code`, which need not stand at the margin; (0, 0) where there is nothing.

    Size is in nodes of the syntax tree; for what is not Python, tokens stand for nodes.
    """
    if not code.strip():
        return 0, 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(textwrap.dedent(code))
        form = _Form()
        form.put(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tokens = numbered(code_tokens(code))
        return text_hash(tokens), len(tokens)
    return text_hash(form.out), form.nodes


def numbered(tokens: Sequence[str]) -> list[str]:
    """`tokens` of a program with names that a person may choose numbered in the order in which they first stand."""
    names: dict[str, str] = {}
    shape = shape_tokens(tokens)
    return [
        names.setdefault(token, f"#{len(names)}") if form == NAME else form
        for token, form in zip(tokens, shape, strict=True)
    ]


class _Form:
    """A syntax tree written out with names numbered in the order in which they first stand."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.nodes = 0
        self.names: dict[str, str] = {}

    def put(self, node: ast.AST) -> None:
        kind: type[Any] = type(node)
        self.nodes += 1
        self.out.append(kind.__name__)
        if isinstance(node, ast.Name):
            self.out.append(self._name(node.id))
            return
        for field in _fields(kind):
            value = getattr(node, field, None)
            if isinstance(value, list):
                self.out.append("[")
                for item in _without_docstring(value) if field == "body" and kind in _DEFINES else value:
                    self.put(item) if isinstance(item, ast.AST) else self.out.append(self._plain(kind, field, item))
                self.out.append("]")
            elif isinstance(value, ast.AST):
                self.put(value)
            else:
                self.out.append(self._plain(kind, field, value))

    def _plain(self, kind: type[Any], field: str, value: object) -> str:
        if not isinstance(value, str) or kind is ast.Constant:
            return f"{type(value).__name__} {value!r}"
        if kind is ast.Attribute or (kind in (ast.alias, ast.ImportFrom) and field != "asname"):
            return self.names.get(value, value)  # a method defined here has its number, one from elsewhere its name
        return self.names.setdefault(value, f"#{len(self.names)}")

    def _name(self, name: str) -> str:
        if name in _BUILTIN and name not in self.names:
            return name
        return self.names.setdefault(name, f"#{len(self.names)}")


_FIELDS: dict[type, tuple[str, ...]] = {}  # by kind of node, as they come up


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(field for field in kind._fields if field not in _LEFT_OUT)
    return found


def _without_docstring(body: list[Any]) -> list[Any]:
    first = body[0] if body else None
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return body[1:] if said else body
