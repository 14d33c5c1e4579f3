"""GGUF files: weights of llama.cpp, dequantised once to float32.

Owns: `read_gguf`.
Invariant: what the file says decides; a kind of model or tokenizer that is not understood in full is refused.
Must not know: where files come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.layout import from_llama
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.vocabulary import PretrainedTokenizer, byte_level_json

if TYPE_CHECKING:
    from gguf import GGUFReader

_CONTROL = 3  # llama.cpp's type of tokens that steer
_SPLITS_DIGITS = {"smollm": True}  # how the named pre-tokenizers are made of ours
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def read_gguf(path: Path) -> tuple[Decoder, PretrainedTokenizer]:
    """The model and tokenizer in the file at `path`. Raises `PolicyRefused` for what it is not, or not understood."""
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
    except (OSError, ValueError, KeyError) as error:
        raise PolicyRefused(f"{path} is not a GGUF file that can be read: {error}") from error
    said: dict[str, Any] = {name: field.contents() for name, field in reader.fields.items()}
    weights = _weights(reader)
    shape = _shape(said, path, tied="lm_head.weight" not in weights)
    tokenizer = _tokenizer(said, path)
    model = Decoder(shape)
    model.load_state_dict(from_llama(weights, shape, str(path), neighbours=True), strict=True)
    return model.eval(), tokenizer


def _shape(said: Mapping[str, Any], path: Path, *, tied: bool) -> ModelShape:
    if said.get("general.architecture") != "llama":
        raise PolicyRefused(f"{path} holds a model of architecture {said.get('general.architecture')!r}, not llama")
    if "llama.rope.scaling.type" in said:
        raise PolicyRefused(f"{path}: rotary positions are scaled, which is not understood here")
    try:
        heads, kv_heads = said["llama.attention.head_count"], said["llama.attention.head_count_kv"]
        return ModelShape(
            vocabulary=len(said["tokenizer.ggml.tokens"]),
            layers=said["llama.block_count"],
            width=said["llama.embedding_length"],
            heads=heads,
            context=said["llama.context_length"],
            kv_heads=0 if heads == kv_heads else kv_heads,
            inner=said["llama.feed_forward_length"],
            theta=float(said["llama.rope.freq_base"]),
            epsilon=float(f"{said['llama.attention.layer_norm_rms_epsilon']:.6g}"),  # kept there as float32
            tied=tied,
        )
    except KeyError as error:
        raise PolicyRefused(f"{path} does not say {error.args[0]}") from None


def _tokenizer(said: Mapping[str, Any], path: Path) -> PretrainedTokenizer:
    kind, split = said.get("tokenizer.ggml.model"), said.get("tokenizer.ggml.pre")
    if kind != "gpt2" or split not in _SPLITS_DIGITS:
        raise PolicyRefused(
            f"{path}: its tokenizer is {kind!r} with {split!r}, which is not understood here",
            fix="use the model's Hugging Face folder, which brings its own tokenizer.json",
        )
    tokens, types = said["tokenizer.ggml.tokens"], said["tokenizer.ggml.token_type"]
    control = [i for i, each in enumerate(types) if each == _CONTROL]
    text = byte_level_json(tokens, said["tokenizer.ggml.merges"], control, split_digits=_SPLITS_DIGITS[split])
    template = said.get("tokenizer.chat_template")
    if not isinstance(template, str):
        raise PolicyRefused(f"{path} has no chat template", fix="use an instruction-tuned model")
    stop = tokens[said["tokenizer.ggml.eos_token_id"]]
    return PretrainedTokenizer(text, template=template, stop=[stop], where=str(path))


def _weights(reader: GGUFReader) -> dict[str, Tensor]:
    """Dequantised weights by Llama's names; queries and keys stay in the order of the file."""
    from gguf.quants import dequantize

    found: dict[str, Tensor] = {}
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        place = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
        name = parts[2] if place else parts[0]
        found[f"{place}{_NAMES.get(name, name)}.weight"] = torch.from_numpy(
            dequantize(tensor.data, tensor.tensor_type).copy()
        )
    return found
