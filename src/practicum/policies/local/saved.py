"""A local model as files: what it is, what it stands upon, and putting both together with weights.

Owns: `model.json`, `tokenizer.json` of a version; `Base`, `Saved`.
Invariant: what `files_of` or `adapter_files` writes, `Saved` turns into the same model, as a plain decoder, and the
renderer that goes with it; the base of adapters is named by its folder and by the digest of its weights.
Must not know: where versions lie, training.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.contract import Renderer
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.folder import WHOLE, load_folder
from practicum.policies.local.lora import Adapters, merged
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.tokenizer import Tokenizer
from practicum.policies.local.vocabulary import PretrainedTokenizer
from practicum.policies.speech import SPEECHES

_OWN, _ADAPTED = "practicum-decoder-1", "practicum-adapters-1"


@dataclass(frozen=True, slots=True)
class Base:
    """A pretrained model that others stand upon: its Hugging Face folder, the context to use, how it acts."""

    folder: Path
    context: int
    speech: str

    def load(self) -> tuple[Decoder, PretrainedTokenizer, ChatRenderer]:
        """The model, its tokenizer and its renderer. Raises `PolicyRefused`."""
        model, tokenizer = load_folder(self.folder, context=self.context)
        return model, tokenizer, ChatRenderer(tokenizer, SPEECHES[self.speech])

    @property
    def digest(self) -> str:
        """SHA-256 of the weights' file, or of the index of its parts."""
        for name in (WHOLE, f"{WHOLE}.index.json"):
            if (path := self.folder / name).is_file():
                with open(path, "rb") as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
        raise PolicyRefused(f"{self.folder} has no {WHOLE}")


def files_of(model: Decoder, tokenizer: Tokenizer) -> dict[str, str]:
    """Text files, by name, that describe `model` and `tokenizer` beside the weights."""
    shape = json.dumps({"architecture": _OWN, **model.shape.to_dict()}, indent=1)
    return {"model.json": shape, "tokenizer.json": tokenizer.to_json()}


def adapter_files(base: Base, digest: str, adapters: Adapters) -> dict[str, str]:
    """The same for adapters upon `base`, whose weights have `digest`; the adapters are the weights."""
    described = {
        "architecture": _ADAPTED,
        "base": str(base.folder.resolve()),
        "base_digest": digest,
        "context": base.context,
        "speech": base.speech,
        "rank": adapters.rank,
        "alpha": adapters.alpha,
        "targets": list(adapters.targets),
    }
    return {"model.json": json.dumps(described, indent=1)}


class Saved:
    """Versions of one run as plain decoders; what they stand upon is read once.

    `read(version, name)` gives a text file of a version, `fetch(version)` its weights.
    """

    def __init__(self, read: Callable[[int, str], str], fetch: Callable[[int], Mapping[str, Tensor]]) -> None:
        self._read = read
        self._fetch = fetch
        self._base: tuple[dict[str, Any], dict[str, Tensor], ModelShape, Renderer] | None = None

    def build(self, version: int) -> tuple[Decoder, Renderer]:
        """Model and renderer of `version`. Raises `PolicyRefused` where its parts do not fit each other."""
        described = self._described(version)
        if described["architecture"] == _OWN:
            renderer: Renderer = LocalRenderer(Tokenizer.from_json(self._read(version, "tokenizer.json")))
            try:
                shape = ModelShape(**{key: value for key, value in described.items() if key != "architecture"})
            except TypeError as error:
                raise PolicyRefused(f"model.json does not describe a model: {error}") from error
        else:
            _, _, shape, renderer = self._based(described)
        model = Decoder(shape)
        try:
            model.load_state_dict(self.state(version), strict=True)
        except RuntimeError as error:
            raise PolicyRefused(f"the weights do not fit model.json: {error}") from error
        return model.eval(), renderer

    def state(self, version: int) -> dict[str, Tensor]:
        """The weights of `version` as those of a plain decoder."""
        described, weights = self._described(version), self._fetch(version)
        if described["architecture"] == _OWN:
            return dict(weights)
        _, base, _, _ = self._based(described)
        return merged(base, weights, Adapters(described["rank"], described["alpha"], tuple(described["targets"])))

    def _described(self, version: int) -> dict[str, Any]:
        try:
            described = json.loads(self._read(version, "model.json"))
        except ValueError as error:
            raise PolicyRefused(f"model.json is not JSON: {error}") from error
        architecture = described.get("architecture") if isinstance(described, dict) else None
        if architecture not in (_OWN, _ADAPTED):
            raise PolicyRefused(f"model.json is of architecture {architecture!r}, not {_OWN} or {_ADAPTED}")
        found: dict[str, Any] = described
        return found

    def _based(self, described: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor], ModelShape, Renderer]:
        said = {key: described.get(key) for key in ("base", "base_digest", "context", "speech")}
        if self._base is None or self._base[0] != said:
            if said["speech"] not in SPEECHES:
                raise PolicyRefused(f"model.json names the speech {said['speech']!r}, which there is not")
            base = Base(Path(str(said["base"])), int(described["context"]), str(said["speech"]))
            model, _, renderer = base.load()
            if base.digest != said["base_digest"]:
                raise PolicyRefused(f"{base.folder} is not the model that these adapters were trained upon")
            self._base = (said, dict(model.state_dict()), model.shape, renderer)
        return self._base
