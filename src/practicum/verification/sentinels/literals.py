"""Other constants of the same kind.

Owns: `is_literal`, `is_readable`, `magnitude`, `alternatives`.
Invariant: an alternative is equal to the literal in no way a test could compare them (`==`, as a multiset, within the
stated gap), and keeps its structure, its types, its signs, the order of its numbers and about its size; a text keeps
its own words, or at least its own letters, where these can stand in many orders. Pure but for `rng`.
Must not know: assertions.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import random
import re
import string
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_TRIES = 30
_NUMBERS = (int, float, complex)
_NEAR = 9  # so far at least may a number move: much farther than as many as are drawn
_EXACT = 1 << 53  # whole numbers up to it are floats
_ORDERS = 12  # of words or letters: with fewer, there would be too few other texts, and too easily hit
_WORD, _LETTER, _READABLE = re.compile(r"[A-Za-z]+"), re.compile(r"[A-Za-z]"), re.compile(r"[^\W\d_]{2}")


def is_literal(node: ast.expr) -> bool:
    """Whether `node` is a constant or a list, tuple, set or dict of constants."""
    if not _of_constants(node):
        return False
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):  # such as a list in a set
        return False
    return True


def is_readable(node: ast.expr) -> bool:
    """Whether a text that changes in a literal has letters in a row: its language tells it from others."""
    if isinstance(node, ast.Dict):
        return any(map(is_readable, node.values))
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return any(map(is_readable, node.elts))
    text = node.value if isinstance(node, ast.Constant) else None
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return isinstance(text, str) and _READABLE.search(text) is not None


def _of_constants(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is not Ellipsis
    if isinstance(node, ast.UnaryOp):
        return (
            isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
            and type(node.operand.value) in _NUMBERS
        )
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(map(_of_constants, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and _of_constants(key) for key in node.keys) and all(map(_of_constants, node.values))
    return False


def magnitude(number: float) -> float:
    """Its size; infinite where it is a whole number larger than any float."""
    size = abs(number)
    return float(size) if size <= sys.float_info.max else math.inf


def alternatives(
    slots: Sequence[ast.expr], rng: random.Random, count: int, *, gap: float = 0.0, disjoint: bool = False
) -> list[list[ast.expr]]:
    """At most `count` distinct ways to change every one of `slots`; fewer where the kind has fewer, such as bools.

    Numbers move by more than `gap`; where that is infinite, there are none. With `disjoint`, a changed container shares
    no element with the old one.
    """
    if not math.isfinite(gap):
        return []
    found: list[list[ast.expr]] = []
    falls = _falls(min((_room(slot, gap) for slot in slots), default=0), rng, count)
    for number in range(_TRIES):
        if len(found) == count:
            break
        # There may be nothing left below that is unlike all others.
        changed = [_changed(slot, rng, gap, falls[len(found)] and number < _TRIES // 2) for slot in slots]
        if not all(map(is_literal, changed)):  # a list took the place of a None in a set
            continue
        # Apart from the others as well: two wrong answers that both hold are a contradiction too.
        if all(
            _apart(one, new, gap, disjoint and before is slots)
            for before in (slots, *found)
            for one, new in zip(before, changed, strict=True)
        ):
            found.append(changed)
    return found


def _apart(old: ast.expr, new: ast.expr, gap: float, disjoint: bool) -> bool:
    """Whether two literals are unequal, as they are and as multisets; every pair of numbers by more than `gap`."""
    before, after = ast.literal_eval(old), ast.literal_eval(new)
    if before == after or sorted(map(repr, _leaves(before))) == sorted(map(repr, _leaves(after))):
        return False
    if gap:
        pairs = list(zip(_numbers(before), _numbers(after), strict=False))
        if pairs and all(abs(one - other) <= gap for one, other in pairs):
            return False
    return not disjoint or not any(item in after for item in before)


def _numbers(value: Any) -> list[Any]:
    return [leaf for leaf in _leaves(value) if isinstance(leaf, (int, float))]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(key)
            yield from _leaves(item)
    elif isinstance(value, (list, tuple, set)):
        yield type(value).__name__
        for item in value:
            yield from _leaves(item)
    else:
        yield value


@dataclass(frozen=True, slots=True)
class _Draw:
    """One change, the same for all leaves of a literal, so that what was sorted or repeated stays so."""

    whole: int
    part: float
    letters: int
    digits: int
    gap: float
    rng: random.Random

    @property
    def step(self) -> int:
        """`whole`, or as much of it as a float holds exactly."""
        return max(-_EXACT, min(_EXACT, self.whole))


def places(node: ast.expr, count: int) -> int:
    """At how many places among `count` others of its kind, in order, the literal may stand."""
    return min(count, _room(node, 0.0)) + 1


def _room(node: ast.expr, gap: float) -> int:
    """How many steps down its whole numbers have before they pass zero; many where they need not stop there."""
    numbers = [leaf for leaf in _leaves(ast.literal_eval(node)) if type(leaf) is int]
    low = min(numbers, default=-1)
    return max(0, low - math.ceil(gap)) if low >= 0 else _TRIES


def _falls(room: int, rng: random.Random, count: int) -> list[bool]:
    """Which of `count` alternatives are to be less than the author's.

    As many as by an even lot, so that his stands at each place in their order as often; and the first, which may be the
    only one in use, as often as not.
    """
    most = min(count, room)
    less = rng.randint(0, most)
    first = most > 0 and rng.random() * most < less
    others = [True] * (less - first) + [False] * (count - 1 - less + first)
    rng.shuffle(others)
    return [first, *others]


def _changed(node: ast.expr, rng: random.Random, gap: float, down: bool) -> ast.expr:
    """`node` with other leaves, whose numbers fall if it is to go `down`, where they can without passing zero."""
    numbers = [leaf for leaf in _leaves(ast.literal_eval(node)) if type(leaf) is int]
    low, high = min(numbers, default=0), max((abs(leaf) for leaf in numbers), default=0)
    near = math.ceil(gap)
    part = rng.uniform(0.15, 0.9) * (-1 if down else 1)
    size = rng.randint(1, _NEAR) if rng.random() < 0.5 else rng.randint(1, max(_NEAR, high // 2))
    if down and low >= 0:
        down = low > near
        size = rng.randint(1, low - near) if down and size > low - near else size
    size += near
    draw = _Draw(-size if down else size, part, rng.randrange(1, 26), rng.randrange(1, 10), gap, rng)
    return _walk(node, draw)


def _walk(node: ast.expr, draw: _Draw) -> ast.expr:
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        items = [_walk(item, draw) for item in node.elts]
        if not items:
            items = [ast.Constant(abs(draw.whole))]
        return type(node)(elts=items) if isinstance(node, ast.Set) else type(node)(elts=items, ctx=ast.Load())
    if isinstance(node, ast.Dict):
        if not node.keys:
            return ast.Dict([ast.Constant("key")], [ast.Constant(abs(draw.whole))])
        return ast.Dict(copy.deepcopy(node.keys), [_walk(item, draw) for item in node.values])
    return _expression(_leaf(ast.literal_eval(node), draw))


def _leaf(value: Any, draw: _Draw) -> Any:
    if isinstance(value, bool):
        return not value
    if value is None:
        return draw.rng.choice((0, "", []))
    if isinstance(value, int):
        return value + draw.whole
    if isinstance(value, float):
        return _float(value, draw)
    if isinstance(value, complex):
        return value + draw.step
    if isinstance(value, bytes):
        return _text(value.decode("latin-1"), draw).encode("latin-1")
    return _text(value, draw)


def _float(value: float, draw: _Draw) -> float:
    """Moved by a part of its size, with as many decimals as it had, and by more than the gap."""
    if not math.isfinite(value):
        return float(draw.step)
    move = draw.part * (abs(value) or 1.0)
    move += math.copysign(2 * draw.gap, move)
    if not math.isfinite(value + move):
        move = -value / 2
    text = repr(value)
    if "e" in text:
        return value + move
    rounded = round(value + move, len(text.partition(".")[2]))
    return rounded if rounded != value and abs(rounded - value) > draw.gap else value + move


def _text(value: str, draw: _Draw) -> str:
    """Its words in another order, or its letters; where there are few orders, letters and digits turned within their
    own kind; other text gains or loses a character."""
    rng = random.Random(f"{draw.letters} {draw.digits} {draw.part} {value}")  # the same text changes in the same way
    for parts in (_WORD, _LETTER):
        found = parts.findall(value)
        if _many_orders([part.lower() for part in found]):
            moved = [_like(new, old) for new, old in zip(rng.sample(found, len(found)), found, strict=True)]
            return "".join(map("".join, itertools.zip_longest(parts.split(value), moved, fillvalue="")))
    result = "".join(_turn(sign, draw) for sign in value)
    if result != value:
        return result
    if not value:
        return draw.rng.choice(string.ascii_lowercase)
    return value[:-1] if len(value) > 1 and draw.rng.random() < 0.5 else value + draw.rng.choice(value)


def _many_orders(parts: list[str]) -> bool:
    """Whether they can stand in `_ORDERS` ways."""
    ways, seen = 1, Counter[str]()
    for number, part in enumerate(parts, 1):
        seen[part] += 1
        ways = ways * number // seen[part]
        if ways >= _ORDERS:
            return True
    return False


def _like(text: str, old: str) -> str:
    """`text` with capitals where `old` has them: at its start, throughout, or as it is."""
    if old.isupper():
        return text.upper() if len(old) > 1 or len(text) == 1 else text[:1].upper() + text[1:]
    if old.istitle():
        return text[:1].upper() + text[1:]
    return text.lower() if old.islower() and text.istitle() else text


def _turn(sign: str, draw: _Draw) -> str:
    for kind, step in ((string.ascii_lowercase, draw.letters), (string.ascii_uppercase, draw.letters),
                       (string.digits, draw.digits)):  # fmt: skip
        if sign in kind:
            return kind[(kind.index(sign) + step) % len(kind)]
    return sign


def _expression(value: Any) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body
