"""Arithmetic that gives a row the same bits, whatever stands beside it.

Owns: `ROWS`, `lay_out`, `product`, `padded_length`, `Sight`, `sights`, `Kin`, `kin`, `attend`, `is_steady`.
Invariant: what a query's row gets does not depend on how many rows, queries or unseen keys there are beside it, nor on
whether rows that begin alike read their common keys together.
Must not know: models, caches, sampling.

A matrix product takes another kernel for one to three rows than for more, and splits a long sum by its length and the
number of rows; both change last digits. So rows are fed in multiples of `ROWS`; sums over features are made in pieces
of at most `_SUM`, and sums over keys in pieces of `PIECE`, in order, with zeros for what is not seen. Weights lie in
memory as the product reads them (`lay_out`): as torch keeps them there is one more kernel, for up to 15 rows, and all
are slower. torch's own attention does none of this. Seen on x86 with MKL; `is_steady` tries.

Decoding waits for memory: each row reads all its keys for one query, three quarters of the padded product for nothing.
Rows that begin alike (`Kin`) read the keys of their beginning once, and fill the product with each other's queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = 4
PIECE = 64
_SUM = 640
_SOME = (ROWS, 2 * ROWS, 4 * ROWS, 6 * ROWS, 17 * ROWS)  # rows to try: kernels and their splits change between them
_QUERIES = 64  # at a time: their scores stay near the processor, and later keys are not touched for earlier queries


def lay_out(weight: Tensor) -> Tensor:
    """`weight` [out, in], the same numbers, so in memory that each input's stand together."""
    return weight.t().contiguous().t()


