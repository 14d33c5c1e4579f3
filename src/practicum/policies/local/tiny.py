"""A tiny chat model of Llama's architecture with a byte-level tokenizer, drawn at random: a stand-in that is shipped.

Owns: `tiny_tokenizer`, `tiny_model`.
Invariant: the same seed gives the same model; it has all the parts that a pretrained one has.
Must not know: files, training.
"""

from __future__ import annotations

import torch

from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.vocabulary import PretrainedTokenizer, byte_level_json

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MERGES = ("Ġ t", "h e", "Ġt he")
MERGED = tuple(merge.replace(" ", "") for merge in MERGES)
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def byte_letters() -> list[str]:
    """The 256 signs that stand for bytes in byte-level vocabularies, in the usual order."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())


def tiny_tokenizer(template: str = CHATML) -> PretrainedTokenizer:
    """Bytes, three merges and three control tokens."""
    text = byte_level_json([*CONTROL, *byte_letters(), *MERGED], MERGES, range(len(CONTROL)), split_digits=True)
    return PretrainedTokenizer(text, template=template, stop=["<|im_end|>"])


def tiny_shape(*, tied: bool = True, kv_heads: int = 2) -> ModelShape:
    """Shared heads of keys, an inner width and a rotary base of its own."""
    return ModelShape(
        vocabulary=tiny_tokenizer().size, layers=2, width=24, heads=6, context=64, kv_heads=kv_heads, inner=40,
        theta=1e5, tied=tied,
    )  # fmt: skip


def tiny_model(*, tied: bool = True, seed: int = 1) -> Decoder:
    """Weights far enough from zero that positions and prompts make a difference."""
    made = Decoder(tiny_shape(tied=tied), seed=seed)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3.0)
    return made.eval()
