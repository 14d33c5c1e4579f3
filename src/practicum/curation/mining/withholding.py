"""What a fix adds, so that no text repeats it.

Owns: `Withheld`.
Invariant: prose alone never counts as the fix; a statement of it, or a run of its tokens, always does.
Must not know: commits, what texts are for.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from practicum.records.tree import Tree

_WINDOW = 5  # tokens in a row that give the fix away
_LEAST_LINE = 12  # characters of a statement that would be known again
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Withheld:
    """What the fix adds, as runs of tokens that no text may repeat."""

    windows: frozenset[tuple[str, ...]]
    lines: frozenset[str]

    @classmethod
    def of(cls, before: Tree, gold: Mapping[str, bytes | None]) -> Withheld:
        """What `gold` says beyond `before`."""
        windows, lines = set[tuple[str, ...]](), set[str]()
        known = [_code(before[path].data) for path in gold if path in before]
        old = {window for text in known for window in _windows(text)}
        old_lines = {line for text in known for line in _lines(text)}
        for data in gold.values():
            text = _code(data or b"")
            windows |= set(_windows(text)) - old
            lines |= set(_lines(text)) - old_lines
        return cls(frozenset(windows), frozenset(lines))

    def told_by(self, line: str) -> bool:
        """Whether a line repeats some of it."""
        plain = " ".join(line.split())
        return any(each in plain for each in self.lines) or not self.windows.isdisjoint(_windows(line))


def text_of(data: bytes) -> str:
    """Bytes of a source as text, whatever they are."""
    return data.decode("utf-8", "replace")


def _code(data: bytes) -> str:
    """A source without its docstrings: what they say is of use, and their examples are often those of the tests."""
    text = text_of(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings that are not ours
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number in range(node.lineno - 1, min(node.end_lineno or node.lineno, len(lines))):
                lines[number] = ""
    return "\n".join(lines)


def _windows(text: str) -> Iterable[tuple[str, ...]]:
    """Runs of tokens within a line that hold an operator: prose alone gives nothing away."""
    for line in text.splitlines():
        tokens = _TOKEN.findall(line.partition("#")[0])
        for start in range(len(tokens) - _WINDOW + 1):
            window = tuple(tokens[start : start + _WINDOW])
            operators = sum(not token[0].isalnum() and token not in "_.,'\"-:;!?" for token in window)
            if operators and len({token for token in window if len(token) > 1 and token[0].isalpha()}) > 1:
                yield window


def _lines(text: str) -> Iterable[str]:
    """Statements that are long enough to be known again."""
    for line in text.splitlines():
        plain = " ".join(line.partition("#")[0].split())
        if len(plain) >= _LEAST_LINE and re.search(r"[=()\[\]<>+*/%]", plain):
            yield plain
