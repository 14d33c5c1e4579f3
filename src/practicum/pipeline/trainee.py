"""From a run's configuration to the model that it trains.

Owns: `own_decoder`, `adapted`, `base_of`, `check_model`.
Invariant: same configuration and tasks, same model; what is drawn is drawn by the run's seed.
Must not know: training, boxes.
"""

from __future__ import annotations

from practicum.config.learning import PolicyConfig
from practicum.pipeline.agents import models_cache
from practicum.policies.local.folder import check_folder
from practicum.policies.local.known import KNOWN, model_folder
from practicum.policies.local.lora import Adapters, add_adapters
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.saved import Base
from practicum.policies.local.tokenizer import Tokenizer
from practicum.policies.local.trainee import Adapted, OwnDecoder, Trainee


def base_of(policy: PolicyConfig) -> Base | None:
    """The pretrained model that `policy` names; None for an own decoder. Raises `PolicyRefused`."""
    if policy.model is None:
        return None
    return Base(model_folder(policy.model, models_cache()).resolve(), policy.context, policy.speech)


def own_decoder(policy: PolicyConfig, tokenizer: Tokenizer, *, seed: int) -> Trainee:
    """A decoder of the sizes in `policy`, drawn by `seed`, that reads the ids of `tokenizer`."""
    shape = ModelShape(tokenizer.size, policy.layers, policy.width, policy.heads, policy.context)
    return OwnDecoder(Decoder(shape, seed=seed), tokenizer)


def adapted(policy: PolicyConfig, base: Base, *, seed: int) -> Trainee:
    """`base` with fresh adapters drawn by `seed`. Raises `PolicyRefused`."""
    adapters = Adapters(policy.adapter_rank, policy.adapter_alpha)
    model, _, renderer = base.load()
    add_adapters(model, adapters, seed=seed)
    return Adapted(model, renderer, base, adapters)


def check_model(policy: PolicyConfig) -> None:
    """Raises `PolicyRefused` where a pretrained model cannot be trained as `policy` says; nothing is fetched for it."""
    if policy.model is not None and policy.model not in KNOWN:
        check_folder(model_folder(policy.model, models_cache()), context=policy.context)
