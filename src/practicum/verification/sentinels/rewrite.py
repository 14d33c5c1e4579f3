"""One frozen file, rewritten so that its expected tests stand in it as variants.

Owns: `rewrite`.
Invariant: the rewritten file holds no trace of which alternative its author wrote: no name, order, line number or count
depends on it, and each variant holds each question's alternatives by lot. A test that cannot be asked anything stays
as it is. Pure but for its random numbers. Must not know: reports.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from practicum.verification.sentinels.groups import Draws, Group, find_groups
from practicum.verification.sentinels.probes import Asked, Lot, Place, Probe
from practicum.verification.sentinels.pruning import nodes, shortened
from practicum.verification.sentinels.rows import Parameters, inline_rows, read_parameters
from practicum.verification.sentinels.scope import Function, Loop, Scope, module_constants

FEW = 10  # with fewer strong questions in a file that earn something, these get more variants: guessing must not pay
MORE_VARIANTS = 6
_Tags = list[list[list[str]]]  # by assertion, variant and item: one item, where it is not on a loop's items
_SKIPS = frozenset(["skip", "skipIf", "skipUnless"])


@dataclass(frozen=True, slots=True)
class _Plan:
    function: Function
    parameters: Parameters | None
    groups: list[Group]
    tests: dict[str, Place]


def rewrite(
    source: str,
    where: str,
    tests: Mapping[str, Place],
    lot: Lot,
    earning: Collection[str],
    called: Collection[str] | None = None,
) -> tuple[str, dict[str, Probe]]:
    """The file with variants of `tests` (by id) in their place, and a probe for each that can be asked something.

    Those of `earning` that ask little get more. With `called`, plain functions of tests that have other names are
    left out. Raises `SyntaxError` or `ValueError` where it does not parse.
    """
    text, named = shortened(source, frozenset(called) if called is not None else None)
    module = ast.parse(text)
    words = _words(lot.chance(f"names {where}"))
    draws = Draws(
        lot.chance(f"constants {where}"),
        lot.chance(f"turn {where}", kept=True).randrange(1000) + lot.turn,
        f"alter_{next(words)}",
        f"quiet_{next(words)}",
    )
    check = f"check_{next(words)}"
    constants = module_constants(module)
    written = set[str]()
    plans = [plan for plan in _plans(module, tests, named, constants, draws, written) if plan.groups]
    if not plans:
        return source, {}
    earns = [not plan.tests.keys().isdisjoint(earning) for plan in plans]
    few = sum(group.strong for plan, paid in zip(plans, earns, strict=True) if paid for group in plan.groups) < FEW
    lots, probes, made = lot.chance(f"lots {where}", kept=True), dict[str, Probe](), dict[int, list[Function]]()
    for plan, paid in zip(plans, earns, strict=True):
        count = min(MORE_VARIANTS if few and paid else 2, *(group.count for group in plan.groups))
        made[id(plan.function)], found = _variants(plan, count, lots, words, check, reverse=bool(lot.turn % 2))
        probes |= found
    _replace(module, made)
    if written:
        _drop_unread(module, written)
    names = [ast.alias("check", check), ast.alias("alter", draws.alter), ast.alias("quiet", draws.quiet)]
    module.body.insert(_after_future(module), ast.ImportFrom(lot.module, names, 0))
    return ast.unparse(module) + "\n", probes


def _words(rng: random.Random) -> Iterator[str]:
    """Distinct words that mean nothing."""
    seen: set[str] = set()
    while True:
        word = "".join(rng.choice("bcdfghjkmnpqrstvwxz") for _ in range(6))
        if word not in seen:
            seen.add(word)
            yield word


def _plans(
    module: ast.Module,
    tests: Mapping[str, Place],
    named: Set[str],
    constants: dict[str, ast.expr],
    draws: Draws,
    written: set[str],
) -> Iterator[_Plan]:
    """Each function of `tests` that is not `named` in the file; `written` gets the constants of the module that now
    stand in functions instead."""
    found: dict[int, tuple[Function, dict[str, Place]]] = {}
    for name, place in tests.items():
        function = _locate(module, place.path)
        if function is not None and function.name not in named and _known_wrappers(function):
            found.setdefault(id(function), (function, {}))[1][name] = place
    for function, places in found.values():
        written |= inline_rows(function, constants)
        parameters = read_parameters(function)
        if parameters and not {place.tail for place in places.values()} <= {f"[{name}]" for name in parameters.ids}:
            parameters = None
        scope = Scope(function, constants, parameters.columns if parameters else {})
        groups = find_groups(function, scope, draws, MORE_VARIANTS - 1)
        written |= scope.written
        yield _Plan(function, parameters, groups, places)


def _locate(module: ast.Module, path: tuple[str, ...]) -> Function | None:
    """The function at `path`; a method may stand in a base class of the same file."""
    *classes, name = path
    body, seen = module.body, set[str]()
    top = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    owner: ast.ClassDef | None = None
    for part in classes:
        owner = next((node for node in reversed(body) if isinstance(node, ast.ClassDef) and node.name == part), None)
        if owner is None:
            return None
        body = owner.body
    todo = [body] if owner is None else []
    if owner is not None:
        bases = [owner]
        while bases:
            base = bases.pop(0)
            if base.name not in seen:
                seen.add(base.name)
                todo.append(base.body)
                bases += [top[item.id] for item in base.bases if isinstance(item, ast.Name) and item.id in top]
    for statements in todo:
        for node in reversed(statements):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                return node
    return None


def _known_wrappers(function: Function) -> bool:
    """Whether nothing that may run the function more than once, or otherwise, decorates it."""
    for decorator in function.decorator_list:
        text = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
        known = text.startswith(("pytest.mark.", "mark.", "patch", "mock.patch", "unittest.mock.patch"))
        if not known and text.rpartition(".")[2] not in _SKIPS:
            return False
    return True


def _variants(
    plan: _Plan, count: int, lots: random.Random, words: Iterator[str], check: str, *, reverse: bool
) -> tuple[list[Function], dict[str, Probe]]:
    """`count` copies of a function, in the order in which they are to run, and a probe for each of its tests."""
    drawn = [[lots.sample(range(count), count) for _ in group.slots] for group in plan.groups]
    names = [f"{plan.function.name}_{word}" for word in sorted(next(words) for _ in range(count))]
    if reverse:
        names.reverse()
    tags: list[_Tags] = []
    for at, group in enumerate(plan.groups):
        for number, slot in enumerate(group.slots):
            _mark(slot, "slot", (at, number))
        for number, site in enumerate(group.sites):
            _mark(site.statement, "site", (at, number))
        if group.loop is not None:
            _mark(group.loop, "item", vars(group.loop).get("sentinel_item") or f"item_{next(words)}")
        items = len(group.slots) if group.loop is not None else 1
        tags.append([[[next(words) for _ in range(items)] for _ in range(count)] for _ in group.sites])
    if plan.parameters is not None:
        _mark(plan.parameters.call, "rows", True)
    made: dict[str, Function] = {}
    for variant, name in enumerate(names):
        chosen = [
            [own[lot[variant]] for own, lot in zip(group.options, drawn[at], strict=True)]
            for at, group in enumerate(plan.groups)
        ]
        own_tags = [[tag[variant] for tag in sites] for sites in tags]
        changed = _Variant(plan, chosen, own_tags, check).of(plan.function)
        made[name] = type(changed)(**{field: getattr(changed, field, None) for field in changed._fields}, lineno=0)
        made[name].name = name
    probes = {}
    for test, place in plan.tests.items():
        tail, row = place.tail, 0
        if plan.parameters is not None:
            row = plan.parameters.ids.index(tail[1:-1])
            tail = f"[{plan.parameters.neutral[row]}]"
        probes[test] = Probe(tuple(place.head + name + tail for name in names), tuple(_asked(plan, row, drawn, tags)))
    return [made[name] for name in sorted(names)], probes


def _asked(plan: _Plan, row: int, drawn: list[list[list[int]]], tags: list[_Tags]) -> Iterator[Asked]:
    """What the test of this row is asked: each assertion, and on a loop's items each for each item."""
    for at, group in enumerate(plan.groups):
        for number, site in enumerate(group.sites):
            for slot in [row] if group.rows else range(len(group.slots)):
                lot = drawn[at][slot]
                yield Asked(
                    tuple(own[0 if group.rows else slot] for own in tags[at][number]),
                    tuple(lot),
                    tuple(ast.unparse(group.options[slot][option]) for option in lot),
                    strong=group.strong,
                    many=group.many(slot),
                    readable=group.readable(slot),
                    shown=group.shown,
                    among=group.among(slot),
                    sure=group.sure(site, slot),
                    line=site.statement.lineno,
                )


