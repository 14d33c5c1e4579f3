"""Variants of a source whose text says little about what they do.

Owns: `right_variants`, `wrong_variants`, `rewritten`, `with_decoys`, `Wrong`.
Invariant: pure and seeded; a right variant does what the original does, and a disguised mutant what the mutant does.
Each is rewritten, and holds in every function a branch that is never taken, with the body of another variant: so
neither tokens, constants nor lines tell right from wrong without knowing what runs. The rest of the file stays.
Must not know: tests, boxes.

All is done on an excerpt that holds the functions alone, and put back in the end: a file may be far longer.
"""

from __future__ import annotations

import ast
import copy
import random
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.redteam.rewrites import REWRITES
from practicum.verification.redteam.scopes import unsafe
from practicum.verification.redteam.variants import Source, Variant, code_key, named_functions, parse

_POOL = 12  # rewrites to choose from, and mutants
_CHAIN = 3  # kinds of rewrite in one of them
_NEVER = ("not __name__", "__name__ == ''", "len(__name__) == 0", "__name__ is None")
_ALWAYS = ("__name__", "__name__ != ''", "len(__name__) > 0", "__name__ is not None")


@dataclass(frozen=True, slots=True)
class Wrong:
    """A disguised mutant: what was changed, and the whole file."""

    name: str
    text: str


def excerpt_of(source: Source) -> Source:
    """The functions alone, methods in a class of that name."""
    parts = []
    for name, node in named_functions(source.tree()):
        if name in source.names:
            owner, _, _ = name.rpartition(".")
            parts.append(ast.ClassDef(owner, [], [], [node], []) if owner else node)
    return Source(ast.unparse(ast.fix_missing_locations(ast.Module(list(parts), []))) + "\n", source.names)


def put_back(source: Source, excerpt: str) -> str:
    """The file with its functions as they are in `excerpt`; what else is there comes before them."""
    new = list(ast.iter_child_nodes(parse(excerpt)))
    functions: dict[str, ast.FunctionDef] = {}
    helpers: list[str] = []
    for node in new:
        found = dict(named_functions(ast.Module([node], [])))  # type: ignore[list-item]
        if found.keys() & set(source.names):
            functions |= found
        else:
            helpers.append(ast.unparse(node))
    lines = source.text.splitlines(keepends=True)
    places = []
    for top in source.tree().body:
        for name, node in named_functions(ast.Module([top], [])):
            if name in functions:
                places.append((_first(node), node.end_lineno or node.lineno, node.col_offset, functions[name]))
    earliest = min(_first(top) for top in source.tree().body if set(_names(top)) & functions.keys())
    for first, last, indent, node in sorted(places, key=lambda place: -place[0]):
        lines[first - 1 : last] = [textwrap.indent(ast.unparse(node), " " * indent) + "\n"]
    lines[earliest - 1 : earliest - 1] = [f"{helper}\n\n\n" for helper in helpers]
    return "".join(lines)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _names(top: ast.stmt) -> list[str]:
    return [name for name, _ in named_functions(ast.Module([top], []))]


def right_variants(source: Source, count: int, seed: str) -> list[str]:
    """`count` texts that do what `source` does; together they change as many of its lines as can be had."""
    rng = random.Random(f"right-{seed}")
    whole, source = source, excerpt_of(source)
    lines = set(_lines(source.text))
    pool = [text for _ in range(_POOL) if (text := rewritten(source, rng)) is not None]
    chosen: list[str] = []
    while pool and len(chosen) < count:
        best = max(pool, key=lambda text: len(lines - set(_lines(text))))
        lines &= set(_lines(best))
        pool.remove(best)
        chosen.append(best)
    chosen += [source.text] * (count - len(chosen))
    others = [mutant.text for mutant in _mutants(source, seed)] or [source.text]
    return [put_back(whole, with_decoys(text, source.names, rng.choice(others), rng)) for text in chosen]


def wrong_variants(source: Source, count: int, seed: str) -> list[Wrong]:
    """At most `count` disguised mutants, twelve at most, of kinds that take turns."""
    rng = random.Random(f"wrong-{seed}")
    whole, source = source, excerpt_of(source)
    mutants = _mutants(source, seed)[:count]
    others = [source.text, *(mutant.text for mutant in mutants)]
    made = []
    for mutant in mutants:
        text = rewritten(Source(mutant.text, source.names), rng) or mutant.text
        disguised = with_decoys(text, source.names, rng.choice(others), rng)
        made.append(Wrong(mutant.name, put_back(whole, disguised)))
    return made


@lru_cache(maxsize=8)
def _mutants(source: Source, seed: str) -> tuple[Variant, ...]:
    """Those of which right variants hold the bodies as decoys, and wrong ones are made: so that neither shows which."""
    return tuple(mutants_of(source, _POOL, seed))


def rewritten(source: Source, rng: random.Random) -> str | None:
    """The file after a few rewrites, drawn anew, that keep its meaning; None where none applies."""
    text, done = source.text, 0
    for name in rng.sample(sorted(REWRITES), len(REWRITES)):
        tree = parse(text)
        functions = Source(text, source.names).functions(tree)
        if any(unsafe(function) for function in functions):
            return None
        changed = [REWRITES[name](function, tree) for function in functions]
        if any(changed):
            text, done = ast.unparse(ast.fix_missing_locations(tree)) + "\n", done + 1
        if done == _CHAIN:
            break
    return text if done and code_key(text) is not None else None


def with_decoys(text: str, names: Sequence[str], other: str, rng: random.Random) -> str:
    """`text` with a branch in each function of `names` that is never taken and holds that function's body in `other`.

    A function for which that is no program is left as it is.
    """
    bodies = {name: node.body for name, node in named_functions(parse(other))}
    for name in names:
        tree = parse(text)
        node = next((found for place, found in named_functions(tree) if place == name), None)
        if node is None or name not in bodies or any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(node)):
            continue
        head = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        real, decoy = node.body[len(head) :], _without_docstring(copy.deepcopy(bodies[name]))
        if not real or not decoy:
            continue
        if rng.random() < 0.5:
            branch = ast.If(_condition(rng.choice(_ALWAYS)), real, decoy)
        else:
            branch = ast.If(_condition(rng.choice(_NEVER)), decoy, real)
        node.body = [*head, branch]
        changed = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        if code_key(changed) is not None:
            text = changed
    return text


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented and isinstance(first.value.value, str) else body  # type: ignore[attr-defined]


def _condition(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _lines(text: str) -> list[str]:
    return [line.strip() for line in ast.unparse(parse(text)).splitlines()]
