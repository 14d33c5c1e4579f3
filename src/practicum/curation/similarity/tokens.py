"""Texts as words and code tokens, and these as sets of 64-bit hashes.

Owns: `words`, `code_tokens`, `shape_tokens`, `shingles`, `text_hash`.
Invariant: the same text gives the same hashes in every process and on every day. Pure, apart from a bounded memory of
hashes that were worked out before.
Must not know: tasks.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
NAME = "v"  # stands for any name that a person may choose
MOST = 20_000  # tokens of one text that are looked at
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' + r"'''(?:[^\\]|\\.)*?'''|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|"
    r"#[^\n]*|\d[\w.]*|\w+|[-+*/%@&|^<>=!]=|\*\*|//|->|<<|>>|\S",
    re.DOTALL,
)
_KEPT = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | {"self", "cls", "match", "case"}
_REMEMBERED = 400_000
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def words(text: str) -> list[str]:
    """The words of a statement, folded, without punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())[:MOST]


def code_tokens(text: str, most: int = MOST) -> list[str]:
    """The first `most` tokens of a program, without comments and layout. Strings count as one token each, quotes of
    either kind."""
    found = _TOKEN.findall(text)[:most]
    return [f'"{t.strip(t[0])}' if t[0] in "\"'" and len(t) > 1 else t for t in found if t[0] != "#"]


def shape_tokens(tokens: Sequence[str]) -> list[str]:
    """`tokens` of a program without the names that a person may choose; attributes, keywords and built-ins stay."""
    found: list[str] = []
    before = ""
    for token in tokens:
        name = (token[0].isalpha() or token[0] == "_") and token not in _KEPT and before != "."
        found.append(NAME if name else token)
        before = token
    return found


class _Memory(dict[str, int]):
    """Hashes of tokens, worked out once."""

    def __missing__(self, token: str) -> int:
        if len(self) > _REMEMBERED:
            self.clear()
        self[token] = value = _hash(token)
        return value


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_MEMORY = _Memory()


def text_hash(tokens: Sequence[str]) -> int:
    """One hash of a whole text; 0 for an empty one."""
    return _hash("\x1f".join(tokens)) or 1 if tokens else 0


def shingles(tokens: Sequence[str], length: int) -> Hashes:
    """The sorted set of hashes of all runs of `length` tokens; empty for a shorter text."""
    return np.unique(runs(tokens, length))


def runs(tokens: Sequence[str], length: int) -> Hashes:
    """The hash of the run of `length` tokens that starts at each place, in order."""
    count = len(tokens) - length + 1
    if count < 1:
        return np.empty(0, np.uint64)
    single = np.fromiter(map(_MEMORY.__getitem__, tokens), np.uint64, len(tokens))
    found = np.zeros(count, np.uint64)
    for at in range(length):
        found = found * _MULTIPLIER + single[at : at + count]
    return mixed(found)


def mixed(values: Any) -> Hashes:
    """`values` with their bits spread evenly (the finaliser of SplitMix64, Steele et al. 2014)."""
    values = np.asarray(values, np.uint64)
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return np.asarray(values ^ (values >> np.uint64(31)), np.uint64)
