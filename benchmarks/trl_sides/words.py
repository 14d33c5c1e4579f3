"""practicum's own tokenizer and decoder as `transformers` reads them: same ids, same weights, same turns.

Owns: `without_letters`, `write_folder`, what tells TRL how the model acts (`TEMPLATE`, `RESPONSES`).
Invariant: the tokenizer in the folder gives the ids that practicum's gives.
Must not know: boxes, training.
"""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from practicum.policies.local.layout import config_of, to_llama
from practicum.policies.local.model import Decoder
from practicum.policies.local.tokenizer import _PIECE, TAGS
from practicum.policies.local.tokenizer import Tokenizer as Own

_MARKS = ("<|pad|>", "<|task|>", "<|assistant|>", "<|observation|>")
CONTROLS = (*_MARKS, *TAGS)
# The turn layout of `LocalRenderer`. Calls are never rendered for the model, which goes on from the ids that it said;
# TRL wants a template that could.
TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}<|task|>{{ message.content }}"
    "{%- elif message.role == 'tool' -%}<|observation|>{{ message.content }}"
    "{%- else -%}<|assistant|>{{ message.content }}"
    "{%- for call in message.tool_calls or [] -%}{{ call.function.name }} "
    "{%- for key, value in call.function.arguments.items() -%}{{ key }}={{ value }}{%- endfor -%}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
# What ends with a closing tag is one call of the tool `act`, word for word; anything else ends the attempt.
RESPONSES = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"(?=.*</(?:bash|edit)>\Z)",
            "repeats": True,
            "content": "text",
            "content_args": {"strip": False},
            "transform": {"type": "function", "function": {"name": "act", "arguments": {"text": "{content}"}}},
        },
        "content": {"content": "text", "content_args": {"strip": False}},
    },
}


def without_letters(tokenizer: Own) -> Own:
    """`tokenizer` without pieces of one byte: each has an id as a byte already, and `tokenizers` can give it only one.

    No text takes more ids for that.
    """
    return Own([piece for piece in tokenizer.pieces if len(piece.encode("utf-8", "surrogateescape")) > 1])


def write_folder(model: Decoder, tokenizer: Own, folder: Path) -> None:
    """Write `model` and `tokenizer` as a folder of Hugging Face's form."""
    folder.mkdir(parents=True)
    save_file(to_llama(model.state_dict(), model.shape), folder / "model.safetensors", metadata={"format": "pt"})
    config = config_of(model.shape, stop_ids=tokenizer.stop_ids)
    (folder / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    generation = {"eos_token_id": list(tokenizer.stop_ids), "pad_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=1), "utf-8")
    (folder / "tokenizer.json").write_text(_tokenizer(tokenizer).to_str(pretty=True), "utf-8")
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<submit>",
        "pad_token": _MARKS[0],
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(described, indent=1), "utf-8")


def _tokenizer(own: Own) -> Tokenizer:
    words = [*CONTROLS, *(f"<0x{byte:02X}>" for byte in range(256)), *own.pieces]
    vocabulary = {word: ident for ident, word in enumerate(words)}
    if len(vocabulary) != own.size:
        raise ValueError(f"{own.size} ids, and {len(vocabulary)} words for them")
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, ignore_merges=True))
    # In this syntax (?m) is what Python calls DOTALL.
    made.pre_tokenizer = pre_tokenizers.Split(Regex(f"(?m:{_PIECE.pattern})"), behavior="isolated")
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens([AddedToken(word, normalized=False, special=True) for word in CONTROLS])
    return made
