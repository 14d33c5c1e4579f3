"""A decoder of the Llama architecture: RMS norm, rotary positions, grouped-query attention, SwiGLU.

Owns: the forward pass, with and without a key/value cache.
Invariant: the cached and the uncached pass give the same hidden states up to rounding; within the cached one a row's
states have the same bits whatever stands beside it and in whatever pieces it was fed, where `steady` holds.
Must not know: tokens' meaning, sampling, losses, how others lay out such weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from practicum.errors import PolicyRefused
from practicum.policies.local.steady import ROWS, Kin, attend, lay_out, padded_length, product, sights

_ALWAYS = frozenset({"vocabulary", "layers", "width", "heads", "context"})


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of the decoder. `context` is the longest sequence in tokens.

    `kv_heads` heads of keys and values, each shared by as many queries' heads as there are to it; 0 is one for each.
    `inner` is the inner width of the SwiGLU block; 0 is 8/3 of the width, rounded up to 32. `theta` is the base of the
    rotary angles, `epsilon` the norms' own. `tied`: the embedding also reads out the logits.
    """

    vocabulary: int
    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 640
    kv_heads: int = 0
    inner: int = 0
    theta: float = 10000.0
    epsilon: float = 1e-5
    tied: bool = True

    @property
    def hidden(self) -> int:
        """Inner width of the SwiGLU block."""
        return self.inner or math.ceil(8 * self.width / 3 / 32) * 32

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def to_dict(self) -> dict[str, int | float | bool]:
        """What differs from the defaults, and the sizes that every model has."""
        defaults = {field.name: field.default for field in fields(self)}
        return {k: v for k, v in asdict(self).items() if k in _ALWAYS or v != defaults[k]}


@dataclass
class Cache:
    """Keys [layers, rows, key heads, head width, T] and values [layers, rows, key heads, T, head width].

    `lengths` [rows] counts the filled positions. Rows that are `alike` hold all that they have in common.
    """

    keys: Tensor
    values: Tensor
    lengths: Tensor
    alike: Kin | None = None


