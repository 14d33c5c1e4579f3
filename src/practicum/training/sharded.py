"""One trainer over one process or many: a model that is whole, or spread over processes by PyTorch's FSDP2.

Owns: `Layout`, its two kinds `Whole` and `Sharded`, `shard`, `process_group`.
Invariant: every process is given the same samples and takes its share of the micro-batches, as many passes as every
other one, so that processes together compute what one would.
Must not know: losses, optimisers' rules, files.

Processes are started by `torchrun`, each of which runs the same program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import torch
from torch import Tensor

from practicum.errors import TrainerError
from practicum.policies.local.model import Decoder
from practicum.training.batching import MicroBatch


class Layout(Protocol):
    """Where a model's weights are. What takes a tensor is called by all processes at the same time."""

    @property
    def rank(self) -> int:
        """Number of this process."""

    @property
    def size(self) -> int:
        """How many processes there are."""

    def summed(self, values: Mapping[str, float]) -> dict[str, float]:
        """`values`, which have the same names everywhere, summed over the processes."""

    def gathered(self, value: Tensor) -> Tensor:
        """All of a tensor of which this process may hold a part."""

    def local(self, value: Tensor) -> Tensor:
        """What this process holds of `value`."""

    def part_of(self, value: Tensor, beside: Tensor) -> Tensor:
        """What this process holds of the whole tensor `value` that is laid out as `beside` is."""

    def put_back(self, model: Decoder) -> None:
        """After a pass that no backward pass follows: let go of what was gathered for it."""


@dataclass(frozen=True, slots=True)
class Whole:
    """All weights in this one process."""

    rank: int = 0
    size: int = 1

    def summed(self, values: Mapping[str, float]) -> dict[str, float]:
        return dict(values)

    def gathered(self, value: Tensor) -> Tensor:
        return value

    def local(self, value: Tensor) -> Tensor:
        return value

    def part_of(self, value: Tensor, beside: Tensor) -> Tensor:
        return value

    def put_back(self, model: Decoder) -> None:
        return


@dataclass(frozen=True, slots=True)
class Sharded:
    """Weights, gradients and moments spread over `size` processes, of which this is number `rank`."""

    rank: int
    size: int

    def summed(self, values: Mapping[str, float]) -> dict[str, float]:
        import torch.distributed as dist

        names = sorted(values)
        sums = torch.tensor([values[name] for name in names], dtype=torch.float64)
        dist.all_reduce(sums)
        return dict(zip(names, sums.tolist(), strict=True))

    def gathered(self, value: Tensor) -> Tensor:
        from torch.distributed.tensor import DTensor

        return value.full_tensor() if isinstance(value, DTensor) else value

    def local(self, value: Tensor) -> Tensor:
        from torch.distributed.tensor import DTensor

        return value.to_local() if isinstance(value, DTensor) else value

    def part_of(self, value: Tensor, beside: Tensor) -> Tensor:
        from torch.distributed.tensor import DTensor, distribute_tensor

        if not isinstance(beside, DTensor) or value.shape != beside.shape:
            return value
        return distribute_tensor(value, beside.device_mesh, beside.placements)

    def put_back(self, model: Decoder) -> None:
        from torch.distributed.fsdp import FSDPModule

        if isinstance(model, FSDPModule):
            model.reshard()


def shares(batches: Sequence[MicroBatch], layout: Layout) -> Iterator[tuple[MicroBatch, float]]:
    """This process's micro-batches, each with the weight 1; where others have one more, any with the weight 0.

    A pass gathers weights from all processes, so all must make as many.
    """
    for start in range(0, len(batches), layout.size):
        mine = start + layout.rank
        yield (batches[mine], 1.0) if mine < len(batches) else (batches[start], 0.0)


@contextmanager
def process_group(*, timeout_s: float = 600.0) -> Iterator[None]:
    """The processes that `torchrun` started, connected by gloo; a collective that takes longer than that fails.

    Gloo's threads outlive the group, and one that lets go of a tensor while the interpreter ends aborts the process
    ("terminate called without an active exception"): a program has flushed its files and then ends by `os._exit`.
    """
    import torch.distributed as dist

    if not dist.is_torchelastic_launched():
        raise TrainerError("there is no group of processes", fix="start the program with torchrun")
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    try:
        yield
    finally:
        dist.destroy_process_group()


def shard(model: Decoder) -> Sharded:
    """Spread `model`, the same in every process of the group, over them: block by block, then what is left.

    FSDP2 (`torch.distributed.fsdp.fully_shard`, arXiv 2304.11277): each block's weights are gathered for its pass and
    freed after it. Its gradients are means over the processes (gloo offers no other sum), so a loss is multiplied by
    their number. Call it before a trainer is made.
    """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=False)  # the read-out follows the pass and needs them
    return Sharded(dist.get_rank(), dist.get_world_size())
