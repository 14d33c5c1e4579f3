"""Whether a model folder can be sampled and trained here, part by part.

Owns: `ModelCheck`, `check_model`.
Invariant: every part is looked at, also where another is broken; what is wrong comes with what to do.
Must not know: where models come from, how findings are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import PolicyRefused
from practicum.policies.local.chat import Template, bridge_of
from practicum.policies.local.folder import load_folder
from practicum.policies.local.generator import Generator
from practicum.policies.local.layout import shape_of
from practicum.policies.local.vocabulary import load_tokenizer, read_json
from practicum.policies.speech import SPEECHES

_MEETS = "earlier turns cannot stay as they were sampled: every turn would be a sample of its own"
_ANOTHER = "replace the chat template by one that only appends, or train single-turn tasks"


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """One part. Where not `ok`, `fix` says what to do; what is not `required` limits the model and does not bar it."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None
    required: bool = True


def check_model(folder: Path) -> list[ModelCheck]:
    """Findings on the Hugging Face folder `folder`, in the order in which a run would meet them."""
    return [
        _tried("sizes", lambda: _sizes(folder), "a config.json of the Llama architecture is needed"),
        _tried("tokenizer", lambda: _tokenizer(folder), "put the model's tokenizer files beside its weights"),
        *_weights(folder),
        *_template(folder),
    ]


def _tried(name: str, look: Callable[[], str], fix: str) -> ModelCheck:
    try:
        return ModelCheck(name, True, look())
    except PolicyRefused as error:
        return ModelCheck(name, False, error.message, error.fix or fix)


def _sizes(folder: Path) -> str:
    where = folder / "config.json"
    shape = shape_of(read_json(where), str(where))
    return (
        f"{shape.layers} layers of width {shape.width}, {shape.heads} heads ({shape.key_heads} of keys), "
        f"context {shape.context}"
    )


def _tokenizer(folder: Path) -> str:
    tokenizer = load_tokenizer(folder)
    return f"{tokenizer.size} ids; a turn ends with {', '.join(map(repr, tokenizer.stop))}"


def _weights(folder: Path) -> Iterator[ModelCheck]:
    """Reads all of them, since only that finds a file that was cut off."""
    try:
        model, _ = load_folder(folder)
    except PolicyRefused as error:
        yield ModelCheck("weights", False, error.message, error.fix or "fetch the model again")
        return
    broken = [name for name, value in model.state_dict().items() if not bool(value.isfinite().all())]
    count = sum(parameter.numel() for parameter in model.parameters())
    if broken:
        yield ModelCheck("weights", False, f"not finite: {', '.join(broken[:3])}", "fetch the model again")
        return
    yield ModelCheck("weights", True, f"{count / 1e6:.1f} million parameters")
    if Generator(model).invariant:
        yield ModelCheck("bit-equal sampling", True, "a sample does not depend on what runs beside it", required=False)
    else:
        yield ModelCheck(
            "bit-equal sampling", False, "last digits depend on what runs beside a sample",
            "set the number of threads to 1; where that is so already, this host's BLAS cannot", required=False,
        )  # fmt: skip


def _template(folder: Path) -> Iterator[ModelCheck]:
    """The template itself, then whether each way of acting can go on from what was sampled."""
    try:
        template = Template(load_tokenizer(folder).template)
        template.render([{"role": "user", "content": "task"}])
    except PolicyRefused as error:
        yield ModelCheck("chat template", False, error.message, error.fix or "repair chat_template.jinja")
        return
    yield ModelCheck("chat template", True, "writes a first turn")
    found: list[ModelCheck] = []
    for speech in SPEECHES.values():
        name = f"several turns, speech {speech.name}"
        try:
            if speech.system:
                template.render([{"role": "system", "content": "rules"}, {"role": "user", "content": "task"}])
            problem = bridge_of(template, speech.observer).problem
        except PolicyRefused as error:
            problem = error.message
        if problem is None:
            found.append(ModelCheck(name, True, "prefixes are kept", required=False))
        else:
            found.append(ModelCheck(name, False, problem, "choose another speech", required=False))
    yield from found
    if not any(each.ok for each in found):
        yield ModelCheck("prefixes", False, f"kept in no way of acting; {_MEETS}", _ANOTHER)
