"""The sections that say what is trained, and how.

Owns: `PolicyConfig`, `TrainerConfig`, `SftConfig`, `StudyConfig`, `RlConfig`, `RewardConfig`.
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


class TrainerConfig(Section):
    """How the trainer computes; what it computes stands elsewhere."""

    precision: Literal["float32", "bfloat16"] = "float32"
    """Numbers of matrix products; all else is float32 in any case. Refused on a processor that lacks them."""
    recompute: bool = False
    """Whether a backward pass computes a block's inner values again: a third more work, in the memory of one block."""
    threads: int = Field(default=1, ge=1)
    """Processors used by updates; boxes and sampling need the others meanwhile. The warm start has sft.threads."""


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


_BY_SOURCE = {
    "demonstrations": {"demonstrations", "correct_rate", "rename_rate"},
    "attempts": {"groups"},
    "rows": {"rows"},
}
_BY_LOSS = {"cross-entropy": {"prompt_weight"}, "dpo": {"beta", "label_smoothing"}, "simpo": {"beta", "gamma"}}


class StudyConfig(Section):
    """Learning from what is there already, in place of the updates of `rl`: rows to imitate, or pairs to tell apart."""

    source: Literal["demonstrations", "attempts", "rows"] = "demonstrations"
    """What is learnt from: demonstrations, attempts that version 0 makes and the judge tells apart, or a file."""
    loss: Literal["cross-entropy", "dpo", "simpo"] = "cross-entropy"
    """Imitation of what succeeded, or preference of it to what failed (with a reference: dpo; without: simpo)."""
    updates: int = Field(default=8, ge=1)
    """Versions that are made; after some of them the validation tasks are looked at."""
    steps: int = Field(default=40, ge=1)
    """Optimiser steps of one update."""
    batch_size: int = Field(default=16, ge=1)
    """Rows, or pairs, of one step."""
    lr: float = Field(default=3e-3, gt=0)
    """Peak learning rate, reached after a short rise and left on a cosine."""
    weight_decay: float = Field(default=0.1, ge=0)
    """AdamW's weight decay."""
    demonstrations: int = Field(default=640, ge=1)
    """With demonstrations: how many are acted."""
    correct_rate: float = Field(default=1.0, gt=0, le=1)
    """With demonstrations: share of those that do the right thing."""
    rename_rate: float = Field(default=0.85, ge=0, le=1)
    """With demonstrations: share of rows whose names are exchanged for others that the task allows."""
    groups: int = Field(default=60, ge=1)
    """With attempts: groups of `rollout.group_size` that version 0 makes at training tasks."""
    rows: str | None = Field(default=None, min_length=1)
    """With rows: file that `practicum runs export` wrote."""
    prompt_weight: float = Field(default=0.0, ge=0, le=1)
    """With cross-entropy: weight of the tokens that the policy did not say, beside 1 for those it did."""
    beta: float = Field(default=0.1, gt=0)
    """With dpo and simpo: how much a margin of log-probability counts; simpo wants about 2."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=0.5)
    """With dpo: share of pairs believed to be the wrong way round."""
    gamma: float = Field(default=0.5, ge=0)
    """With simpo: margin that is aimed at."""

    @property
    def unread(self) -> set[str]:
        """Keys that go with another source or loss."""
        everything = set[str]().union(*_BY_SOURCE.values(), *_BY_LOSS.values())
        return everything - _BY_SOURCE[self.source] - _BY_LOSS[self.loss]

    @model_validator(mode="after")
    def _all_is_read(self) -> StudyConfig:
        if self.source == "demonstrations" and self.loss != "cross-entropy":
            raise ValueError(f"{self.loss} wants failures beside successes: set source to attempts or rows")
        for name in sorted(self.unread & self.model_fields_set):
            raise ValueError(f"{name} goes with another source or loss than {self.source} and {self.loss}: remove it")
        if self.source == "rows" and self.rows is None:
            raise ValueError("source rows wants a file: set rows to one that `practicum runs export` wrote")
        return self

    @model_serializer(mode="wrap")
    def _what_is_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name not in self.unread}


class RewardModelConfig(Section):
    """A model of rewards, learnt from which attempts of a task succeed, whose opinion then trains in their place."""

    groups: int = Field(default=60, ge=1)
    """Groups of `rollout.group_size` made by version 0 at training tasks; successes are paired with failures."""
    held_back: float = Field(default=0.2, gt=0, lt=1)
    """Share of the tasks whose pairs only measure how well it tells them apart."""
    steps: int = Field(default=150, ge=1)
    """Optimiser steps."""
    batch_size: int = Field(default=16, ge=1)
    """Pairs of one step."""
    lr: float = Field(default=1e-3, gt=0)
    """Peak learning rate."""
    fall: float = Field(default=0.0, ge=0, lt=1)
    """How far success by execution must be below its best at a look to count as fallen."""
    patience: int = Field(default=2, ge=1)
    """Looks in a row at which success has fallen while the model's opinion has risen, after which learning stops."""


class RewardConfig(Section):
    noise: str | None = Field(default=None, min_length=1)
    """File of measured error rates, written by `practicum verifier noise`; leave it out to train without."""
    correction: Literal["none", "backward", "forward"] = "none"
    """How rewards are corrected by those rates."""
    min_youden: float = Field(default=0.2, ge=0, lt=1)
    """With `noise`: tasks whose lower bound of J = 1 − FP − FN is not above this do not train."""
    model: RewardModelConfig | None = None
    """A learnt model of rewards that trains in place of verdicts; without this section verdicts train."""

    @model_validator(mode="after")
    def _rates_are_known(self) -> RewardConfig:
        if self.correction != "none" and self.noise is None:
            raise ValueError(
                f"correction {self.correction!r} needs error rates: set reward.noise to a file that "
                "`practicum verifier noise` wrote"
            )
        if self.correction != "none" and self.model is not None:
            raise ValueError("verdicts are corrected, or a model's opinion trains in their place: remove one")
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
    process: Literal["none", "tests"] = "none"
    """Credit by turn for tests that newly pass, in place of `advantage`; none: all turns share the outcome."""
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
        if self.process != "none" and "advantage" in self.model_fields_set:
            raise ValueError(f"process {self.process} gives credit by turn, in place of advantage: remove one")
        if self.importance == "none" and "importance_bound" in self.model_fields_set:
            raise ValueError("importance_bound bounds the weights of `importance`, which is none")
        return self

    @model_serializer(mode="wrap")
    def _what_is_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unread = {"importance_bound"} if self.importance == "none" else set()
        unread |= {"advantage"} if self.process != "none" else set()
        return {name: value for name, value in handler(self).items() if name not in unread}
