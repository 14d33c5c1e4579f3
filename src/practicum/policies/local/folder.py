"""Models as Hugging Face folders: reading one that others made, and writing one that others read.

Owns: `load_folder`, `check_folder`, `save_folder`, `save_adapters`.
Invariant: what `save_folder` writes, `load_folder` reads back as the same weights and the same ids; a folder that lacks
a part, or describes another computation, is refused before any weight is read.
Must not know: where models come from, training.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.layout import adapters_to_llama, config_of, from_llama, shape_of, to_llama
from practicum.policies.local.lora import Adapters
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.vocabulary import PretrainedTokenizer, config_json, load_tokenizer, read_json

WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLES = "weights in pickle files are not read: convert them"


def load_folder(folder: Path, *, context: int | None = None) -> tuple[Decoder, PretrainedTokenizer]:
    """The model and tokenizer in `folder`, in float32.

    `context`: the longest sequence that is wanted, no longer than the model's own. Raises `PolicyRefused` that names
    the file and what is wrong with it.
    """
    shape, tokenizer = _described(folder, context)
    state = from_llama(dict(_weights(folder)), shape, str(folder))
    model = Decoder(shape)
    model.load_state_dict(state, strict=True)
    return model.eval(), tokenizer


def check_folder(folder: Path, *, context: int | None = None) -> None:
    """Raises `PolicyRefused` for what `load_folder` would refuse before it reads a weight."""
    _described(folder, context)
    if not (folder / WHOLE).is_file() and not (folder / _INDEX).is_file():
        raise PolicyRefused(f"{folder} has no {WHOLE}", fix=_PICKLES)


def _described(folder: Path, context: int | None) -> tuple[ModelShape, PretrainedTokenizer]:
    if not folder.is_dir():
        raise PolicyRefused(f"there is no model folder {folder}")
    tokenizer = load_tokenizer(folder)
    where = folder / "config.json"
    shape = shape_of(read_json(where), str(where))
    if tokenizer.size > shape.vocabulary:
        raise PolicyRefused(f"{folder}: the tokenizer has {tokenizer.size} ids, and the model only {shape.vocabulary}")
    if context is not None:
        if context > shape.context:
            raise PolicyRefused(f"{folder}: a context of {context} is wanted; the model was made for {shape.context}")
        shape = replace(shape, context=context)
    return shape, tokenizer


def save_folder(model: Decoder, tokenizer: PretrainedTokenizer, folder: Path, state: Mapping[str, Tensor]) -> None:
    """Write a folder that `transformers`, vLLM and `load_folder` read: `state` are the weights of `model`, merged.

    `folder` exists and is empty.
    """
    from safetensors.torch import save_file

    save_file(to_llama(state, model.shape), folder / WHOLE, metadata={"format": "pt"})
    config = config_of(model.shape, stop_ids=tokenizer.stop_ids)
    (folder / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    (folder / "tokenizer.json").write_text(tokenizer.text, "utf-8")
    (folder / "tokenizer_config.json").write_text(config_json(tokenizer), "utf-8")


def save_adapters(
    state: Mapping[str, Tensor], adapters: Adapters, shape: ModelShape, folder: Path, *, base: str
) -> None:
    """Write adapters as the library peft reads them, upon the model at `base`; `folder` exists and is empty."""
    from safetensors.torch import save_file

    a, b = adapters_to_llama(state, shape)
    tensors = {f"base_model.model.{name}.lora_A.weight": value for name, value in a.items()}
    tensors |= {f"base_model.model.{name}.lora_B.weight": value for name, value in b.items()}
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": adapters.rank,
        "lora_alpha": adapters.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": sorted({name.rpartition(".")[2] for name in a}),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1), "utf-8")


def _weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Names and weights of the one file, or of the parts that the index names."""
    from safetensors import SafetensorError, safe_open

    index = folder / _INDEX
    names = [WHOLE]
    if not (folder / WHOLE).is_file():
        if not index.is_file():
            raise PolicyRefused(f"{folder} has no {WHOLE}", fix=_PICKLES)
        places = read_json(index).get("weight_map")
        if not isinstance(places, Mapping):
            raise PolicyRefused(f"{index} has no weight_map")
        names = sorted({str(name) for name in places.values()})
    for name in names:
        path = folder / name
        if Path(name).name != name:
            raise PolicyRefused(f"{index} names {name!r}, which is not a file beside it")
        try:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118  not a mapping
                    yield key, file.get_tensor(key)
        except (OSError, SafetensorError) as error:
            raise PolicyRefused(f"{path} cannot be read: {error}") from error
