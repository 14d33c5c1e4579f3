"""Models as folders, and GGUF files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from practicum.errors import PolicyRefused
from practicum.policies.local.folder import load_folder, save_folder
from practicum.policies.local.ggufs import read_gguf
from practicum.policies.local.known import KNOWN, model_folder, obtain
from practicum.policies.local.layout import to_llama
from practicum.policies.local.tiny import CHATML, CONTROL, MERGED, MERGES, byte_letters, tiny_model, tiny_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tiny_model()
    save_folder(made, tiny_tokenizer(), tmp_path, made.state_dict())
    return tmp_path


def test_a_folder_is_read_back(folder: Path) -> None:
    """Weights, ids and the end of a turn are what they were."""
    again, words = load_folder(folder)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in tiny_model().state_dict().items())
    text = "the theme: 123 ä\n"
    assert words.encode(text) == tiny_tokenizer().encode(text)
    assert words.stop_ids == tiny_tokenizer().stop_ids == (2,)
    assert words.template == CHATML


def test_weights_in_parts(folder: Path) -> None:
    """A folder whose weights are in several files with an index is the same model."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for part, of in parts.items():
        save_file({name: weights[name] for name in of}, folder / part)
    index = {"weight_map": {name: part for part, of in parts.items() for name in of}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    again, _ = load_folder(folder)
    assert torch.equal(again.embedding.weight, tiny_model().embedding.weight)
    index["weight_map"]["x"] = "../elsewhere.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(PolicyRefused, match="not a file beside it"):
        load_folder(folder)


def test_the_context_that_is_wanted(folder: Path) -> None:
    """A shorter context takes a shorter table of positions; a longer one than the model's is refused."""
    assert load_folder(folder, context=16)[0].shape.context == 16
    with pytest.raises(PolicyRefused, match="made for 64"):
        load_folder(folder, context=65)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("tokenizer.json", "no tokenizer.json"),
        ("tokenizer_config.json", "no tokenizer_config.json"),
        ("config.json", "no config.json"),
        ("model.safetensors", "no model.safetensors"),
    ],
)
def test_a_part_is_missing(folder: Path, missing: str, said: str) -> None:
    """The file that is not there is named."""
    (folder / missing).unlink()
    with pytest.raises(PolicyRefused, match=said):
        load_folder(folder)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("config.json", "[]", "not a JSON object"),
        ("config.json", "{", "cannot be read"),
        ("tokenizer.json", "{}", "cannot be read"),
        ("tokenizer_config.json", "{}", "no chat template"),
        ("tokenizer_config.json", json.dumps({"chat_template": CHATML}), "which token ends a turn"),
        ("tokenizer_config.json", json.dumps({"chat_template": CHATML, "eos_token": "<no>"}), "'<no>'"),
        ("model.safetensors", "nothing", "cannot be read"),
    ],
)
def test_a_part_is_broken(folder: Path, file: str, text: str, said: str) -> None:
    """The file that cannot be used is named, with what is wrong."""
    (folder / file).write_text(text)
    with pytest.raises(PolicyRefused, match=said):
        load_folder(folder)


def write_gguf(path: Path, *, architecture: str = "llama", split: str = "smollm") -> None:
    from gguf import GGUFWriter

    made = tiny_model()
    shape = made.shape
    tokens = [*CONTROL, *byte_letters(), *MERGED]
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_rope_freq_base(shape.theta)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(split)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(CONTROL) + [1] * (len(tokens) - len(CONTROL)))
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHATML)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
    names |= {"self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm"}
    names |= {"post_attention_layernorm": "ffn_norm"}
    names |= {f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}
    for name, value in to_llama(made.state_dict(), shape).items():
        data = value.numpy()
        if name == "model.embed_tokens.weight":
            place = "token_embd.weight"
        elif name == "model.norm.weight":
            place = "output_norm.weight"
        else:
            _, _, layer, rest = name.split(".", 3)
            kind = rest.removesuffix(".weight")
            place = f"blk.{layer}.{names[kind]}.weight"
            heads = {"self_attn.q_proj": shape.heads, "self_attn.k_proj": shape.key_heads}.get(kind)
            if heads:  # as llama.cpp's converter does it
                data = data.reshape(heads, 2, len(data) // heads // 2, -1).swapaxes(1, 2).reshape(data.shape)
        writer.add_tensor(place, np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_gguf(tmp_path: Path) -> None:
    """A file as llama.cpp's converter writes it is the same model, with the same ids."""
    path = tmp_path / "model.gguf"
    write_gguf(path)
    made, words = read_gguf(path)
    assert made.shape == tiny_model().shape
    assert all(torch.equal(value, made.state_dict()[name]) for name, value in tiny_model().state_dict().items())
    assert words.encode("the 12") == tiny_tokenizer().encode("the 12")
    assert words.stop_ids == (2,)


def test_gguf_that_is_not_understood(tmp_path: Path) -> None:
    """Another architecture, an unknown splitter and a file that is no GGUF are refused with the reason."""
    for number, (change, said) in enumerate([({"architecture": "qwen2"}, "'qwen2'"), ({"split": "odd"}, "'odd'")]):
        path = tmp_path / f"{number}.gguf"
        write_gguf(path, **change)
        with pytest.raises(PolicyRefused, match=said):
            read_gguf(path)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"nothing like it")
    with pytest.raises(PolicyRefused, match="not a GGUF file"):
        read_gguf(broken)


def test_models_by_name(tmp_path: Path, folder: Path) -> None:
    """A folder stands for itself, a known model that is in the cache is taken from there, and others are refused."""
    assert model_folder(str(folder), tmp_path) == folder
    known = tmp_path / "cache" / f"smollm2-{KNOWN['smollm2'].digest[:12]}"
    known.mkdir(parents=True)
    assert model_folder("smollm2", tmp_path / "cache") == known
    assert obtain("smollm2", tmp_path / "cache") == known
    with pytest.raises(PolicyRefused, match=r"neither a folder nor a model"):
        model_folder("gpt-unknown", tmp_path)
