"""The sections that say what is trained, and how.

Owns: `PolicyConfig`, `SftConfig`, `RlConfig`.
Invariant: a key that the chosen model or method does not read is refused, not passed over.
Must not know: which classes implement what.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from practicum.config.section import Section

_OWN = ("layers", "width", "heads")
_PRETRAINED = ("speech", "adapter_rank", "adapter_alpha")


class PolicyConfig(Section):
    """The model: one drawn at random (`layers`, `width`, `heads`), or with `model` adapters upon a pretrained one."""

    model: str | None = Field(default=None, min_length=1)
    """A pretrained model: `smollm2`, or a Hugging Face folder. Leave it out for a decoder of this project's own."""
    speech: Literal["tags", "hermes", "llama", "fence"] = "tags"
    """With `model`: how it says what it wants done."""
    adapter_rank: int = Field(default=16, ge=1, le=1024)
    """With `model`: rank of the adapters on every projection; only they are trained and stored."""
    adapter_alpha: float = Field(default=32.0, gt=0)
    """With `model`: what the adapters add is multiplied by adapter_alpha / adapter_rank."""
    layers: int = Field(default=2, ge=1)
    """Transformer blocks."""
    width: int = Field(default=192, ge=2)
    """Size of the residual stream."""
    heads: int = Field(default=6, ge=1)
    """Attention heads; `width` is a multiple of it."""
    context: int = Field(default=512, ge=16)
    """Most positions of the model; no more than a pretrained one was made for."""

    @model_validator(mode="after")
    def _one_kind(self) -> PolicyConfig:
        unread = [name for name in (_OWN if self.model else _PRETRAINED) if name in self.model_fields_set]
        if unread and self.model:
            raise ValueError(f"{', '.join(unread)} says how a new model is made, and {self.model!r} is made already")
        if unread:
            raise ValueError(f"{', '.join(unread)} goes with `model`, which is not set")
        return self

    @model_validator(mode="after")
    def _heads_fit(self) -> PolicyConfig:
        size, rest = divmod(self.width, self.heads)
        if rest:
            raise ValueError(f"width {self.width} is not divisible by heads {self.heads}: {size} each, {rest} left")
        if size % 2:
            raise ValueError(
                f"a head has width / heads = {self.width} / {self.heads} = {size} dimensions, "
                "and rotary positions need an even number"
            )
        return self

    @model_serializer(mode="wrap")
    def _what_is_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unread = _OWN if self.model else _PRETRAINED
        return {name: value for name, value in handler(self).items() if name not in unread}


class SftConfig(Section):
    """The warm start; with `steps` 0 there is none, and no demonstration is acted."""

    demonstrations: int = Field(default=640, ge=0)
    """Demonstrations of the warm start; 0 without one."""
    correct_rate: float = Field(default=0.45, gt=0, le=1)
    """Share of demonstrations that do the right thing; half of the others give up, half make a mistake."""
    steps: int = Field(default=320, ge=0)
    """Optimiser steps of the warm start; 0 leaves it out."""
    batch_size: int = Field(default=16, ge=1)
    """Conversations of one step."""
    lr: float = Field(default=3e-3, gt=0)
    """Peak learning rate, reached after a short rise and left on a cosine."""
    weight_decay: float = Field(default=0.1, ge=0)
    """AdamW's weight decay during the warm start."""
    prompt_weight: float = Field(default=0.1, ge=0, le=1)
    """Weight of the tokens that the assistant did not say, beside 1 for those it did."""
    rename_rate: float = Field(default=0.85, ge=0, le=1)
    """Share of samples whose names are exchanged for others that the task allows."""
    threads: int = Field(default=1, ge=1)
    """Processors used by the steps; boxes for demonstrations and admission need the others meanwhile."""

    @model_validator(mode="before")
    @classmethod
    def _none_without_steps(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("steps") == 0:
            return {"demonstrations": 0, **given}
        return given

    @model_validator(mode="after")
    def _both_or_none(self) -> SftConfig:
        if self.steps == 0 and self.demonstrations:
            raise ValueError(f"steps = 0 is no warm start, and {self.demonstrations} demonstrations are for one")
        if self.steps and not self.demonstrations:
            raise ValueError(f"demonstrations = 0 leaves {self.steps} steps of warm start with nothing to imitate")
        return self


class RlConfig(Section):
    """The updates: pacing, and the method as data; `training.methods` has the tables."""

    updates: int = Field(default=32, ge=0)
    """Updates; 0 ends the run after the warm start."""
    lr: float = Field(default=4e-4, gt=0)
    """Learning rate of the first update."""
    lr_final: float = Field(default=1e-4, ge=0)
    """Learning rate of the last update."""
    loss: Literal["ppo", "gspo", "cispo"] = "ppo"
    """The surrogate: clipped by token, clipped by sequence, or with weights that are clipped and held fixed."""
    advantage: Literal["group", "group-unscaled", "leave-one-out", "batch"] = "group"
    """What an attempt is compared with: its group (in its deviations, or not), the group's others, the whole batch."""
    reference_kl: float = Field(default=0.0, ge=0)
    """Weight of the penalty for leaving version 0."""
    importance: Literal["none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask"] = "none"
    """How samples of older versions are weighted back: whose ratio it is, and what is done beyond the bound."""
    importance_bound: float = Field(default=2.0, gt=1)
    """With `importance`: the largest weight."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """The ratio to the sampled log-probabilities is clipped below 1 − clip_low."""
    clip_high: float = Field(default=0.28, gt=0)
    """The ratio is clipped above 1 + clip_high."""
    entropy_bonus: float = Field(default=0.0, ge=0)
    """Weight of the policy's entropy in the objective."""
    minibatches: int = Field(default=4, ge=1)
    """Optimiser steps of one update."""
    grad_clip: float = Field(default=1.0, gt=0)
    """Largest gradient norm."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""

    @model_validator(mode="after")
    def _all_is_read(self) -> RlConfig:
        if self.entropy_bonus and self.loss != "ppo":
            raise ValueError(f"entropy_bonus goes with loss ppo; {self.loss} has none")
        if self.importance == "none" and "importance_bound" in self.model_fields_set:
            raise ValueError("importance_bound bounds the weights of `importance`, which is none")
        return self

    @model_serializer(mode="wrap")
    def _what_is_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unread = "importance_bound" if self.importance == "none" else ""
        return {name: value for name, value in handler(self).items() if name != unread}