class _Block(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.split = (shape.heads, shape.key_heads, shape.key_heads)
        self.attention_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.qkv = nn.Linear(shape.width, sum(self.split) * shape.head_width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.mlp_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor, turn: Tensor, runs: Sequence[tuple[int, int]]) -> Tensor:
        """[1, N, width] of sequences one after the other, in `runs` of (length, how many); each attends to itself."""
        sizes = [length * count for length, count in runs]
        parts = zip(runs, *(torch.split(each[0], sizes, dim=1) for each in self.project(x, turn)), strict=True)
        attended = []
        for (length, count), *given in parts:
            q, k, v = (each.unflatten(1, (count, length)).transpose(0, 1) for each in given)
            attended.append(self.attend(q, k, v, None).transpose(0, 1).flatten(1, 2))
        return self.finish(x, torch.cat(attended, dim=1)[None])

    def project(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [B, heads, S, head width], keys and values [B, key heads, …]; the first two rotated by position."""
        rows, steps, _ = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(rows, steps, sum(self.split), -1).transpose(1, 2)
        q, k, v = qkv.split(self.split, dim=1)
        return _rotate(q, turn), _rotate(k, turn), v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """[B, heads, S, head width]; causal where there is no mask."""
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=self.split[0] != self.split[1]
        )

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        rows, steps, width = x.shape
        x = x + self.out(attended.transpose(1, 2).reshape(rows, steps, width))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        mixed: Tensor = x + self.down(F.silu(gate) * up)
        return mixed

    def look(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `project`, of tokens [N, width] one by one: [N, heads, head width]. Steady, and without gradients."""
        qkv = _steadily(self.qkv, self.attention_norm(x)).view(len(x), sum(self.split), -1)
        turned = _rotate(qkv[:, : -self.split[2]], turn[:, None])
        return turned[:, : self.split[0]], turned[:, self.split[0] :], qkv[:, -self.split[2] :]

    def conclude(self, x: Tensor, attended: Tensor) -> Tensor:
        """As `finish`, of tokens [N, width], in the place of `x`. Steady, and without gradients."""
        x += _steadily(self.out, attended)
        gate, up = _steadily(self.gate_up, self.mlp_norm(x)).chunk(2, dim=-1)
        x += _steadily(self.down, F.silu(gate).mul_(up))
        return x


def _steadily(projection: nn.Module, x: Tensor) -> Tensor:
    if isinstance(projection, nn.Linear):
        return product(x, projection.weight)
    adapted: Tensor = projection(x)
    return adapted


def _rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Rotary positions: neighbouring pairs of [..., head width] as complex numbers, times `turn`."""
    if x.dtype == torch.bfloat16:
        x = x.float()  # there are no complex numbers of so few bits
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


class Decoder(nn.Module):
    """The decoder. `forward` trains, `step` generates.

    With `recompute`, the backward pass computes each block's inner values again instead of keeping them: a third more
    work, in the memory of one block (gradient checkpointing, arXiv 1604.06174).
    """

    turn: Tensor

    def __init__(self, shape: ModelShape, *, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.recompute = False
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(_Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.readout = None if shape.tied else nn.Linear(shape.width, shape.vocabulary, bias=False)
        half = shape.head_width // 2
        angles = torch.outer(torch.arange(shape.context), shape.theta ** (-torch.arange(half) / half))
        self.register_buffer("turn", torch.polar(torch.ones_like(angles), angles), persistent=False)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() > 1:
                    # Unit-variance outputs from normalised inputs: at this width 0.02 starts copying far too late.
                    std = 0.1 if "embedding" in name else 1 / math.sqrt(parameter.shape[1])
                    if name.endswith(("out.weight", "down.weight")):
                        std /= math.sqrt(2 * shape.layers)
                    parameter.normal_(0.0, std, generator=generator)

    def _blocks(self) -> list[_Block]:
        return [block for block in self.blocks if isinstance(block, _Block)]

    def forward(self, ids: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
        """Hidden states [B, T, width] of the rows of `ids` [B, T], or [N, width] of flat `ids` [N].

        Flat ids hold sequences of the given `lengths` one after the other. No token sees another sequence, and
        positions begin anew with each. Neighbours of one length share a call of the attention. Raises `PolicyRefused`
        where a sequence is longer than the context.
        """
        if lengths is None:
            lengths = [ids.shape[1]] * ids.shape[0]
        if max(lengths) > self.shape.context:
            raise PolicyRefused(f"a sequence of {max(lengths)} tokens is longer than the context, {self.shape.context}")
        runs = [(length, len(list(same))) for length, same in groupby(lengths)]
        turn = torch.cat([self.turn[:length] for length in lengths])
        x = self.embedding(ids.reshape(1, -1))
        for block in self._blocks():
            if self.recompute and torch.is_grad_enabled():
                x = checkpoint(block, x, turn, runs, use_reentrant=False)
            else:
                x = block(x, turn, runs)
        hidden: Tensor = self.norm(x.view(*ids.shape, -1))
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [..., vocabulary] over the next token, of any number of rows."""
        return F.linear(hidden, self.embedding.weight if self.readout is None else self.readout.weight)

    def steady_logits(self, hidden: Tensor) -> Tensor:
        """The same of rows [N, width], N a multiple of `ROWS`."""
        return product(hidden, self.embedding.weight if self.readout is None else self.readout.weight)

    def lay_out(self) -> None:
        """Keep the matrices, from here on, as `step` reads them fastest; no number changes."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                parameter.data = lay_out(parameter.data)

    @property
    def weights(self) -> list[Tensor]:
        """The matrices that each token goes through, of one block and of the readout."""
        block = self._blocks()[0]
        inner = [
            each.weight for each in (block.qkv, block.out, block.gate_up, block.down) if isinstance(each, nn.Linear)
        ]
        return [*inner, self.embedding.weight if self.readout is None else self.readout.weight]

    def empty_cache(self, rows: int, room: int) -> Cache:
        """A cache for so many rows of up to `room` positions each, with nothing in it."""
        shape = self.shape
        size, room = (shape.layers, rows, shape.key_heads), padded_length(room)
        keys, values = torch.zeros(*size, shape.head_width, room), torch.zeros(*size, room, shape.head_width)
        return Cache(keys, values, torch.zeros(rows, dtype=torch.long))

    def step(self, ids: Tensor, cache: Cache, counts: Tensor) -> Tensor:
        """Feed `ids` [B, S], of which row b has `counts[b]` real ones; extends `cache` in place.

        Returns hidden states [B, width] at each row's last real token, zeros for a row that has none. The cache, made
        by `empty_cache`, must have room for the real ones.
        """
        rows, steps = ids.shape
        row, offset = (torch.arange(steps) < counts[:, None]).nonzero(as_tuple=True)
        position, real = cache.lengths[row] + offset, len(row)
        # Padded for the sake of bits: see `steady`. Without padding between rows no token is computed for nothing.
        flat = F.pad(ids[row, offset], (0, -real % ROWS))
        turn = self.turn[F.pad(position, (0, -real % ROWS))]
        queries = torch.zeros(rows, steps, self.shape.heads, self.shape.head_width)
        seen = sights(cache.lengths[:, None] + torch.arange(steps).clamp(max=(counts - 1).clamp(min=0)[:, None]))
        x = self.embedding(flat)
        for i, block in enumerate(self._blocks()):
            q, k, v = block.look(x, turn)
            cache.keys[i][row, :, :, position] = k[:real]
            cache.values[i][row, :, position] = v[:real]
            if real == rows * steps:
                some = q[:real].view(rows, steps, *q.shape[1:])
                q[:real] = attend(some, cache.keys[i], cache.values[i], seen, cache.alike).flatten(0, 1)
            else:
                queries[row, offset] = q[:real]
                q[:real] = attend(queries, cache.keys[i], cache.values[i], seen, cache.alike)[row, offset]
            x = block.conclude(x, q.flatten(1))
        cache.lengths += counts
        hidden: Tensor = x.new_zeros(rows, x.shape[-1])
        last = counts.cumsum(0)[counts > 0] - 1
        hidden[counts > 0] = self.norm(x)[last]
        return hidden


def use_threads(count: int) -> None:
    """Let torch use `count` processors in this process, from here on."""
    torch.set_num_threads(count)


def next_logprobs(model: Decoder, ids: Tensor) -> Tensor:
    """Log-probabilities [B, T-1] of each next id of `ids` [B, T] under `model`."""
    logits = model.logits(model(ids)[:, :-1]).log_softmax(-1)
    return logits.gather(-1, ids[:, 1:, None]).squeeze(-1)
