"""In which numbers a trainer computes.

Owns: `Precision`, `computing`.
Invariant: weights, gradients, moments and log-probabilities are in float32 at any precision; only matrix products and
attention are in fewer bits. What would be slower than float32 is refused.
Must not know: models, losses.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from practicum.errors import TrainerError

Precision = Literal["float32", "bfloat16"]


def computing(precision: Precision) -> AbstractContextManager[object]:
    """In it, matrix products of a forward pass are in `precision`, and so are those of its backward pass.

    Raises `TrainerError` for bfloat16 on a processor that has no instructions for it and would emulate them.
    """
    if precision == "float32":
        return nullcontext()
    able = torch.cpu.get_capabilities()
    if not (able.get("avx512_bf16") or able.get("amx_bf16") or able.get("bf16")):
        raise TrainerError(
            "this processor has no instructions for bfloat16: it would be slower than float32",
            fix="set trainer.precision to float32",
        )
    return torch.autocast("cpu", torch.bfloat16)
