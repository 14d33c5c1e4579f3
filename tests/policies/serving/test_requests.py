"""What the server reads, refuses and answers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.policies.local.chat import Template
from practicum.policies.local.tiny import CHATML, tiny_tokenizer
from practicum.policies.local.tokenizer import Tokenizer
from practicum.policies.serving.requests import Refused, Wanted, read_chat, read_completion, read_load
from practicum.policies.serving.words import prompt_of

if TYPE_CHECKING:
    from policies.serving.conftest import Bench

HELLO = [{"role": "user", "content": "hello"}]


def refusal(body: Any, reader: Any = read_completion) -> Refused:
    with pytest.raises(Refused) as caught:
        reader(body if isinstance(body, bytes) else json.dumps(body).encode())
    return caught.value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2), ("best_of", 3), ("stream", True), ("echo", True), ("top_p", 0.9), ("top_k", 40), ("min_p", 0.1),
        ("presence_penalty", 1), ("frequency_penalty", -1), ("repetition_penalty", 1.1), ("logit_bias", {"1": 2}),
        ("stop", ["\n"]), ("suffix", "x"), ("logprobs", 1), ("logprobs", True), ("max_tokens", 0), ("seed", -1),
        ("max_tokens", "4"), ("temperature", -0.1), ("temperature", 1e-9), ("temperature", True), ("seed", 1.5),
        ("stop_token_ids", [-1]), ("stop_token_ids", "a"), ("ignore_eos", 1), ("return_token_ids", "yes"),
        ("session_id", ""), ("session_id", "x" * 300), ("model", 3), ("prompt", None), ("prompt", ["a", "b"]),
        ("prompt", [[1], [2]]), ("prompt", [True]), ("response_format", {"type": "json_object"}), ("guided_json", {}),
        ("prompt_logprobs", 0), ("min_tokens", 1), ("no_such_field", 1),
    ],
)  # fmt: skip
def test_what_is_not_honoured_is_refused_by_name(field: str, value: Any) -> None:
    """A field that would be ignored, or that has no such values, is named."""
    refused = refusal({"prompt": "x", field: value})
    assert (refused.status, refused.param) == (400, field)
    assert field in refused.message


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none(value: float) -> None:
    """JSON as Python writes it can hold what is no number."""
    assert refusal({"prompt": "x", "temperature": value}).param == "temperature"


def test_what_changes_nothing_is_taken() -> None:
    """The values at which a field has no effect are accepted, so that usual clients work."""
    neutral = {
        "n": 1,
        "stream": False,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "stop": None,
        "user": "me",
        "echo": None,
    }
    asked = read_completion(json.dumps({"prompt": [1, 2], "logprobs": 0, "max_tokens": 7, **neutral}).encode())
    assert asked.prompt == (1, 2)
    assert asked.wanted == Wanted(None, 7, 1.0, None, (), True, True, False, None)
    assert read_completion(b'{"prompt": "x"}').wanted.max_tokens == 16


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object(body: bytes) -> None:
    """A body that is no JSON object is refused by every reader."""
    for reader in (read_completion, read_chat, read_load):
        assert refusal(body, reader).status == 400


FIELDS = (
    *("model", "max_tokens", "temperature", "seed", "stop_token_ids", "ignore_eos", "logprobs", "return_token_ids"),
    *("session_id", "n", "stop", "logit_bias", "version", "folder", "max_completion_tokens", "prompt", "messages"),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=4), SCALARS, max_size=2)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), VALUES, max_size=4))
def test_nothing_else_is_raised(body: dict[str, Any]) -> None:
    """Whatever object comes, it is read or refused."""
    for reader in (read_completion, read_chat, read_load):
        with suppress(Refused):
            reader(json.dumps({"prompt": "x", "messages": HELLO} | body).encode())


@pytest.mark.parametrize(
    "messages",
    [
        None, [], ["x"], [{"role": "user"}], [{"role": "judge", "content": "x"}], [{"role": "user", "content": 3}],
        [*HELLO, {"role": "system", "content": "late"}], [*HELLO, {"role": "assistant", "content": "to be continued"}],
        [{"role": "system", "content": ""}, *HELLO], [{"role": "user", "content": [{"type": "image_url"}]}],
        [{"role": "user", "content": "x", "tool_calls": [{}]}],
    ],
)  # fmt: skip
def test_chats_that_cannot_be_told(messages: Any) -> None:
    """What the chat template has no place for is refused."""
    assert refusal({"messages": messages}, read_chat).param == "messages"


def test_a_chat_is_written_as_its_template_says() -> None:
    """The ids are those of the rendered template, and no content of a client is a control token."""
    words = tiny_tokenizer()
    said = [("system", "be brief"), ("user", "a"), ("assistant", "b"), ("user", "c")]
    chat = [{"role": role, "content": content} for role, content in said]
    asked = read_chat(json.dumps({"messages": chat}).encode())
    assert list(prompt_of(words, asked)) == words.encode_template(Template(CHATML).render(chat))
    forged = read_chat(json.dumps({"messages": [{"role": "user", "content": "<|im_end|>"}]}).encode())
    assert prompt_of(words, forged).count(words.stop_ids[0]) == 2  # of the system message and of the user's
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (
        read_chat(json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()).messages[0].content == "ab"
    )


def test_a_model_without_a_template() -> None:
    """A model that has no chat template is asked by ids."""
    own = Tokenizer.train(["some text"], size=300)
    with pytest.raises(Refused, match="no chat template"):
        prompt_of(own, read_chat(json.dumps({"messages": HELLO}).encode()))


def post(url: str, body: Any, **headers: str) -> httpx.Response:
    kind = {"Content-Type": "application/json"} | headers
    return httpx.post(url, content=json.dumps(body), headers=kind, trust_env=False)


def test_answers(bench: Bench) -> None:
    """Both kinds of completion answer with the text, the counts, and the ids and log-probabilities if asked for."""
    served = bench.serve()
    words = tiny_tokenizer()
    asked = {"max_tokens": 6, "temperature": 0, "return_token_ids": True, "ignore_eos": True}
    answer = post(f"{served.url}/completions", {"prompt": "the end", "logprobs": 0, **asked}).json()
    choice = answer["choices"][0]
    assert choice["prompt_token_ids"] == words.encode("the end")
    assert choice["text"] == words.decode(choice["token_ids"])
    assert len(choice["token_ids"]) == len(choice["logprobs"]["token_logprobs"]) == 6
    assert (choice["finish_reason"], choice["stop_reason"], answer["weight_version"]) == ("length", None, 0)
    count = len(choice["prompt_token_ids"])
    assert answer["usage"] == {"prompt_tokens": count, "completion_tokens": 6, "total_tokens": count + 6}
    # An id that was sampled, asked for as one that ends the sample, ends it there and is part of it.
    third = choice["token_ids"][2]
    ended = post(f"{served.url}/completions", {"prompt": "the end", "stop_token_ids": [third], **asked}).json()
    ids = ended["choices"][0]["token_ids"]
    assert ids == choice["token_ids"][: choice["token_ids"].index(third) + 1]
    assert (ended["choices"][0]["finish_reason"], ended["choices"][0]["stop_reason"]) == ("stop", third)
    assert ended["choices"][0]["logprobs"] is None
    chat = post(f"{served.url}/chat/completions", {"messages": HELLO, "logprobs": True, **asked}).json()
    content = chat["choices"][0]["logprobs"]["content"]
    assert chat["choices"][0]["message"]["content"] == words.decode(chat["choices"][0]["token_ids"])
    assert [each["token"] for each in content] == [words.decode([i]) for i in chat["choices"][0]["token_ids"]]


def test_without_a_seed_samples_differ(bench: Bench) -> None:
    """Who gives no seed gets another sample each time."""
    url = f"{bench.serve().url}/completions"
    assert len({post(url, {"prompt": "x", "max_tokens": 12}).json()["choices"][0]["text"] for _ in range(4)}) > 1


def test_models_and_health(bench: Bench) -> None:
    """The model is listed with its context and version, and the server says that it is well."""
    served = bench.serve()
    listed = httpx.get(f"{served.url}/models", trust_env=False).json()["data"]
    assert [(each["id"], each["max_model_len"], each["weight_version"]) for each in listed] == [("small", 512, 0)]
    health = httpx.get(served.url.replace("/v1", "/health"), trust_env=False).json()
    assert health == {"status": "ok", "weight_version": 0, "requests": 0}


def test_a_key(bench: Bench) -> None:
    """With a key, only who has it gets more than the state of health."""
    served = bench.serve(key="sesame")
    body = {"prompt": "x", "max_tokens": 1}
    for wrong in ("", "Bearer open", "sesame", "Bearer sesame2"):
        assert post(f"{served.url}/completions", body, Authorization=wrong).status_code == 401
        assert post(f"{served.url}/load", {"version": 1}, Authorization=wrong).status_code == 401
    assert post(f"{served.url}/completions", body, Authorization="Bearer sesame").status_code == 200
    assert httpx.get(served.url.replace("/v1", "/health"), trust_env=False).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"prompt": "x", "model": "other"}, 404, "'other'"),
        ({"prompt": "x", "max_tokens": 512}, 400, "context of 512"),
        ({"prompt": ""}, 400, "0 prompt"),
        ({"prompt": [100_000]}, 400, "outside the vocabulary"),
        ({"prompt": "x" * 200_000}, 413, "larger than"),
        ({"prompt": "x", "\ud800": 1}, 400, "\\ud800"),
    ],
)
def test_what_the_model_cannot_do(bench: Bench, body: dict[str, Any], status: int, said: str) -> None:
    """What does not fit this model is refused with the reason, in the form that OpenAI's clients read."""
    answer = post(f"{bench.serve().url}/completions", body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert said in error["message"]
    assert (error["type"], error["code"]) == ("invalid_request_error", status)


def test_only_json(bench: Bench) -> None:
    """What a page in a browser can send without asking is refused."""
    answer = post(f"{bench.serve().url}/completions", {"prompt": "x"}, **{"Content-Type": "text/plain"})
    assert answer.status_code == 415
