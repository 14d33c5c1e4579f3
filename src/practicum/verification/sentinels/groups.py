"""The questions of one test function, with their alternatives drawn.

Owns: `Group`, `find_groups`.
Invariant: a question stands only where the test goes on in the same way whether its assertion holds or not: not where
an assertion's failure is caught or expected, nor in a function of the test's own. Two assertions that compare with one
name share a group, and so their lots; each row and each item has a lot of its own. Must not know: variants, files.
"""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from practicum.verification.sentinels.literals import alternatives, is_readable, magnitude, places
from practicum.verification.sentinels.questions import Question, ask
from practicum.verification.sentinels.scope import Binding, Function, Loop, Scope, leaves

_COMMON = ("KeyError", "ValueError", "TypeError", "IndexError", "AttributeError", "RuntimeError", "ZeroDivisionError")
_EXCEPTIONS = 3  # that are offered at a time
_RARE = ("ZeroDivisionError", "OverflowError", "RecursionError", "BufferError", "EOFError", "UnboundLocalError")


@dataclass(frozen=True, slots=True)
class Site:
    """One assertion. `sure` says that a test which ends without an exception has come by it."""

    statement: ast.stmt
    sure: bool
    broad: bool


@dataclass(slots=True)
class Group:
    """Assertions that share their lots, one for each slot. `options` are a slot's alternatives, the author's first.

    More slots than one are the rows of a parametrised function or, with `loop`, the items of a loop. `most` is how many
    other constants were asked for, None where the alternatives are no constants. `shown`: the other alternative is the
    author's with something around it.
    """

    sites: list[Site]
    slots: tuple[ast.expr, ...]
    options: list[list[ast.expr]]
    strong: bool
    most: int | None = None
    rows: bool = False
    loop: Loop | None = None
    shown: bool = False

    @property
    def count(self) -> int:
        """How many alternatives each slot has."""
        return min(map(len, self.options))

    def many(self, slot: int) -> bool:
        """Whether the slot has more alternatives than were asked for."""
        return self.most is not None and len(self.options[slot]) > self.most

    def among(self, slot: int) -> int:
        """Among how many alternatives the author's is hidden, for who knows how constants are drawn."""
        options = self.options[slot][: self.count]
        return places(options[0], len(options) - 1) if self.most is not None else len(options)

    def readable(self, slot: int) -> bool:
        """Whether the language of a text tells the author's alternative from the others."""
        return self.most is not None and is_readable(self.options[slot][0])

    def sure(self, site: Site, slot: int) -> bool:
        """Whether a test which ends has come by `site` with this slot."""
        return site.sure and (self.loop is None or slot == 0 or not leaves(self.loop))


@dataclass(frozen=True, slots=True)
class Draws:
    """What chance decides: `constants` the changed constants; `turn` goes through exceptions, judgement by judgement.

    `alter` and `quiet` are the names, in the rewritten file, of what changes a value and what forbids exceptions.
    `known` are the alternatives of constants: a constant that stands twice has the same ones at both places, or the
    one that they have in common would be the author's.
    """

    constants: random.Random
    turn: int
    alter: str
    quiet: str
    known: dict[tuple[str, float, bool], list[ast.expr]] = field(default_factory=dict)

    def others(self, written: ast.expr, count: int, gap: float, disjoint: bool) -> list[ast.expr]:
        """At most `count` other constants."""
        key = (ast.unparse(written), gap, disjoint)
        if key not in self.known:
            found = alternatives([written], self.constants, count, gap=gap, disjoint=disjoint)
            self.known[key] = [one for (one,) in found]
        return self.known[key]


def find_groups(function: Function, scope: Scope, draws: Draws, count: int) -> list[Group]:
    """The groups of `function`, each with at least one alternative and at most `count`."""
    found = [
        (Site(statement, sure, question.broad), question)
        for statement, sure, question in _walk(function, scope)
        # What is looked at afterwards is there only where the author's exception was waited for.
        if question.caught is None or not scope.loads(question.caught)
    ]
    groups: list[Group] = []
    bound: dict[str, Group] = {}
    readers = [name.id for _, question in found for name in question.names]
    for site, question in found:
        binding = _settled(question, scope, readers)
        if binding is not None and binding.key in bound:
            bound[binding.key].sites.append(site)
            continue
        group = _group(site, question, binding, draws, count)
        groups.append(group)
        if binding is not None and group.strong:
            bound[binding.key] = group
    return groups


