"""A policy over HTTP that is fit for training: token ids in, token ids and their log-probabilities out.

Owns: `TokenPolicy`, `Described`.
Invariant: what `sample` returns is what the server says it sampled, complete and in order, with the version of the
weights that sampled it; where that is in doubt there is a `PolicyRefused` that says why, and never a guess.
Must not know: boxes, tasks, training, tokenizers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

from practicum.errors import ConfigError, PolicyRefused
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.http_client import Endpoint, as_object
from practicum.policies.http_dialects import DIALECTS, PROCESSED, Answer

_HIGHEST = 1e-6  # a log-probability may be so much above 0 by rounding
_LOWEST = -9999.0  # what vLLM writes for minus infinity


@dataclass(frozen=True, slots=True)
class Described:
    """What a server says of a model: its name, and the longest sequence in ids (None: it does not say)."""

    model: str
    context: int | None


class TokenPolicy:
    """Samples from the server at `url` (its root, or its `…/v1`) in `dialect` (vllm, sglang).

    `model` is the name to ask for; empty, the one that the server has. `version` is stamped on samples where the
    server does not tell the version of its weights. `tempered` assures that a vLLM server was started with
    `--logprobs-mode processed_logprobs`: without it, only temperatures 0 and 1 can be had exactly. The rest is as of
    `Endpoint`. Use as an async context manager. Raises `ConfigError`.
    """

    trainable: ClassVar[bool] = True

    def __init__(
        self,
        url: str,
        model: str = "",
        *,
        dialect: str = "vllm",
        version: int = 0,
        tempered: bool = False,
        api_key_env: str | None = None,
        deadline_s: float = 300.0,
        tries: int = 5,
        first_delay_s: float = 0.5,
    ) -> None:
        if dialect not in DIALECTS:
            raise ConfigError(f"there is no dialect {dialect!r}", fix=f"one of {', '.join(DIALECTS)}")
        self._dialect = DIALECTS[dialect]
        self._endpoint = Endpoint(
            url.rstrip("/").removesuffix("/v1"),
            api_key_env=api_key_env, deadline_s=deadline_s, tries=tries, first_delay_s=first_delay_s,
        )  # fmt: skip
        self._model = model
        self._version = version
        self._tempered = tempered

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def use(self, model: str, version: int) -> None:
        """Ask for `model` from now on, whose weights are `version`; what is under way keeps what it was asked from."""
        self._model, self._version = model, version

    async def describe(self) -> Described:
        """The model that is asked for, as the server lists it. Raises `PolicyError`, `PolicyRefused`."""
        listed = await self._endpoint.ask("/v1/models", None, _read_models)
        if not self._model and len(listed) > 1:
            raise PolicyRefused(f"the server has several models: {', '.join(sorted(listed))}", fix="name one: --model")
        name = self._model or next(iter(listed))
        if name not in listed:
            raise PolicyRefused(f"the server has no model {name!r}; it has {', '.join(sorted(listed))}")
        self._model = name
        return Described(name, listed[name])

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """One sample. Raises `PolicyError` where there is no answer, `PolicyRefused` where it cannot be used."""
        if not self._model:
            await self.describe()
        version = self._version
        body = self._dialect.body(self._model, prompt_ids, params, session)
        jitter = f"{session}:{params.seed}"
        answer = await self._endpoint.ask(self._dialect.path, body, self._dialect.read, jitter=jitter)
        _check(answer, prompt_ids, params, tempered=self._tempered)
        stopped = answer.finish == "stop"
        return Sampled(
            answer.ids,
            answer.logprobs,
            "stop" if stopped else "length",
            version if answer.version is None else answer.version,
        )

    def session(self, name: str) -> AbstractContextManager[None]:
        """Nothing is held: each request carries all of the conversation, and its name for the server's cache."""
        return nullcontext()


def _check(answer: Answer, prompt: Sequence[int], params: SamplingParams, *, tempered: bool) -> None:
    """Raises `PolicyRefused` for whatever cannot be exactly what was asked for."""
    ids, logprobs = answer.ids, answer.logprobs
    if answer.prompt is not None and answer.prompt not in (tuple(prompt), len(prompt)):
        raise PolicyRefused("the server continued other ids than the prompt's")
    if len(logprobs) != len(ids):
        raise PolicyRefused(f"the server gives {len(logprobs)} log-probabilities for {len(ids)} ids")
    if not 1 <= len(ids) <= params.max_tokens:
        raise PolicyRefused(f"the server gives {len(ids)} ids where 1 to {params.max_tokens} were asked for")
    if not all(math.isfinite(value) and _LOWEST < value <= _HIGHEST for value in logprobs):
        raise PolicyRefused("the server gives a log-probability that is not a finite number ≤ 0")
    if any(ident in params.stop_ids for ident in ids[:-1]):
        raise PolicyRefused("the server went on after an id that ends a sample")
    if answer.finish == "stop" and ids[-1] not in params.stop_ids and ids[-1] != answer.matched:
        raise PolicyRefused("the server says that the sample ended, and leaves out the id that ended it")
    if answer.finish == "length" and len(ids) < params.max_tokens:
        raise PolicyRefused(
            f"the server cut a sample at {len(ids)} of {params.max_tokens} ids",
            fix="its context is shorter than the one that is counted with",
        )
    exact = tempered if answer.tempered is None else answer.tempered
    if not exact and params.temperature not in (0.0, 1.0):
        raise PolicyRefused(
            f"at temperature {params.temperature:g} the server's log-probabilities are not of what it samples from",
            fix=f"start vLLM with --logprobs-mode {PROCESSED} and say so (tempered), or sample at temperature 1",
        )


def _read_models(data: bytes) -> dict[str, int | None]:
    """Names of the models and their contexts; an adapter has that of the model that it stands upon."""
    listed = as_object(data).get("data")
    found: dict[str, int | None] = {}
    parents: dict[str, Any] = {}
    for each in listed if isinstance(listed, list) else ():
        name: Any = each.get("id") if isinstance(each, dict) else None
        if isinstance(name, str):
            context, parents[name] = each.get("max_model_len"), each.get("parent")
            found[name] = context if type(context) is int and context > 0 else None
    if not found:
        raise PolicyRefused("the server lists no models")
    above = {name: found.get(parent) for name, parent in parents.items() if isinstance(parent, str)}
    return {name: context or above.get(name) for name, context in found.items()}
