"""Variants of a gold: what they are, and which of two are the same program.

Owns: `Variant`, `Source`, `source_of`, `same_code`.
Invariant: pure. Two texts count as the same program only where that is proven: they compile to the same code, line
numbers aside. Must not know: how variants are made, tasks, boxes.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

_INDENT = "    "  # of Python's own printer


@dataclass(frozen=True, slots=True)
class Variant:
    """One changed source: `name` says what was done, `line` where in the gold (0: in several places), `text` is the
    whole file."""

    name: str
    line: int
    text: str

    def shown(self, source: Source) -> str:
        """The lines in which it differs from `source`, layout and comments aside, as a diff without context."""
        old, new = (ast.unparse(parse(text)).splitlines() for text in (source.text, self.text))
        lines = difflib.unified_diff(old, new, n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


@dataclass(frozen=True, slots=True)
class Source:
    """A gold file and the functions of it, top-level or methods, that the work is about."""

    text: str
    names: tuple[str, ...]

    def tree(self) -> ast.Module:
        """A tree of its own, to be changed."""
        return parse(self.text)

    def functions(self, tree: ast.Module) -> list[ast.FunctionDef]:
        """Those functions in `tree`, which came from `tree()`."""
        return [node for name, node in named_functions(tree) if name in self.names]

    def with_function(self, function: ast.FunctionDef, changed: ast.FunctionDef) -> str:
        """The file with `changed` in the place of `function`, which came from `functions`; else as it is written.

        Raises `ValueError` or `RecursionError` where Python's own printer cannot write it.
        """
        owner = parse("class _: pass").body[0]
        assert isinstance(owner, ast.ClassDef)
        owner.body = [ast.fix_missing_locations(changed)]
        written = ast.unparse(owner if function.col_offset else changed).split("\n")[1 if function.col_offset else 0 :]
        lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        indent = lines[function.lineno - 1][: function.col_offset]
        if indent not in ("", _INDENT):  # of two kinds in one class the interpreter would not know
            written = [line.replace(_INDENT, indent, 1) if line.startswith(_INDENT) else line for line in written]
        start = min([function.lineno, *(mark.lineno for mark in function.decorator_list)]) - 1
        return "\n".join([*lines[:start], *written, *lines[function.end_lineno :]])


def source_of(before: bytes, gold: bytes) -> Source | None:
    """The gold file as a `Source`: functions that are new or differ from `before`. None where it is no Python."""
    try:
        new = parse(gold.decode())
    except (SyntaxError, ValueError):
        return None
    try:
        old = {name: ast.dump(node) for name, node in named_functions(parse(before.decode()))}
    except (SyntaxError, ValueError):  # the bug may be that it does not parse
        old = {}
    names = [name for name, node in named_functions(new) if old.get(name) != ast.dump(node)]
    return Source(gold.decode(), tuple(names)) if names else None


def parse(text: str) -> ast.Module:
    """`ast.parse`, without its warnings about other people's strings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def named_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Top-level functions, and methods as `Class.method`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{n.name}", n) for n in node.body if isinstance(n, ast.FunctionDef))


def code_key(text: str) -> Any:
    """What the interpreter would run, as a value to compare; None where it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _key(compile(text, "<variant>", "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError):
            return None


def function_key(function: ast.FunctionDef) -> Any:
    """As `code_key`, of a function by itself; it is filled up where it lacks places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = ast.Module([ast.fix_missing_locations(function)], [])
            return _key(compile(module, "<variant>", "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError):
            return None


def same_code(one: str, other: str) -> bool:
    """Whether both texts compile to the very same code."""
    key = code_key(one)
    return key is not None and key == code_key(other)


def _key(code: CodeType) -> Any:
    # repr beside the constant: 1, 1.0 and True are equal, and not the same program
    constants = tuple(_key(c) if isinstance(c, CodeType) else (repr(c), type(c).__name__) for c in code.co_consts)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_name)
    return code.co_code, constants, names, shape, code.co_exceptiontable
