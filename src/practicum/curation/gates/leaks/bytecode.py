"""Bytecode, judged by the words in it.

Owns: `Names`, `names_of`.
Invariant: bytecode is never unmarshalled, for that is not safe with what an unknown author made: names stand in it as
plain bytes. Words that the source beside it has too give nothing away. Must not know: where files come from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from practicum.curation.gates.testcode import Function, parsed
from practicum.records.tree import File

_WORD = re.compile(rb"[A-Za-z_]\w{2,}")
_NEW, _SHARE = 3, 0.6


@dataclass(frozen=True, slots=True)
class Names:
    """Names of functions that the gold changes, and words that only the gold has."""

    changed: frozenset[bytes] = frozenset()
    new: frozenset[bytes] = frozenset()

    def found_in(self, path: str, data: bytes, beside: Mapping[str, File]) -> str | None:
        """What of the gold the bytecode at `path` is made of, if its source in `beside` does not say the same."""
        folder, _, name = path.rpartition("/")
        stem = name.partition(".")[0]
        above = folder.removesuffix("__pycache__").rstrip("/")
        source = beside.get(f"{above}/{stem}.py" if above else f"{stem}.py")
        words = set(_WORD.findall(data))
        words -= set(_WORD.findall(source.data)) if source is not None else set()
        changed = {name for name in self.changed if any(word.endswith(name) for word in words)}
        new = {name for name in self.new if any(word.endswith(name) for word in words)}
        if changed:
            return f"bytecode that names {min(changed).decode()}, which its source does not"
        if len(new) >= max(_NEW, _SHARE * len(self.new)):
            return f"bytecode with {len(new)} of {len(self.new)} words that only the gold has"
        return None


def names_of(kept: Iterable[bytes], given: Iterable[bytes]) -> Names:
    """What bytecode of `kept` would show that nothing of `given` has."""
    before = list(given)
    known = {ast.dump(node) for data in before for node in _functions(data)}
    changed, new = set(), set[bytes]()
    for data in kept:
        changed |= {node.name.encode() for node in _functions(data) if ast.dump(node) not in known}
        new |= set(_WORD.findall(data))
    new -= {word for data in before for word in _WORD.findall(data)}
    return Names(frozenset(name for name in changed if not name.startswith(b"__")), frozenset(new))


def _functions(data: bytes) -> list[Function]:
    tree = parsed(data)
    return [node for node in ast.walk(tree) if isinstance(node, Function)] if tree is not None else []
