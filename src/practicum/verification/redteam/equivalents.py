"""Right variants of a gold: rewrites that keep its meaning, and look like another person's work.

Owns: `equivalents_of`.
Invariant: pure and seeded; each rewrite applies only where its conditions, checked on the tree, make it keep the
function's results and exceptions. What rests on a name's run-time type is left alone.
Must not know: tasks, boxes, how a single rewrite is done.
"""

from __future__ import annotations

import ast
import random

from practicum.verification.redteam.rewrites import REWRITES
from practicum.verification.redteam.scopes import unsafe
from practicum.verification.redteam.variants import Source, Variant, code_key

_CHAIN = 3  # rewrites in one of the mixed variants


def equivalents_of(source: Source, limit: int, seed: str) -> list[Variant]:
    """At most `limit` rewrites: each kind alone where it applies, then mixtures of several."""
    keys = {repr(code_key(source.text))}
    found: list[Variant] = []

    def keep(name: str, text: str) -> None:
        key = code_key(text)
        if key is not None and repr(key) not in keys:
            keys.add(repr(key))
            found.append(Variant(name, 0, text))

    for name in REWRITES:
        if len(found) == limit:
            return found
        text = _rewritten(source, [name])
        if text is not None:
            keep(name, text)
    rng = random.Random(f"equivalents-{seed}")
    for _ in range(limit):
        if len(found) == limit:
            break
        names = rng.sample(sorted(REWRITES), _CHAIN)
        text = _rewritten(source, names)
        if text is not None:
            keep(" + ".join(names), text)
    return found


def _rewritten(source: Source, names: list[str]) -> str | None:
    """The file after the rewrites `names`, one after another; None where one of them applies nowhere."""
    text = source.text
    for name in names:
        here = Source(text, source.names)
        tree = here.tree()
        functions = here.functions(tree)
        if any(unsafe(function) for function in functions):
            return None
        changed = [REWRITES[name](function, tree) for function in functions]
        if not any(changed):
            return None
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return text
