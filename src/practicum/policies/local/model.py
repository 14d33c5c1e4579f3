"""A decoder of the Llama architecture: RMS norm, rotary positions, grouped-query attention, SwiGLU.

Owns: the forward pass, with and without a key/value cache.
Invariant: the cached and the uncached pass give the same hidden states up to rounding.
Must not know: tokens' meaning, sampling, losses, how others lay out such weights.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    """Keys and values, each [layers, rows, key heads, T, head width]; `lengths` [rows] counts the filled positions."""

    keys: Tensor
    values: Tensor
    lengths: Tensor


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


def _rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Rotary positions: neighbouring pairs of [..., head width] as complex numbers, times `turn`."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


class Decoder(nn.Module):
    """The decoder. `forward` trains, `step` generates."""

    turn: Tensor

    def __init__(self, shape: ModelShape, *, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
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

    def forward(self, ids: Tensor) -> Tensor:
        """Hidden states [B, T, width] of right-padded `ids` [B, T]; padding never reaches earlier positions."""
        steps = ids.shape[1]
        turn = self.turn[:steps]
        x = self.embedding(ids)
        for block in self._blocks():
            q, k, v = block.project(x, turn)
            x = block.finish(x, block.attend(q, k, v, None))
        hidden: Tensor = self.norm(x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [..., vocabulary] over the next token."""
        return F.linear(hidden, self.embedding.weight if self.readout is None else self.readout.weight)

    def step(self, ids: Tensor, cache: Cache, counts: Tensor) -> Tensor:
        """Feed `ids` [B, S], of which row b has `counts[b]` real ones; extends `cache` in place.

        Returns hidden states [B, width] at each row's last real token. The cache must have room for S more.
        """
        rows, steps = ids.shape
        offsets = torch.arange(steps)
        positions = cache.lengths[:, None] + offsets
        turn = self.turn[positions.clamp(max=self.shape.context - 1)][:, None]
        total = int(cache.lengths.max()) + steps
        mask = (torch.arange(total) <= positions[..., None])[:, None]
        row = torch.arange(rows)[:, None]
        x = self.embedding(ids)
        for i, block in enumerate(self._blocks()):
            q, k, v = block.project(x, turn)
            cache.keys[i][row, :, positions] = k.transpose(1, 2)
            cache.values[i][row, :, positions] = v.transpose(1, 2)
            keys, values = cache.keys[i][:, :, :total], cache.values[i][:, :, :total]
            x = block.finish(x, block.attend(q, keys, values, mask))
        cache.lengths += counts
        hidden: Tensor = self.norm(x[torch.arange(rows), counts - 1])
        return hidden


def use_threads(count: int) -> None:
    """Let torch use `count` processors in this process, from here on."""
    torch.set_num_threads(count)


def next_logprobs(model: Decoder, ids: Tensor) -> Tensor:
    """Log-probabilities [B, T-1] of each next id of `ids` [B, T] under `model`."""
    logits = model.logits(model(ids)[:, :-1]).log_softmax(-1)
    return logits.gather(-1, ids[:, 1:, None]).squeeze(-1)
