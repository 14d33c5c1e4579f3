"""Right variants mean the same, wrong ones are other programs, and none is there twice."""

from __future__ import annotations

import ast
import copy
import itertools
from typing import Any

import pytest

from practicum.verification.redteam.equivalents import equivalents_of
from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.redteam.rewrites import REWRITES
from practicum.verification.redteam.scopes import unsafe
from practicum.verification.redteam.variants import Source, code_key, same_code, source_of

GATHER = '''
def f(items, limit):
    """Sums and gathers."""
    total = 0
    seen = []
    kept = []
    for item in items:
        if item > 0 and item < limit:
            kept.append(item * 2)
    while total < 3:
        total += 1
    for number, item in enumerate(items):
        if item == 7:
            continue
        if item == 9:
            break
        seen.append((number, item))
    if not kept or limit < 0:
        return [total]
    best = max(kept) if limit > 2 else kept
    return [value + total for value in kept if value != best] + seen
'''
CHOOSE = """
def f(items, limit):
    if limit == 0:
        raise ZeroDivisionError("nothing")
    if limit > 3:
        result = [item // limit for item in items]
    elif limit > 1:
        result = list(reversed(items))
    else:
        result = sorted(items)
    return result if result else None
"""
RECURSE = """
def f(items, limit):
    if not items:
        return 0
    head = items[0]
    return (head if head < limit else -head) + f(items[1:], limit)
"""
NESTED = """
def f(items, limit):
    factor = limit
    def scaled(item):
        return item * factor
    out = []
    for item in items:
        out.append(scaled(item))
    return [scaled(factor) for factor in out]
"""
SHADOWS = """
def f(items, limit):
    x = limit
    out = []
    for x in items:
        out.append(x)
    squares = [x * x for x in items]
    return (x, out, squares)
"""
LOOP = """
def f(items, limit):
    out = []
    for item in items:
        if item != limit:
            out.append(item + 1)
    if limit > 1 and out:
        out.append(limit)
    if not out or limit < 0:
        raise IndexError(limit)
    return out
"""
INNER = """
def f(items, limit):
    from math import prod
    def within(lowest):
        return sorted(item for item in items if item >= lowest)
    return within(limit) or prod(items)
"""
SAMPLES = {"loop": LOOP, "gather": GATHER, "choose": CHOOSE, "recurse": RECURSE, "nested": NESTED, "shadows": SHADOWS}
SAMPLES["inner"] = INNER
INPUTS = [
    (list(items), limit)
    for items in ([], [1], [3, -2], [7, 9, 1], [5, 5, 2, 8], [0, 1, 2, 3, 4, 9, 6])
    for limit in (-1, 0, 1, 2, 3, 5, 10)
]


def source(text: str) -> Source:
    return Source(text, ("f",))


def behaviour(text: str) -> list[Any]:
    """What `f` gives or raises for each input, and what it did to its arguments."""
    space: dict[str, Any] = {}
    exec(compile(text, "<variant>", "exec"), space)
    seen: list[Any] = []
    for arguments in copy.deepcopy(INPUTS):
        try:
            result: Any = space["f"](*arguments)
        except Exception as error:  # noqa: BLE001  whatever it raises is its behaviour
            result = type(error).__name__
        seen.append((type(result), result, arguments))
    return seen


@pytest.mark.parametrize("name", SAMPLES)
def test_equivalents_behave_like_the_gold(name: str) -> None:
    """Every rewrite and mixture gives the same results, types, exceptions and side effects on every input."""
    text = SAMPLES[name]
    variants = equivalents_of(source(text), 60, "0")
    assert variants
    for variant in variants:
        assert behaviour(variant.text) == behaviour(text), f"{variant.name}\n{variant.text}"


@pytest.mark.parametrize("name", REWRITES)
def test_each_rewrite_keeps_the_meaning(name: str) -> None:
    """Each applies to some sample, changes its text there, and keeps its behaviour."""
    applied = 0
    for text in SAMPLES.values():
        tree = ast.parse(text)
        function = source(text).functions(tree)[0]
        if REWRITES[name](function, tree):
            applied += 1
            rewritten = ast.unparse(ast.fix_missing_locations(tree))
            assert rewritten != ast.unparse(ast.parse(text))
            assert behaviour(rewritten) == behaviour(text), rewritten
    assert applied


@pytest.mark.parametrize("make", [equivalents_of, mutants_of])
def test_variants_are_seeded_and_distinct(make: Any) -> None:
    """The same seed gives the same variants; none compiles to the code of another or of the gold; the limit holds."""
    variants = make(source(GATHER), 12, "7")
    assert variants == make(source(GATHER), 12, "7")
    assert len(variants) == 12
    assert not any(same_code(variant.text, GATHER) for variant in variants)
    assert not any(same_code(a.text, b.text) for a, b in itertools.combinations(variants, 2))


