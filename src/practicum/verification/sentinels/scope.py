"""Where a name in a test gets its value, as far as that is written down as constants.

Owns: `Scope`.
Invariant: a binding is offered only where the name has one source and every use of it is accounted for by its user,
so that changing the source changes nothing but what is compared. Pure.
Must not know: which alternatives there are.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from practicum.verification.sentinels.literals import is_literal
from practicum.verification.sentinels.pruning import nodes

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor
Rows = list[ast.expr]  # one row's value of a column, each


@dataclass(frozen=True, slots=True)
class Binding:
    """The constants that a name stands for: `slots` are the places that hold them.

    `inline` is a constant to be written where the name stands; then the slot is the name itself. `rows` says that the
    slots are a column of parametrised rows, `loop` of which loop's items they are.
    """

    key: str
    slots: tuple[ast.expr, ...]
    inline: ast.expr | None = None
    rows: bool = False
    loop: Loop | None = None


class Scope:
    """Names of one test function. `columns` are those that parametrised rows give, each with its constants."""

    def __init__(self, function: Function, constants: dict[str, ast.expr], columns: dict[str, Rows]) -> None:
        self.written = set[str]()  # constants of the module that a binding writes into the function
        self._constants = constants
        self._columns = columns
        own = [node for statement in function.body for node in ast.walk(statement)]
        names = [node for node in own if isinstance(node, ast.Name)]
        self._loads = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
        self._stores = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
        arguments = function.args
        self._arguments = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        self._loops = dict(self._loop_columns(own))
        self._locals = {
            node.targets[0].id: node.value
            for node in own
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        }

    def loads(self, name: str) -> int:
        """How often the function reads `name`."""
        return self._loads[name]

    def binding(self, name: ast.Name) -> Binding | None:
        """What `name` stands for, or None."""
        key = name.id
        if key in self._columns and not self._stores[key]:
            return Binding(f"row {key}", tuple(self._columns[key]), rows=True)
        if key in self._loops and self._stores[key] == 1 and key not in self._arguments:
            loop, column = self._loops[key]
            inside = sum(_reads(node, key) for statement in loop.body for node in ast.walk(statement))
            # Whoever reads the name after the loop does not know which item he has.
            return Binding(f"loop {key}", tuple(column), loop=loop) if inside == self._loads[key] else None
        if key in self._arguments:
            return None
        if self._stores[key] == 1 and key in self._locals and is_literal(self._locals[key]):
            return Binding(f"local {key}", (self._locals[key],))
        value = None if self._stores[key] or self._loads[key] != 1 else self._constants.get(key)
        if value is None or not is_literal(value):
            return None
        self.written.add(key)
        return Binding(f"constant {key}", (name,), inline=value)

    def _loop_columns(self, nodes: list[ast.AST]) -> Iterator[tuple[str, tuple[Loop, Rows]]]:
        for node in nodes:
            if isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.iter, (ast.List, ast.Tuple)):
                target = node.target
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                for at, name in enumerate(names):
                    column = column_of(node.iter.elts, at if isinstance(target, ast.Tuple) else None)
                    if isinstance(name, ast.Name) and column:
                        yield name.id, (node, column)

    def repeats(self, loop: Loop) -> bool:
        """Whether `loop` surely runs its body: over constants written in place."""
        return isinstance(loop.iter, (ast.List, ast.Tuple)) and bool(loop.iter.elts)


def leaves(node: ast.AST) -> bool:
    """Whether something in `node` may leave it, or skip a part of it."""
    return any(isinstance(part, (ast.Return, ast.Break, ast.Continue, ast.Raise)) for part in ast.walk(node))


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def column_of(rows: list[ast.expr], at: int | None) -> Rows:
    """Column `at` of `rows` (the rows themselves for None); empty where a cell is missing or no constant."""
    cells: Rows = []
    for row in rows:
        if at is None:
            cell: ast.expr | None = row
        else:
            items = row.elts if isinstance(row, (ast.Tuple, ast.List)) else []
            cell = items[at] if at < len(items) else None
        if cell is None or not is_literal(cell):
            return []
        cells.append(cell)
    return cells


def module_constants(module: ast.Module) -> dict[str, ast.expr]:
    """Names that the module binds once, at its top, to a literal that nobody changes by name."""
    found = {
        target.id: statement.value
        for statement in module.body
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    if not found:
        return {}
    bound = Counter(
        node.id for node in nodes(module) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    return {name: value for name, value in found.items() if bound[name] == 1}
