"""The model that a run trains: a decoder of the run's own, or adapters upon a pretrained model.

Owns: `Trainee`, its two kinds `OwnDecoder` and `Adapted`, `Speaker`, `held`.
Invariant: what `state` gives and `files` describe is what a version holds and what `take` puts back: all weights of an
own decoder, the adapters alone of a pretrained one. A version upon another base is refused.
Must not know: optimisers, configurations, what the model is trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from practicum.errors import PolicyRefused
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.lora import Adapters, adapter_state, load_adapters
from practicum.policies.local.model import Decoder
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.saved import Base, adapter_files, files_of
from practicum.policies.local.tokenizer import Tokenizer
from practicum.policies.local.vocabulary import load_tokenizer
from practicum.policies.speech import SPEECHES

AnyRenderer = LocalRenderer | ChatRenderer


@dataclass(frozen=True, slots=True)
class Speaker:
    """What another process needs in order to speak as the model does: its own tokenizer's JSON, or its base."""

    tokenizer: str | None = None
    base: Base | None = None

    def renderer(self) -> AnyRenderer:
        """The model's renderer. Raises `PolicyRefused`."""
        if self.base is not None:
            return ChatRenderer(load_tokenizer(self.base.folder), SPEECHES[self.base.speech])
        return LocalRenderer(Tokenizer.from_json(self.tokenizer or ""))


class Trainee(Protocol):
    """A model in training. `take` raises `PolicyRefused` where `files` describe another kind of version."""

    model: Decoder
    renderer: AnyRenderer
    speaker: Speaker

    def state(self) -> dict[str, Tensor]: ...
    def files(self) -> dict[str, str]: ...
    def take(self, state: Mapping[str, Tensor], files: Mapping[str, str] | None = None) -> None: ...


@dataclass
class OwnDecoder:
    """A decoder drawn at random, with a tokenizer trained on the run's tasks."""

    model: Decoder
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        self.renderer: AnyRenderer = LocalRenderer(self.tokenizer)
        self.speaker = Speaker(tokenizer=self.tokenizer.to_json())

    def state(self) -> dict[str, Tensor]:
        """The weights by name, detached copies."""
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def files(self) -> dict[str, str]:
        return files_of(self.model, self.tokenizer)

    def take(self, state: Mapping[str, Tensor], files: Mapping[str, str] | None = None) -> None:
        self.model.load_state_dict(state)


@dataclass
class Adapted:
    """A pretrained model with adapters, which alone are trained."""

    model: Decoder
    renderer: AnyRenderer
    base: Base
    adapters: Adapters
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        self.speaker = Speaker(base=self.base)
        self.digest = self.base.digest  # hundreds of megabytes are read for it: once

    def state(self) -> dict[str, Tensor]:
        """The adapters by name, detached copies."""
        return adapter_state(self.model)

    def files(self) -> dict[str, str]:
        return adapter_files(self.base, self.digest, self.adapters)

    def take(self, state: Mapping[str, Tensor], files: Mapping[str, str] | None = None) -> None:
        if files is not None and json.loads(files["model.json"]).get("base_digest") != self.digest:
            raise PolicyRefused(
                f"{self.base.folder} is not the model that this run was started upon",
                fix="put back what was there, or start a new run",
            )
        load_adapters(self.model, state)


@contextmanager
def held(trainee: Trainee, state: Mapping[str, Tensor]) -> Iterator[Decoder]:
    """The model as it was with `state`, and afterwards as it is now, bit for bit."""
    now = trainee.state()
    trainee.take(state)
    try:
        yield trainee.model
    finally:
        trainee.take(now)
