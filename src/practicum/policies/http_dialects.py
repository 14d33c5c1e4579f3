"""How servers are asked to continue token ids, and what they answer: vLLM's dialect and SGLang's.

Owns: `Dialect`, `VLLM`, `SGLANG`, `Answer`.
Invariant: an answer holds what the server said and nothing else; what it did not say is None, and what has another form
than documented is `PolicyRefused`. Nothing is encoded or decoded: ids are never made out of text.
Must not know: connections, retries, what an answer is used for. No I/O.

vLLM: POST /v1/completions with `prompt` as ids, `return_token_ids` and `logprobs`; `choices[0]` has `token_ids`,
`prompt_token_ids`, `logprobs.token_logprobs`, `finish_reason`, `stop_reason`.
SGLang: POST /generate with `input_ids`, `sampling_params`, `return_logprob`; `meta_info` has `output_token_logprobs`
as [log-probability, id, text], `finish_reason` as {"type", "matched"}, `prompt_tokens`, `weight_version`.
Both take the sampling defaults of the model's own folder unless told otherwise, so every one that would change the
distribution is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from practicum.errors import PolicyRefused
from practicum.policies.contract import SamplingParams
from practicum.policies.http_client import Unanswered, as_object, excerpt

PROCESSED = "processed_logprobs"
"""vLLM's name for log-probabilities after the temperature; its default are those before."""
_NEUTRAL = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0} | dict.fromkeys(
    ("presence_penalty", "frequency_penalty"), 0.0
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said of one sample. `matched` is the id that it names as the one that ended it.

    `prompt` are the ids that it continued, or only their number. `tempered` says whether the log-probabilities are
    those after the temperature, where the dialect or the server leaves no doubt.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: str
    matched: int | None
    prompt: tuple[int, ...] | int | None
    version: int | None
    tempered: bool | None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way: where to ask, what to send, how to read. `read` raises `PolicyRefused`, `Unanswered`."""

    name: str
    path: str
    body: Callable[[str, Sequence[int], SamplingParams, str], dict[str, Any]]
    read: Callable[[bytes], Answer]


def _vllm_body(model: str, prompt: Sequence[int], params: SamplingParams, session: str) -> dict[str, Any]:
    return {
        "model": model,
        "prompt": list(prompt),
        "max_tokens": params.max_tokens,
        "temperature": params.temperature,
        "seed": params.seed,
        "stop_token_ids": list(params.stop_ids),
        "ignore_eos": True,  # only what is asked for ends a sample
        "logprobs": 0,  # of the sampled ids alone
        "return_token_ids": True,
        "include_stop_str_in_output": True,
        "session_id": session,
        **_NEUTRAL,
    }


def _vllm_read(data: bytes) -> Answer:
    reply = as_object(data)
    try:
        choice = reply["choices"][0]
        finish, ids, logprobs = choice["finish_reason"], choice.get("token_ids"), choice.get("logprobs")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise PolicyRefused(f"the policy's reply is not a completion: {excerpt(data)}") from error
    _check_finish(finish)
    if ids is None:
        raise PolicyRefused(
            "the server answers with text and without token ids, which cannot be trained on",
            fix="use a server that honours return_token_ids (vLLM 0.10.2 or later), or evaluate with --api chat",
        )
    if not isinstance(logprobs, dict) or logprobs.get("token_logprobs") is None:
        raise PolicyRefused("the server omits the log-probabilities that were asked for")
    matched = choice.get("stop_reason")
    prompt = choice.get("prompt_token_ids")
    mode = reply.get("logprobs_mode")
    return Answer(
        ids=_ids(ids),
        logprobs=_numbers(logprobs["token_logprobs"]),
        finish=finish,
        matched=matched if type(matched) is int else None,
        prompt=None if prompt is None else _ids(prompt),
        version=_version(reply.get("weight_version")),
        tempered=None if mode is None else mode == PROCESSED,
    )


def _sglang_body(_model: str, prompt: Sequence[int], params: SamplingParams, _session: str) -> dict[str, Any]:
    sampling = {
        "max_new_tokens": params.max_tokens,
        "temperature": params.temperature,
        "sampling_seed": params.seed,
        "stop_token_ids": list(params.stop_ids),
        "no_stop_trim": True,
        **_NEUTRAL,
    }
    return {"input_ids": list(prompt), "sampling_params": sampling, "return_logprob": True}


def _sglang_read(data: bytes) -> Answer:
    reply = as_object(data)
    try:
        meta = reply["meta_info"]
        ended = meta["finish_reason"]
        finish, matched = ended["type"], ended.get("matched")
        triples = meta.get("output_token_logprobs")
    except (KeyError, TypeError, AttributeError) as error:
        raise PolicyRefused(f"the policy's reply is no answer of /generate: {excerpt(data)}") from error
    _check_finish(finish)
    if not isinstance(triples, list):
        raise PolicyRefused("the server omits the log-probabilities that were asked for")
    if not all(isinstance(triple, list) and len(triple) >= 2 for triple in triples):
        raise PolicyRefused("the server's output_token_logprobs are not [log-probability, id, text]")
    ids = _ids([triple[1] for triple in triples])
    said = reply.get("output_ids")
    if said is not None and _ids(said) != ids:
        raise PolicyRefused("the server's output_ids are not those that it gives log-probabilities for")
    count = meta.get("prompt_tokens")
    return Answer(
        ids=ids,
        logprobs=_numbers([triple[0] for triple in triples]),
        finish=finish,
        matched=matched if type(matched) is int else None,
        prompt=count if type(count) is int else None,
        version=_version(meta.get("weight_version")),
        tempered=True,  # documented; a server started with SGLANG_RETURN_ORIGINAL_LOGPROB does not say so
    )


def _check_finish(finish: Any) -> None:
    if finish in ("abort", "error"):  # for new weights, or for a fault of the server's own
        raise Unanswered(f"the server ended the request with {finish!r}")
    if finish not in ("stop", "length"):
        raise PolicyRefused(f"the server ended the sample for the reason {str(finish)[:40]!r}, not stop or length")


def _ids(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(value) is int and value >= 0 for value in values):
        raise PolicyRefused("the server's token ids are not whole numbers")
    return tuple(values)


def _numbers(values: Any) -> tuple[float, ...]:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise PolicyRefused("the server's log-probabilities are not numbers")
    return tuple(float(value) for value in values)


def _version(said: Any) -> int | None:
    if said is None or said == "default":  # SGLang before the first hand-over
        return None
    if type(said) is int and said >= 0:
        return said
    if isinstance(said, str) and said.isascii() and said.isdigit():
        return int(said)
    raise PolicyRefused(f"the server's weight_version {str(said)[:40]!r} is no number")


VLLM = Dialect("vllm", "/v1/completions", _vllm_body, _vllm_read)
SGLANG = Dialect("sglang", "/generate", _sglang_body, _sglang_read)
DIALECTS = {dialect.name: dialect for dialect in (VLLM, SGLANG)}
