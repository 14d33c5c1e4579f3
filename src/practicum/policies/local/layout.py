"""How others lay out the weights of such a decoder: the names and the order of Hugging Face's Llama.

Owns: `shape_of`, `config_of`, `from_llama`, `to_llama`.
Invariant: there and back gives the same weights bit for bit, and a config that this decoder would compute otherwise is
refused by the name of its key.
Must not know: files.

Rotary positions turn pairs of dimensions: neighbours here, dimension i with i + half there. The rows of queries' and
keys' projections are put in the other order, and so the two compute the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.model import ModelShape

_REQUIRED = ("vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
_FIXED: Mapping[str, tuple[Any, ...]] = {  # keys of the config that change the computation: what is computed here
    "model_type": ("llama",),
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "rope_scaling": (None,),
    "attention_multiplier": (1.0, None),
    "pretraining_tp": (1,),
}


def shape_of(config: Mapping[str, Any], where: str) -> ModelShape:
    """The shape that a `config.json` describes. Raises `PolicyRefused`, naming the key, where it is another model."""
    for key, values in _FIXED.items():
        if key in config and config[key] not in values:
            raise PolicyRefused(
                f"{where}: {key} is {config[key]!r}; here it can be {values[0]!r}",
                fix="use a model of the Llama architecture, or serve it and give its address as the policy",
            )
    if "model_type" not in config:
        raise PolicyRefused(f"{where}: model_type is missing, so it is not known what the weights are for")
    missing = [key for key in _REQUIRED if not isinstance(config.get(key), int)]
    if missing:
        raise PolicyRefused(f"{where}: {missing[0]} is missing or not a whole number")
    heads, width = config["num_attention_heads"], config["hidden_size"]
    kv_heads = config.get("num_key_value_heads") or heads
    if width % heads or (width // heads) % 2 or heads % kv_heads:
        raise PolicyRefused(f"{where}: width {width} does not go into {heads} heads with {kv_heads} of keys")
    if config.get("head_dim") not in (None, width // heads):
        raise PolicyRefused(
            f"{where}: head_dim is {config['head_dim']}; here it is hidden_size / heads, {width // heads}"
        )
    rope = config.get("rope_parameters") or {}  # where newer files keep the base
    if rope.get("rope_type", "default") != "default":
        raise PolicyRefused(f"{where}: rope_parameters.rope_type is {rope['rope_type']!r}; here it can be 'default'")
    return ModelShape(
        vocabulary=config["vocab_size"],
        layers=config["num_hidden_layers"],
        width=width,
        heads=heads,
        context=int(config.get("max_position_embeddings", 2048)),
        kv_heads=0 if kv_heads == heads else kv_heads,
        inner=config["intermediate_size"],
        theta=float(config.get("rope_theta", rope.get("rope_theta", 10000.0))),
        epsilon=float(config.get("rms_norm_eps", 1e-6)),
        tied=bool(config.get("tie_word_embeddings", False)),
    )


def config_of(shape: ModelShape, *, stop_ids: tuple[int, ...] = ()) -> dict[str, Any]:
    """The `config.json` of `shape`, such that `shape_of` gives it back."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_width,
        "intermediate_size": shape.hidden,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.epsilon,
        "tie_word_embeddings": shape.tied,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "dtype": "float32",
        "eos_token_id": list(stop_ids) if len(stop_ids) != 1 else stop_ids[0],
    }


