"""What clients ask of the server, read from JSON.

Owns: `Wanted`, `Said`, `Completion`, `Chat`, `Load`, `Refused` and the readers.
Invariant: a field is honoured, or has the value at which it changes nothing, or the request is refused and the field
named; nothing is ignored.
Must not know: models, connections. No I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST_NAME = 256
_COLDEST, _HOTTEST = 0.01, 100.0  # colder than that (and not 0), logits leave what float32 can hold

# Fields that are not honoured, with the values at which they change nothing; None (JSON null) always is one.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("n", "best_of", "top_p", "repetition_penalty"), (1,)),
    **dict.fromkeys(("min_p", "presence_penalty", "frequency_penalty", "min_tokens", "top_logprobs"), (0,)),
    **dict.fromkeys(("echo", "stream", "use_beam_search"), (False,)),
    **dict.fromkeys(("include_stop_str_in_output", "add_special_tokens"), (False, True)),
    "top_k": (-1, 0),
    "skip_special_tokens": (True,),
    "logit_bias": ({},),
    "stop": ([], ""),
    "suffix": ("",),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "stream_options": (),
    "prompt_logprobs": (),
}


class Refused(Exception):
    """A request that is answered with an error: its HTTP `status`, and the field `param` at fault, if one is."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.retry_after_s = message, status, param, retry_after_s

    def document(self) -> dict[str, Any]:
        """The error as OpenAI's clients read it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.status}}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What both kinds of completion say of sampling. `session` names a conversation whose cache is worth keeping.

    With `own_stops`, the model's own ends of a turn end the sample, beside `stop_ids`.
    """

    model: str | None
    max_tokens: int | None
    temperature: float
    seed: int | None
    stop_ids: tuple[int, ...]
    own_stops: bool
    logprobs: bool
    return_ids: bool
    session: str | None


@dataclass(frozen=True, slots=True)
class Completion:
    """A prompt as text or as ids, to be continued."""

    prompt: str | tuple[int, ...]
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a chat; `role` is system, user, assistant or tool."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that the model is to go on with."""

    messages: tuple[Said, ...]
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Load:
    """New weights: a version of the run that is served, or the folder that holds them."""

    version: int
    folder: str | None


class _Fields:
    """The fields of one request, each taken once."""

    def __init__(self, data: bytes) -> None:
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            raise Refused("the request is not JSON") from None
        if not isinstance(body, dict):
            raise Refused("the request is not a JSON object")
        self._left: dict[str, Any] = body

    def take(self, name: str) -> Any:
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        value = self.take(name)
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME):
            raise Refused(f"{name} is a text of 1 to {_LONGEST_NAME} characters", param=name)
        return value

    def flag(self, name: str) -> bool:
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise Refused(f"{name} is true or false", param=name)
        return bool(value)

    def whole(self, name: str, lowest: int) -> int | None:
        value = self.take(name)
        if value is not None and not (type(value) is int and lowest <= value < 2**63):
            raise Refused(f"{name} is a whole number of at least {lowest}", param=name)
        return value

    def temperature(self) -> float:
        value = self.take("temperature")
        if value is None:
            return 1.0
        if type(value) not in (int, float) or not (value == 0 or _COLDEST <= value <= _HOTTEST):
            raise Refused(f"temperature is 0, or a number from {_COLDEST:g} to {_HOTTEST:g}", param="temperature")
        return float(value)

    def ids(self, name: str) -> tuple[int, ...]:
        value = self.take(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(type(each) is int and 0 <= each < 2**31 for each in value):
            raise Refused(f"{name} is a list of token ids", param=name)
        return tuple(value)

    def end(self) -> None:
        """Raises `Refused` for what was not taken, unless it changes nothing."""
        for name, value in self._left.items():
            if name == "user" or value is None:
                continue
            neutral = _NEUTRAL.get(name, ())
            if value not in neutral:
                short = name[:_LONGEST_NAME]
                only = f" other than as {json.dumps(neutral[0])}" if neutral else ""
                raise Refused(f"{short!r} is not supported by this server{only}", param=short)


def read_completion(data: bytes) -> Completion:
    """The body of POST /v1/completions. Raises `Refused`."""
    fields = _Fields(data)
    prompt = fields.take("prompt")
    if isinstance(prompt, list):
        if not all(type(each) is int and 0 <= each < 2**31 for each in prompt):
            raise Refused("prompt is one text, or one list of token ids", param="prompt")
        prompt = tuple(prompt)
    if not isinstance(prompt, (str, tuple)):
        raise Refused("prompt is one text, or one list of token ids", param="prompt")
    logprobs = fields.whole("logprobs", 0)
    if logprobs:
        raise Refused("logprobs is 0: those of the sampled tokens, and of no others", param="logprobs")
    most = fields.whole("max_tokens", 1)
    return Completion(prompt, _wanted(fields, 16 if most is None else most, logprobs=logprobs is not None))


def read_chat(data: bytes) -> Chat:
    """The body of POST /v1/chat/completions. Raises `Refused`."""
    fields = _Fields(data)
    listed = fields.take("messages")
    if not isinstance(listed, list) or not listed:
        raise Refused("messages is a list of at least one message", param="messages")
    messages = tuple(_message(each) for each in listed)
    if any(each.role == "system" for each in messages[1:]) or messages[-1].role == "assistant":
        raise Refused("a system message comes first, and the last one is not the assistant's", param="messages")
    most, older = fields.whole("max_completion_tokens", 1), fields.whole("max_tokens", 1)
    return Chat(messages, _wanted(fields, older if most is None else most, logprobs=fields.flag("logprobs")))


def read_load(data: bytes) -> Load:
    """The body of POST /v1/load. Raises `Refused`."""
    fields = _Fields(data)
    version = fields.whole("version", 0)
    if version is None:
        raise Refused("version says which weights these are", param="version")
    folder = fields.take("folder")
    if folder is not None and not isinstance(folder, str):
        raise Refused("folder is a path", param="folder")
    fields.end()
    return Load(version, folder)


def _wanted(fields: _Fields, max_tokens: int | None, *, logprobs: bool) -> Wanted:
    wanted = Wanted(
        model=fields.text("model"),
        max_tokens=max_tokens,
        temperature=fields.temperature(),
        seed=fields.whole("seed", 0),
        stop_ids=fields.ids("stop_token_ids"),
        own_stops=not fields.flag("ignore_eos"),
        logprobs=logprobs,
        return_ids=fields.flag("return_token_ids"),
        session=fields.text("session_id"),
    )
    fields.end()
    return wanted


def _message(each: Any) -> Said:
    role = each.get("role") if isinstance(each, dict) else None
    if role not in ("system", "user", "assistant", "tool"):
        raise Refused("a message has the role system, user, assistant or tool", param="messages")
    other = [name for name, value in each.items() if name not in ("role", "content") and value]
    if other:
        raise Refused(
            f"{str(other[0])[:_LONGEST_NAME]!r} of a message is not supported by this server", param="messages"
        )
    content = each.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    if not isinstance(content, str) or (role == "system" and not content):
        raise Refused("the content of a message is text", param="messages")
    return Said(role, content)