def _mark(node: ast.AST, kind: str, value: Any) -> None:
    setattr(node, f"sentinel_{kind}", value)


class _Variant:
    """Puts the chosen alternatives into a function, and each assertion into a check of its own.

    What stays as it is is shared with the function, not copied: it is only going to be written down.
    """

    def __init__(self, plan: _Plan, chosen: list[list[ast.expr]], tags: _Tags, check: str) -> None:
        self.plan, self.chosen, self.tags, self.check = plan, chosen, tags, check

    def of(self, value: Any) -> Any:
        """`value`, a node or a list of them, as this variant has it."""
        if isinstance(value, list):
            items = [self.of(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        if not isinstance(value, ast.AST):
            return value
        marks = vars(value)
        if "sentinel_slot" in marks:
            group, number = marks["sentinel_slot"]
            return self.chosen[group][number]
        fields = {name: getattr(value, name, None) for name in value._fields}
        changed = {name: self.of(field) for name, field in fields.items()}
        if any(changed[name] is not fields[name] for name in fields):
            made: Any = type(value)
            value = made(**changed, lineno=getattr(value, "lineno", 0))
        if "sentinel_rows" in marks:
            assert self.plan.parameters is not None
            return self.plan.parameters.neutral_call(value)
        if "sentinel_item" in marks:
            return _numbered(value, marks["sentinel_item"])
        return self._checked(value, *marks["sentinel_site"]) if "sentinel_site" in marks else value

    def _checked(self, statement: ast.stmt, group: int, number: int) -> ast.With:
        own, loop = [ast.Constant(tag) for tag in self.tags[group][number]], self.plan.groups[group].loop
        arguments: list[ast.expr] = [*own]
        if loop is not None:
            item = ast.Name(vars(loop)["sentinel_item"], ast.Load())
            arguments = [ast.Subscript(ast.Tuple([*own], ast.Load()), item, ast.Load())]
        if self.plan.groups[group].sites[number].broad:
            arguments.append(ast.Constant(True))
        call = ast.Call(ast.Name(self.check, ast.Load()), arguments, [])
        return ast.With([ast.withitem(call)], [statement], lineno=statement.lineno)


def _numbered(loop: Loop, name: str) -> Loop:
    """`loop` with `name` for the number of its item, so that each report says which item it is about."""
    assert isinstance(loop.iter, (ast.List, ast.Tuple))
    items = [ast.Tuple([ast.Constant(number), item], ast.Load()) for number, item in enumerate(loop.iter.elts)]
    target = ast.Tuple([ast.Name(name, ast.Store()), loop.target], ast.Store())
    return type(loop)(target, ast.List([*items], ast.Load()), loop.body, loop.orelse, lineno=loop.lineno)


def _replace(owner: ast.Module | ast.ClassDef, made: Mapping[int, list[Function]]) -> None:
    """Put what was `made` of functions, by their identity, in their places."""
    owner.body = [new for item in owner.body for new in made.get(id(item), [item])]
    for node in owner.body:
        if isinstance(node, ast.ClassDef):
            _replace(node, made)


def _drop_unread(module: ast.Module, written: set[str]) -> None:
    """Take out constants that were written into the tests and that nobody reads any more."""
    read = {node.id for node in nodes(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    gone = written - read

    def stays(node: ast.stmt) -> bool:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        return not (isinstance(target, ast.Name) and target.id in gone)

    module.body = [node for node in module.body if stays(node)]


def _after_future(module: ast.Module) -> int:
    """Where an import may stand: below the docstring and `from __future__`."""
    at = 0
    for number, node in enumerate(module.body):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if (number == 0 and is_text) or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            at = number + 1
    return at
