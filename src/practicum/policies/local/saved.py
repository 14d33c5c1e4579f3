"""A local model as files: its shape, its tokenizer, and putting both together with weights.

Owns: `model.json`, `tokenizer.json`.
Invariant: what `files_of` writes, `build` turns into the same model and tokenizer.
Must not know: where files lie, training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.tokenizer import Tokenizer


def files_of(model: Decoder, tokenizer: Tokenizer) -> dict[str, str]:
    """Text files, by name, that describe `model` and `tokenizer` beside the weights."""
    shape = json.dumps({"architecture": "practicum-decoder-1", **model.shape.to_dict()}, indent=1)
    return {"model.json": shape, "tokenizer.json": tokenizer.to_json()}


def build(read: Callable[[str], str], weights: Mapping[str, Tensor]) -> tuple[Decoder, Tokenizer]:
    """The model and tokenizer described by the files that `read(name)` gives, with `weights` in place.

    Raises `PolicyRefused` where they do not fit each other.
    """
    try:
        described = json.loads(read("model.json"))
    except ValueError as error:
        raise PolicyRefused(f"model.json is not JSON: {error}") from error
    architecture = described.pop("architecture", None) if isinstance(described, dict) else None
    if architecture != "practicum-decoder-1":
        raise PolicyRefused(f"model.json is of architecture {architecture!r}, not practicum-decoder-1")
    tokenizer = Tokenizer.from_json(read("tokenizer.json"))
    try:
        model = Decoder(ModelShape(**described))
        model.load_state_dict(dict(weights), strict=True)
    except (TypeError, RuntimeError) as error:
        raise PolicyRefused(f"the weights do not fit model.json: {error}") from error
    return model.eval(), tokenizer