def _settled(question: Question, scope: Scope, readers: list[str]) -> Binding | None:
    """The constants behind the question's name, where nothing but questions reads the name."""
    if not question.names:
        return None
    name = question.names[0]
    return scope.binding(name) if scope.loads(name.id) == readers.count(name.id) else None


def _group(site: Site, question: Question, binding: Binding | None, draws: Draws, count: int) -> Group:
    slots, kind, written = question.slots, question.kind, list(question.slots)
    if binding is not None:
        slots = binding.slots
        written = [binding.inline] if binding.inline is not None else list(slots)
    elif question.names:
        kind = "value"
    if kind in ("constant", "disjoint"):
        options = [[one, *draws.others(one, count, _gap(question, one), kind == "disjoint")] for one in written]
        rows, loop = (binding.rows, binding.loop) if binding is not None else (False, None)
        group = Group([site], slots, options, strong=True, most=count, rows=rows, loop=loop)
        if group.count > 1:
            return group
        slots, kind = question.slots, "value"
    (slot,) = question.slots
    if kind == "value":
        changed = ast.Call(ast.Name(draws.alter, ast.Load()), [slot], [])
        return Group([site], slots, [[slot, changed]], strong=False, shown=True)
    if kind == "condition":
        assert question.replacement is not None
        return Group([site], slots, [[slot, question.replacement]], strong=False)
    if kind == "no_exception":
        quiet = ast.Call(ast.Name(draws.quiet, ast.Load()), [], [])
        return Group([site], slots, [[slot, quiet]], strong=False, shown=True)
    names, strong = _exceptions(slot, draws)
    others: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names[:count]]
    return Group([site], slots, [[slot, *others]], strong=strong)


def _gap(question: Question, written: ast.expr) -> float:
    """By how much the numbers in `written` must move to be outside the question's tolerance."""
    if not question.relative:
        return question.gap
    values = [node.value for node in ast.walk(written) if isinstance(node, ast.Constant)]
    sizes = [magnitude(value) for value in values if isinstance(value, (int, float))]
    return max(question.gap, question.relative * max(sizes, default=0.0))


def _exceptions(wanted: ast.expr, draws: Draws) -> tuple[list[str], bool]:
    """Names of exceptions that none of `wanted` is related to, others at each turn.

    Of a class that the file does not define the ancestors are unknown, so only classes with few heirs will do.
    """
    nodes = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    known = [getattr(builtins, node.id, None) for node in nodes if isinstance(node, ast.Name)]
    classes = [kind for kind in known if isinstance(kind, type) and issubclass(kind, BaseException)]
    own = len(classes) == len(nodes)
    pool = [
        name
        for name in (_COMMON if own else _RARE)
        if not any(
            issubclass(kind, getattr(builtins, name)) or issubclass(getattr(builtins, name), kind) for kind in classes
        )
    ]
    # The next turn offers others throughout: a class with two ancestors in the pool must not hold twice by two names.
    start = draws.turn * _EXCEPTIONS % len(pool)
    return (pool[start:] + pool[:start])[:_EXCEPTIONS], own


def _walk(function: Function, scope: Scope) -> Iterator[tuple[ast.stmt, bool, Question]]:
    """Each assertion that can ask, whether it is surely come by, and its question."""
    leaves = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))
    yield from _statements(function.body, scope, not leaves)


def _statements(body: list[ast.stmt], scope: Scope, sure: bool) -> Iterator[tuple[ast.stmt, bool, Question]]:
    for statement in body:
        question = ask(statement)
        if question is not None:
            yield statement, sure, question
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            yield from _statements(statement.body, scope, sure and scope.repeats(statement))
            yield from _statements(statement.orelse, scope, False)
        elif isinstance(statement, (ast.If, ast.While)):
            yield from _statements(statement.body, scope, False)
            yield from _statements(statement.orelse, scope, False)
        elif isinstance(statement, (ast.With, ast.AsyncWith)) and not _expects(statement):
            yield from _statements(statement.body, scope, False)
        elif isinstance(statement, ast.Try):
            if not statement.handlers:
                yield from _statements(statement.body, scope, False)
            yield from _statements(statement.finalbody, scope, False)
        sure = sure and not leaves(statement)


def _expects(statement: ast.With | ast.AsyncWith) -> bool:
    """Whether what it opens may swallow an assertion's failure: anything but what is known not to."""
    known = ("subTest", "open", "patch", "object", "chdir", "TemporaryDirectory", "Path", "NamedTemporaryFile", "warns")
    for item in statement.items:
        call = item.context_expr
        name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            name = call.func.id
        if name not in known:
            return True
    return False
