"""Low-rank adapters (LoRA, arXiv 2106.09685) upon a decoder's projections.

Owns: `Adapters`, `LoraLinear`, `add_adapters`, `adapter_state`, `load_adapters`, `merged`.
Invariant: an adapter that was never trained changes nothing; the base's weights get no gradient; the merged weights
compute what base and adapter compute together, up to rounding.
Must not know: optimisers, losses, files.

Own code and not the library peft: that wraps models of transformers and imports it (ten seconds and 100 MB), and what
is needed of it is this page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from practicum.errors import PolicyRefused
from practicum.policies.local.model import Decoder

PROJECTIONS = ("qkv", "out", "gate_up", "down")


class LoraLinear(nn.Module):
    """`x·Wᵀ + scale · (x·Aᵀ)·Bᵀ` with A [rank, in] drawn at random and B [out, rank] zero; W is frozen."""

    def __init__(self, base: nn.Linear, *, rank: int, scale: float, generator: torch.Generator) -> None:
        super().__init__()
        self.base = base
        self.scale = scale
        base.weight.requires_grad_(False)
        # Kaiming's bound with a = √5, as the authors' code has it.
        bound = 1 / math.sqrt(base.in_features)
        self.a = nn.Parameter(torch.empty(rank, base.in_features).uniform_(-bound, bound, generator=generator))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        adapted: Tensor = self.base(x) + self.scale * F.linear(F.linear(x, self.a), self.b)
        return adapted


@dataclass(frozen=True, slots=True)
class Adapters:
    """Adapters of `rank` on the named projections of each block, scaled by alpha / rank."""

    rank: int
    alpha: float
    targets: tuple[str, ...] = PROJECTIONS

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


def add_adapters(model: Decoder, adapters: Adapters, *, seed: int = 0) -> None:
    """Freeze `model` and put fresh adapters on it.

    Raises `PolicyRefused` for a projection that there is not, and where adapters are there already.
    """
    unknown = [name for name in adapters.targets if name not in PROJECTIONS]
    if unknown or adapters.rank < 1:
        raise PolicyRefused(
            f"there can be no adapters of rank {adapters.rank} upon {', '.join(unknown or adapters.targets)}",
            fix=f"a rank from 1, upon {', '.join(PROJECTIONS)}",
        )
    generator = torch.Generator().manual_seed(seed)
    model.requires_grad_(False)
    for block in model.blocks:
        for name in adapters.targets:
            base = getattr(block, name)
            if not isinstance(base, nn.Linear):
                raise PolicyRefused(f"the projection {name} has an adapter already")
            setattr(block, name, LoraLinear(base, rank=adapters.rank, scale=adapters.scale, generator=generator))


def _adapters(model: Decoder) -> Iterator[tuple[str, LoraLinear]]:
    return ((name, module) for name, module in model.named_modules() if isinstance(module, LoraLinear))


def adapter_state(model: Decoder) -> dict[str, Tensor]:
    """The trained part by name (`blocks.0.qkv.a`), detached copies."""
    return {
        f"{name}.{part}": getattr(module, part).detach().clone()
        for name, module in _adapters(model)
        for part in ("a", "b")
    }


def load_adapters(model: Decoder, state: Mapping[str, Tensor]) -> None:
    """Put `state` in place. Raises `PolicyRefused` where it is of other adapters."""
    there = {f"{name}.{part}": getattr(module, part) for name, module in _adapters(model) for part in ("a", "b")}
    if there.keys() != state.keys():
        raise PolicyRefused("these adapters are of another model, or upon other projections")
    with torch.no_grad():
        for name, value in state.items():
            if value.shape != there[name].shape:
                raise PolicyRefused(f"{name} is of size {list(value.shape)}, not {list(there[name].shape)}")
            there[name].copy_(value)


def merged(base: Mapping[str, Tensor], state: Mapping[str, Tensor], adapters: Adapters) -> dict[str, Tensor]:
    """The state of the plain decoder that computes what `base` does with the adapters of `state`.

    What no adapter stands on is shared with `base`. Raises `PolicyRefused` where they do not fit each other.
    """
    found = dict(base)
    for name in sorted(name.removesuffix(".a") for name in state if name.endswith(".a")):
        weight, a, b = base.get(f"{name}.weight"), state[f"{name}.a"], state.get(f"{name}.b")
        if weight is None or b is None or weight.shape != (b.shape[0], a.shape[1]):
            raise PolicyRefused(f"the adapter {name} does not fit the model that it stands upon")
        found[f"{name}.weight"] = weight + adapters.scale * b @ a
    return found
