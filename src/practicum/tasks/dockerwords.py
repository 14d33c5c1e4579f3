"""The text of a Dockerfile as instructions, and their arguments as words.

Owns: `instructions`, `words`, `Unset`.
Invariant: comments, continued lines and here-documents are read as Docker reads them; what cannot be told while reading
is an error and never an empty word.
Must not know: what an instruction means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from practicum.errors import TaskError

_HEREDOC = re.compile(r"(?<!<)<<-?(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])([^}]*))?\})")


@dataclass(frozen=True, slots=True)
class Instruction:
    """`name` in capitals, `rest` as written with continued lines joined, `document` the lines of a here-document."""

    name: str
    rest: str
    line: int
    document: str = ""

    @property
    def text(self) -> str:
        return f"{self.name} {self.rest}".strip()


def instructions(text: str, where: str) -> Iterator[Instruction]:
    """The instructions of a Dockerfile. Raises `TaskError` for a here-document without end."""
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        start, parts = at, list[str]()
        while at < len(lines):
            line = lines[at]
            at += 1
            if line.lstrip().startswith("#") or (parts and not line.strip()):
                continue
            goes_on = re.search(r"\\[ \t]*$", line)
            if not parts:
                start = at - 1
            parts.append(line[: goes_on.start()] if goes_on else line)
            if not goes_on:
                break
        joined = "".join(parts).strip()
        if not joined:
            continue
        name, _, rest = joined.partition(" ") if " " in joined else joined.partition("\t")
        document = ""
        if name.upper() in ("RUN", "COPY", "ADD"):
            for mark in _HEREDOC.finditer(rest):
                begin = at
                while at < len(lines) and lines[at].lstrip("\t" if "<<-" in mark[0] else "") != mark[2]:
                    at += 1
                if at == len(lines):
                    raise TaskError(f"{where} line {start + 1}: the here-document {mark[2]} has no end")
                at += 1
                document += "".join(f"{line}\n" for line in lines[begin:at])
        yield Instruction(name.upper(), rest.strip(), start + 1, document)


class Unset(Exception):
    """A variable that has no value while the file is read."""


Lookup = Callable[[str], "str | None"]


def words(text: str, lookup: Lookup, *, late: bool = False) -> list[str]:
    """Split into words as Docker does: quotes, backslashes, variables. Raises `Unset` with a variable's name, and
    `ValueError` for a quote without end or a form of variable that is not known.

    With `late` a variable without a value stays as `${NAME}`, and a dollar that is meant becomes `$$`, for later.
    """
    found: list[str] = []
    word: str | None = None
    quote, at = "", 0
    while at < len(text):
        char = text[at]
        if quote == "'" and char != "'":
            word = (word or "") + _plain(char, late)
        elif char == "\\" and at + 1 < len(text) and (not quote or text[at + 1] in '"$\\'):
            at += 1
            word = (word or "") + _plain(text[at], late)
        elif char == "$":
            value, length = _variable(text[at:], lookup, late)
            word = (word or "") + value
            at += length - 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote, word = char, word or ""
        elif not quote and char.isspace():
            if word is not None:
                found.append(word)
            word = None
        else:
            word = (word or "") + char
        at += 1
    if quote:
        raise ValueError(f"a quote {quote} has no end")
    return found if word is None else [*found, word]


def _plain(char: str, late: bool) -> str:
    return "$$" if late and char == "$" else char


def _variable(text: str, lookup: Lookup, late: bool) -> tuple[str, int]:
    """The value of the variable that `text` begins with, and how long it is there."""
    found = _VARIABLE.match(text)
    if found is None:
        if text.startswith("${"):
            raise ValueError(f"`{text.split('}')[0]}}}` is no form of variable that is known here")
        return _plain("$", late), 1
    name, operator, other = found[1] or found[2], found[3], found[4] or ""
    value = lookup(name)
    if operator:
        if "$" in other:
            raise ValueError(f"`{found[0]}` holds a variable within a variable")
        there = value is not None and (value != "" or ":" not in operator)
        value = (other if there else "") if "+" in operator else (value if there else other)
    elif value is None:
        if not late:
            raise Unset(name)
        value = f"${{{name}}}"
    return value or "", found.end()