def product(x: Tensor, weight: Tensor) -> Tensor:
    """`x` [N, in] times the transpose of `weight` [out, in], summed in equal pieces."""
    size = -(-x.shape[1] // -(-x.shape[1] // _SUM))
    found = x[:, :size] @ weight[:, :size].t()
    for start in range(size, x.shape[1], size):
        found.addmm_(x[:, start : start + size], weight[:, start : start + size].t())
    return found


def padded_length(length: int) -> int:
    """The shortest number of keys, at least `length`, that sums are made over."""
    return length + -length % PIECE


@dataclass(frozen=True, slots=True)
class Sight:
    """What some queries see, from `start` on: `bias` [B, 1, S, 1, T] is minus infinity for all other keys."""

    start: int
    bias: Tensor


def sights(positions: Tensor) -> list[Sight]:
    """For queries each of which sees the keys up to `positions` [B, S], its own included; once for all layers."""
    made: list[Sight] = []
    for start in range(0, positions.shape[1], _QUERIES):
        seen = positions[:, start : start + _QUERIES]
        total = padded_length(int(seen.max()) + 1)
        bias = torch.zeros(*seen.shape, total).masked_fill_(torch.arange(total) > seen[..., None], -torch.inf)
        made.append(Sight(start, bias[:, None, :, None]))
    return made


@dataclass(frozen=True, slots=True)
class Kin:
    """Rows of a cache in groups, `rows` [G, g], whose first `length` keys and values are the same within a group.

    Each row that is read is there at least once: `place` [B] says where in the flat `rows`. Groups of fewer repeat one.
    """

    length: int
    rows: Tensor
    place: Tensor

    def together(self, each: Tensor) -> Tensor:
        """Of rows [B, key heads, n, w] those of a group as one: [G * key heads, g * n, w]."""
        return each[self.rows].transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def apart(self, each: Tensor, key_heads: int) -> Tensor:
        """The inverse of `together`."""
        groups, size = self.rows.shape
        return each.view(groups, key_heads, size, -1, each.shape[-1]).transpose(1, 2).flatten(0, 1)[self.place]

    def common(self, each: Tensor) -> Tensor:
        """Of cached keys or values [B, key heads, …], up to the length, those of each group: [G * key heads, …]."""
        return each.index_select(0, self.rows[:, 0]).flatten(0, 1)


def kin(begins: Sequence[tuple[int, ...] | None]) -> Kin | None:
    """Rows grouped by the ids they begin with, at the length where that saves most keys; None for rows not read.

    None where fewer than half of the rows would be saved: grouping has its own cost.
    """
    best: tuple[int, dict[tuple[int, ...], list[int]]] | None = None
    read = [begin for begin in begins if begin is not None]
    most = 0
    for length in range(PIECE, max(map(len, read), default=0) + 1, PIECE):
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, begin in enumerate(begins):
            if begin is not None:
                # What is shorter stands alone: it goes on with ids of its own within the length.
                groups.setdefault(begin[:length] if len(begin) >= length else (-1 - row,), []).append(row)
        saved = length * (len(read) - len(groups))
        if saved > most and 2 * len(groups) <= len(read):
            best, most = (length, groups), saved
    if best is None:
        return None
    length, groups = best
    size = max(ROWS, *map(len, groups.values()))
    lines = [rows + rows[:1] * (size - len(rows)) for rows in groups.values()]
    place = torch.zeros(len(begins), dtype=torch.long)
    for line, rows in enumerate(groups.values()):
        place[rows] = torch.arange(len(rows)) + line * size
    return Kin(length, torch.tensor(lines), place)


def attend(q: Tensor, k: Tensor, v: Tensor, seen: Sequence[Sight], alike: Kin | None = None) -> Tensor:
    """Attention [B, S, heads, head width] of queries of that shape over a cache.

    Keys are [B, key heads, head width, T], as the product reads them fastest, values [B, key heads, T, head width]; T
    has room for the padded length of the last position. Heads that share keys become rows of one product. Rows that are
    `alike` must see all that they have in common.
    """
    rows, _, heads, width = q.shape
    key_heads, shared = k.shape[1], heads // k.shape[1]
    found: list[Tensor] = []
    q = q / math.sqrt(width)
    for each in seen:
        steps = each.bias.shape[2]
        some = q[:, each.start : each.start + steps].reshape(rows, steps, key_heads, shared, width).transpose(1, 2)
        mixed = _mixed(some.flatten(2, 3), k, v, each.bias, alike).view(rows, key_heads, steps, shared, width)
        found.append(mixed.transpose(1, 2).reshape(rows, steps, heads, width))
    return found[0] if len(found) == 1 else torch.cat(found, dim=1)


def _mixed(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, alike: Kin | None) -> Tensor:
    """[B, key heads, N, head width] of scaled queries of that shape, N of them for each key head."""
    rows, key_heads, real, width = q.shape
    start, total = alike.length if alike else 0, bias.shape[-1]
    missing = (0, 0, 0, max(0, ROWS - real))
    keys, values = k[..., start:total].flatten(0, 1), v[:, :, start:total].flatten(0, 1)
    own = torch.bmm(F.pad(q.flatten(0, 1), missing), keys)
    scores = own.view(rows, key_heads, -1, total - start)[:, :, :real]
    if alike:
        common = torch.bmm(alike.together(q), alike.common(k[..., :start]))
        scores = torch.cat([alike.apart(common, key_heads), scores], dim=-1)
    scores.view(rows, key_heads, bias.shape[2], -1, total).add_(bias)
    shares, sums = scores.softmax(-1), None
    if alike:
        begun = _sums(alike.together(shares[..., :start]), alike.common(v[:, :, :start]), None)
        sums = F.pad(alike.apart(begun, key_heads).flatten(0, 1), missing)
    sums = _sums(F.pad(shares[..., start:].flatten(0, 1), missing), values, sums)
    return sums.view(rows, key_heads, -1, width)[:, :, :real]


def _sums(shares: Tensor, values: Tensor, sums: Tensor | None) -> Tensor:
    """`sums` and, piece by piece, the products of `shares` [N, M, T] and `values` [N, T, head width]."""
    for piece in range(0, values.shape[1], PIECE):
        some = shares[..., piece : piece + PIECE], values[:, piece : piece + PIECE]
        sums = torch.bmm(*some) if sums is None else sums.baddbmm_(*some)
    assert sums is not None
    return sums


def is_steady(weights: Iterable[Tensor], heads: int, key_heads: int, width: int) -> bool:
    """Whether rows are bit-equal in company and alone, tried with each of `weights` [out, in] and such heads."""
    generator = torch.Generator().manual_seed(width)
    with torch.inference_mode():
        for weight in weights:
            rows = torch.randn((2 * _SOME[-1], weight.shape[1]), generator=generator).to(weight)
            whole = product(rows, weight)
            if not all(torch.equal(product(rows[-n:], weight), whole[-n:]) for n in _SOME):
                return False
        length = 6 * PIECE
        queries = torch.randn((1, length, heads, width), generator=generator)
        keys = torch.randn((1, key_heads, width, length), generator=generator)
        values = torch.randn((1, key_heads, length, width), generator=generator)
        positions = torch.arange(length)[None]
        whole = attend(queries, keys, values, sights(positions))
        alone = [1, PIECE, 3 * PIECE - 1, 3 * PIECE, 3 * PIECE + 1, length - PIECE, length - 1]
        for each in alone:
            single = attend(queries[:, each, None], keys, values, sights(positions[:, each, None]))
            if not torch.equal(single[:, 0], whole[:, each]):
                return False
        copies, alike = ((len(alone), -1, -1, -1), kin([tuple(range(each)) for each in alone]))
        keys, values = keys.expand(copies), values.expand(copies)
        together = attend(queries[0, alone, None], keys, values, sights(positions[0, alone, None]), alike)
        return torch.equal(together[:, 0], whole[0, alone])
