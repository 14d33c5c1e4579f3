"""Rows of a parametrised pytest function, where they are written down as constants.

Owns: `Parameters`, `read_parameters`, `inline_rows`.
Invariant: the ids given here are those that pytest gives; where that is not sure, there are none. The variants' ids
are neutral, because pytest writes a row's constants into its id. Must not know: assertions.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass

from practicum.verification.sentinels.literals import is_literal
from practicum.verification.sentinels.questions import called
from practicum.verification.sentinels.scope import Function, Rows


@dataclass(frozen=True, slots=True)
class Parameters:
    """`columns` by argument name; `ids` as pytest has them, `neutral` as the variants have them, row by row."""

    call: ast.Call
    columns: dict[str, Rows]
    ids: list[str]
    neutral: list[str]

    def neutral_call(self, call: ast.Call) -> ast.Call:
        """`call`, a version of this decorator, with the neutral ids."""
        if any(keyword.arg == "ids" for keyword in call.keywords):
            return call
        ids = ast.List([ast.Constant(name) for name in self.neutral], ast.Load())
        return ast.Call(call.func, call.args, [*call.keywords, ast.keyword("ids", ids)])


def _decorators(function: Function) -> list[ast.Call]:
    return [item for item in function.decorator_list if isinstance(item, ast.Call) and called(item) == "parametrize"]


def inline_rows(function: Function, constants: dict[str, ast.expr]) -> set[str]:
    """Write rows and loops' lists that are constants of the module in the place of their names; returns these."""
    written = set[str]()
    for call in _decorators(function):
        if len(call.args) > 1 and isinstance(call.args[1], ast.Name) and call.args[1].id in constants:
            written.add(call.args[1].id)
            call.args[1] = copy.deepcopy(constants[call.args[1].id])
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.iter, ast.Name):
            value = constants.get(node.iter.id)
            if isinstance(value, (ast.List, ast.Tuple)):
                written.add(node.iter.id)
                node.iter = copy.deepcopy(value)
    return written


def read_parameters(function: Function) -> Parameters | None:
    """The rows of the one `parametrize` of `function`; None where there are more, or anything is computed."""
    calls = _decorators(function)
    if len(calls) != 1 or len(calls[0].args) != 2 or not isinstance(calls[0].args[1], (ast.List, ast.Tuple)):
        return None
    call, rows = calls[0], calls[0].args[1]
    assert isinstance(rows, (ast.List, ast.Tuple))
    names = _names(call.args[0])
    given = _given_ids(call, len(rows.elts))
    if not names or given is None:
        return None
    ids: list[str] = []
    neutral: list[str] = []
    columns: dict[str, Rows] = {name: [] for name in names}
    for number, row in enumerate(rows.elts):
        read = _row(row, len(names))
        if read is None:
            return None
        cells, own_id = read
        for name, cell in zip(names, cells, strict=True):
            columns[name].append(cell)
        own_id = own_id or (given[number] if given else None)
        made = own_id or _made_id(names, cells, number)
        if made is None:
            return None
        ids.append(made)
        neutral.append(own_id or f"row{number}")
    return Parameters(call, columns, ids, neutral) if len(set(ids)) == len(ids) else None


def _names(node: ast.expr) -> list[str]:
    if not is_literal(node):
        return []
    value = ast.literal_eval(node)
    names = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else list(value)
    return names if all(isinstance(name, str) for name in names) else []


def _given_ids(call: ast.Call, count: int) -> list[str] | None:
    """The `ids` of the call, [] where there are none, None for anything that cannot be followed."""
    for keyword in call.keywords:
        if keyword.arg != "ids" or not is_literal(keyword.value):
            return None
        ids = ast.literal_eval(keyword.value)
        plain = isinstance(ids, (list, tuple)) and len(ids) == count
        return list(ids) if plain and all(isinstance(i, str) and _printable(i) for i in ids) else None
    return []


def _row(row: ast.expr, width: int) -> tuple[list[ast.expr], str | None] | None:
    """A row's cells and the id it brings along."""
    own_id = None
    if isinstance(row, ast.Call) and called(row) == "param":
        for keyword in row.keywords:
            if keyword.arg == "id":
                if not isinstance(keyword.value, ast.Constant) or not isinstance(keyword.value.value, str):
                    return None
                own_id = keyword.value.value
        cells = row.args
    elif width == 1:
        cells = [row]
    else:
        cells = row.elts if isinstance(row, (ast.Tuple, ast.List)) else []
    if len(cells) != width or not all(map(is_literal, cells)) or (own_id is not None and not _printable(own_id)):
        return None
    return cells, own_id


def _made_id(names: list[str], cells: list[ast.expr], number: int) -> str | None:
    """The id that pytest makes of a row's values, where it is plain."""
    parts = []
    for name, cell in zip(names, cells, strict=True):
        value = ast.literal_eval(cell)
        if isinstance(value, str):
            if not _printable(value):
                return None
            parts.append(value)
        elif value is None or isinstance(value, (int, float, complex)):
            parts.append(str(value))
        elif isinstance(value, bytes):
            return None
        else:
            parts.append(f"{name}{number}")
    return "-".join(parts)


def _printable(text: str) -> bool:
    return text.isascii() and text.isprintable() and "\\" not in text