def test_mutants_are_mostly_wrong_and_spread_over_kinds() -> None:
    """A mutant is one change; nearly all behave otherwise, and a small choice still holds every kind."""
    text = GATHER.replace("    while total < 3:\n        total += 1\n", "    total += 3\n")  # or some would never end
    every = mutants_of(source(text), 1000, "0")
    wrong = [mutant for mutant in every if behaviour(mutant.text) != behaviour(text)]
    assert len(wrong) >= 0.85 * len(every) > 40
    kinds = {mutant.name.partition(":")[0] for mutant in every}
    expected = "comparison boundary operator constant condition return removed loop boolean call"
    assert kinds == set(expected.split())
    few = mutants_of(source(text), len(kinds), "0")
    assert {mutant.name.partition(":")[0] for mutant in few} == kinds


def test_messages_of_exceptions_are_left_alone() -> None:
    """What an exception says is not the work: no mutant changes it."""
    mutants = mutants_of(source(CHOOSE), 1000, "0")
    assert len(mutants) > 20
    assert not [mutant.name for mutant in mutants if mutant.name.startswith("constant: 'nothing'")]


def test_a_mutant_shows_its_change_only() -> None:
    """The diff of a variant holds the lines that differ, whatever the gold's own layout was."""
    laid_out = GATHER.replace("total = 0", "total   =   0  # starts at nothing")
    mutant = next(m for m in mutants_of(source(laid_out), 1000, "0") if m.name == "comparison: Lt to Gt")
    assert len(mutant.shown(source(laid_out)).splitlines()) == 2


def test_the_source_is_what_the_gold_changed() -> None:
    """Functions and methods that differ or are new; None where nothing in it does, or it is no Python."""
    before = b"class A:\n    def m(self):\n        return 1\n\ndef g():\n    return 2\n"
    found = source_of(before, before.replace(b"return 1", b"return 3") + b"\ndef new():\n    return 4\n")
    assert found is not None
    assert found.names == ("A.m", "new")
    assert source_of(before, before) is None
    assert source_of(before, b"def (") is None
    assert source_of(b"def (", before) is not None
    assert code_key("def (") is None


@pytest.mark.parametrize(
    "body", ["return locals()", "global x", "return eval('1')", "return super().f()", "import sys; sys._getframe()"]
)
def test_functions_that_look_at_themselves_are_left_alone(body: str) -> None:
    """Where a rewrite might be seen, none is made."""
    text = f"def f(a):\n    b = a if a else 1\n    {body}\n    return b\n"
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert unsafe(function)
    assert equivalents_of(source(text), 10, "0") == []


def test_notes_and_orders_that_do_not_matter_are_no_mutants() -> None:
    """No mutant changes a docstring or swaps what `min` or `max` is given; a long text is shown with both quotes."""
    text = (
        'def f(a, b):\n    """Notes, of which nothing depends."""\n    """More of them."""\n'
        '    name = "a long text that is cut off somewhere"\n    return min(a, b), max(b, a), g(a, b), name\n'
    )
    found = mutants_of(source_of(b"", text.encode()), 1000, "seed")  # type: ignore[arg-type]
    assert all("Notes, of which nothing depends." in each.text and "More of them." in each.text for each in found)
    swapped = [each.text for each in found if each.name == "call: first arguments swapped"]
    assert len(swapped) == 1
    assert "min(a, b), max(b, a), g(b, a)" in swapped[0]
    assert any(each.name == "constant: 'a long text that is …' to ''" for each in found)


def test_a_mutant_leaves_the_rest_of_its_file_as_it_was_written() -> None:
    """Only the changed function is written anew, be it a method, decorated, or indented in another way."""
    text = (
        "# first\nimport functools\n\n\ndef plain(a):\n    return a  # as it is\n\n\n"
        "class Box:\n  size = (1,\n          2)\n\n  @functools.cache\n  def get(self, n):\n"
        "    if n > 1:\n      return n\n    return 0\n\n  def last(self):  # kept\n    return  1\n"
    )
    head, _, rest = text.partition("  @functools.cache")
    tail = rest[rest.index("\n  def last") :]
    mutants = mutants_of(Source(text, ("Box.get",)), 50, "s")
    assert len(mutants) > 5
    for mutant in mutants:
        assert mutant.text.startswith(head)
        assert mutant.text.endswith(tail)
        assert code_key(mutant.text) not in (None, code_key(text))
