"""Functions by their shape, whatever their names: code that was renamed is the same code.

Owns: `Shapes`, `shapes_of`, `code_only`, `asides`.
Invariant: pure; code is parsed, never run. Names that code chooses for itself do not count; attributes, builtins,
constants and operators do. Must not know: where texts come from.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from practicum.curation.gates.testcode import Function, parsed, read

_HEAD = re.compile(r"^([^\w\n]{0,40})(?:async +)?def +\w+ *\(", re.MULTILINE)
_BUILTINS = frozenset(dir(builtins))
_LEAST = 20  # nodes of a function that is told from others by its shape
_SHARE = 0.5
_LONG_STRING = 60
_MOST_LINES = 400
_SHORT = 64 << 10  # characters of a text of which the functions are kept: tasks of one project hold the same files


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of functions, each with its size, and with the words that stand in any function of that shape."""

    sizes: Mapping[int, int] = field(default_factory=dict)
    words: tuple[frozenset[str], ...] = ()

    def found_in(self, text: str) -> str | None:
        """How `text` gives them away: it has functions of these shapes, half of all by their size."""
        if not self.sizes:
            return None
        seen: dict[int, str] = {}
        for snippet in _kept_functions(text) if len(text) <= _SHORT else _functions(text):
            if any(all(word in snippet for word in words) for words in self.words):
                for node in _nodes(snippet.encode("utf-8", "replace"), read):
                    shape = _shape(node)[0]
                    if shape in self.sizes:
                        seen[shape] = node.name
        if sum(self.sizes[shape] for shape in seen) < _SHARE * sum(self.sizes.values()) or not seen:
            return None
        return f"the code of {min(seen.values())}, whatever its names"


def shapes_of(kept: Iterable[bytes], given: Iterable[bytes]) -> Shapes:
    """The functions of `kept` that `given` has not."""
    known = {_shape(node)[0] for data in given for node in _nodes(data)}
    sizes: dict[int, int] = {}
    words = []
    for data in kept:
        for node in _nodes(data):
            shape, size, needed = _shape(node)
            if shape not in known and size >= _LEAST:
                sizes[shape] = size
                words.append(needed)
    return Shapes(sizes, tuple(words))


def _nodes(data: bytes, reader: Callable[[bytes], ast.Module | None] = parsed) -> Iterator[Function]:
    tree = reader(data)
    return (node for node in ast.walk(tree) if isinstance(node, Function)) if tree is not None else iter(())


@lru_cache(maxsize=256)
def _kept_functions(text: str) -> tuple[str, ...]:
    return tuple(_functions(text))


def _functions(text: str) -> Iterator[str]:
    """Functions as they stand in any text, be it code, a comment, a docstring or a patch."""
    for head in _HEAD.finditer(text):
        mark = head[1]
        lines = [text[head.start() + len(mark) : head.end()]]
        rest = text[head.end() : head.end() + 120 * _MOST_LINES].split("\n")
        lines[0] += rest[0]
        for line in rest[1:_MOST_LINES]:
            if not line.strip() or line.rstrip() == mark.rstrip():
                lines.append("")
            elif line.startswith(mark) and line[len(mark) :][:1] in (" ", "\t", ")"):
                lines.append(line[len(mark) :])
            else:
                break
        yield "\n".join(lines) + "\n"


def _shape(node: Function) -> tuple[int, int, frozenset[str]]:
    """(shape, nodes, words that a text with such a function must have)."""
    names: dict[str, int] = {}
    parts: list[str] = []
    words: set[str] = set()

    def say(name: str) -> str:
        if name in _BUILTINS:
            words.add(name)
            return name
        return str(names.setdefault(name, len(names)))

    def walk(each: object) -> None:
        if isinstance(each, ast.AST):
            parts.append(type(each).__name__)
            for key, value in ast.iter_fields(each):
                if key in ("ctx", "type_comment", "annotation", "returns", "decorator_list", "type_params", "kind"):
                    continue
                if key == "body" and isinstance(each, Function) and ast.get_docstring(each, clean=False) is not None:
                    value = value[1:]
                if key in ("id", "arg", "name") and isinstance(value, str):
                    parts.append(say(value))
                elif key == "attr":
                    words.add(str(value))
                    parts.append(str(value))
                else:
                    walk(value)
        elif isinstance(each, list):
            parts.append("[")
            for inner in each:
                walk(inner)
            parts.append("]")
        else:
            parts.append(repr(each))

    walk(node)
    return hash(tuple(parts)), sum(1 for _ in ast.walk(node)), frozenset(words)


def code_only(data: bytes) -> bytes:
    """Python code without comments and long strings; anything else as it is."""
    pieces = _split(data)
    return data if pieces is None else pieces[0]


def asides(data: bytes) -> bytes:
    """Comments and long strings of Python code, one after another; nothing of anything else."""
    pieces = _split(data)
    return b"" if pieces is None else pieces[1]


def _split(data: bytes) -> tuple[bytes, bytes] | None:
    code: list[str] = []
    told: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(data.decode("utf-8")).readline):
            if token.type == tokenize.COMMENT:
                told.append(token.string)
            elif token.type == tokenize.STRING and (len(token.string) >= _LONG_STRING or token.string[:3] in _TRIPLE):
                told.append(token.string.strip("\"'"))
            elif token.type in (tokenize.NEWLINE, tokenize.NL):
                code.append("\n")
            elif token.type not in (tokenize.INDENT, tokenize.DEDENT):
                code.append(f"{token.string} ")
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return "".join(code).encode(), "\n".join(told).encode()


_TRIPLE = ('"""', "'''")