def from_llama(
    weights: Mapping[str, Tensor], shape: ModelShape, where: str, *, neighbours: bool = False
) -> dict[str, Tensor]:
    """State of a decoder of `shape` out of `weights` by Llama's names, as float32.

    `neighbours`: queries' and keys' rows are in this decoder's order already (as in GGUF files). Raises `PolicyRefused`
    that names a weight which is missing, left over or of another size.
    """
    left = dict(weights)

    def take(name: str, *size: int) -> Tensor:
        try:
            found = left.pop(name)
        except KeyError:
            raise PolicyRefused(f"{where}: the weight {name} is missing") from None
        if tuple(found.shape) != size:
            raise PolicyRefused(f"{where}: {name} is of size {list(found.shape)}, not {list(size)}")
        return found.float()

    width, inner, keys = shape.width, shape.hidden, shape.key_heads * shape.head_width
    state = {
        "embedding.weight": take("model.embed_tokens.weight", shape.vocabulary, width),
        "norm.weight": take("model.norm.weight", width),
    }
    for i in range(shape.layers):
        old, new = f"model.layers.{i}", f"blocks.{i}"
        q = take(f"{old}.self_attn.q_proj.weight", width, width)
        k = take(f"{old}.self_attn.k_proj.weight", keys, width)
        v = take(f"{old}.self_attn.v_proj.weight", keys, width)
        if not neighbours:
            q, k = _to_neighbours(q, shape.heads), _to_neighbours(k, shape.key_heads)
        gate, up = (take(f"{old}.mlp.{name}_proj.weight", inner, width) for name in ("gate", "up"))
        state |= {
            f"{new}.attention_norm.weight": take(f"{old}.input_layernorm.weight", width),
            f"{new}.qkv.weight": torch.cat([q, k, v]),
            f"{new}.out.weight": take(f"{old}.self_attn.o_proj.weight", width, width),
            f"{new}.mlp_norm.weight": take(f"{old}.post_attention_layernorm.weight", width),
            f"{new}.gate_up.weight": torch.cat([gate, up]),
            f"{new}.down.weight": take(f"{old}.mlp.down_proj.weight", width, inner),
        }
    if shape.tied:
        left.pop("lm_head.weight", None)  # some files hold the shared weight twice
    else:
        state["readout.weight"] = take("lm_head.weight", shape.vocabulary, width)
    unknown = sorted(name for name in left if not name.endswith("rotary_emb.inv_freq"))
    if unknown:
        raise PolicyRefused(f"{where}: the weight {unknown[0]} has no place in this model")
    return state


def to_llama(state: Mapping[str, Tensor], shape: ModelShape) -> dict[str, Tensor]:
    """Weights by Llama's names, in its order, out of a decoder's state."""
    width, keys = shape.width, shape.key_heads * shape.head_width
    found = {"model.embed_tokens.weight": state["embedding.weight"], "model.norm.weight": state["norm.weight"]}
    for i in range(shape.layers):
        old, new = f"blocks.{i}", f"model.layers.{i}"
        q, k, v = torch.split(state[f"{old}.qkv.weight"], [width, keys, keys])
        gate, up = state[f"{old}.gate_up.weight"].chunk(2)
        found |= {
            f"{new}.input_layernorm.weight": state[f"{old}.attention_norm.weight"],
            f"{new}.self_attn.q_proj.weight": _to_halves(q, shape.heads),
            f"{new}.self_attn.k_proj.weight": _to_halves(k, shape.key_heads),
            f"{new}.self_attn.v_proj.weight": v,
            f"{new}.self_attn.o_proj.weight": state[f"{old}.out.weight"],
            f"{new}.post_attention_layernorm.weight": state[f"{old}.mlp_norm.weight"],
            f"{new}.mlp.gate_proj.weight": gate,
            f"{new}.mlp.up_proj.weight": up,
            f"{new}.mlp.down_proj.weight": state[f"{old}.down.weight"],
        }
    if not shape.tied:
        found["lm_head.weight"] = state["readout.weight"]
    return {name: value.contiguous() for name, value in found.items()}


def adapters_to_llama(state: Mapping[str, Tensor], shape: ModelShape) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The A and B matrices of adapters (`blocks.0.qkv.a` …) by the names of Llama's projections, in its order.

    Where this decoder has one projection for several of Llama's, they share A, and B's rows are divided among them.
    """
    width, keys = shape.width, shape.key_heads * shape.head_width
    a: dict[str, Tensor] = {}
    b: dict[str, Tensor] = {}
    for name in sorted(name.removesuffix(".a") for name in state if name.endswith(".a")):
        _, number, projection = name.split(".")
        rows = state[f"{name}.b"]
        if projection == "qkv":
            q, k, v = torch.split(rows, [width, keys, keys])
            parts = {"q": _to_halves(q, shape.heads), "k": _to_halves(k, shape.key_heads), "v": v}
        elif projection == "gate_up":
            parts = dict(zip(("gate", "up"), rows.chunk(2), strict=True))
        else:
            parts = {"o" if projection == "out" else projection: rows}
        block = "self_attn" if projection in ("qkv", "out") else "mlp"
        for part, value in parts.items():
            full = f"model.layers.{number}.{block}.{part}_proj"
            a[full], b[full] = state[f"{name}.a"].clone(), value.contiguous().clone()
    return a, b


def _to_neighbours(weight: Tensor, heads: int) -> Tensor:
    """Rows (i, i + half) of each head to rows (2i, 2i + 1)."""
    rows, columns = weight.shape
    return weight.view(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)


def _to_halves(weight: Tensor, heads: int) -> Tensor:
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)
