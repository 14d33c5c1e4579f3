"""The chat client against a real server on a real socket."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from practicum.errors import ConfigError, PolicyError, PolicyRefused
from practicum.policies.contract import Message, Sampled, SamplingParams
from practicum.policies.http import ChatPolicy
from practicum.policies.protocol import SYSTEM_PROMPT
from practicum.policies.text import END, ByteRenderer

renderer = ByteRenderer()
HANG = b"hang"


@dataclass
class Endpoint:
    """Answers with `answers` in turn, the last one for ever, and keeps what it was asked."""

    answers: list[tuple[int, bytes]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)


def completion(text: Any, finish: str = "stop") -> tuple[int, bytes]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return 200, json.dumps({"choices": [choice]}).encode()


@contextmanager
def serving(*answers: tuple[int, bytes]) -> Iterator[Endpoint]:
    endpoint = Endpoint(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            endpoint.asked.append({"path": self.path, **json.loads(body)})
            endpoint.headers.append(dict(self.headers.items()))
            status, data = endpoint.answers.pop(0) if len(endpoint.answers) > 1 else endpoint.answers[0]
            if data == HANG:
                endpoint.released.wait(10)
                self.close_connection = True
                return
            if status == 0:
                # The connection breaks before an answer.
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield endpoint
        finally:
            endpoint.released.set()
            server.shutdown()
            thread.join()


def ask(url: str, *, max_tokens: int = 1000, **options: Any) -> Sampled:
    prompt = renderer.start([Message("task", "fix it"), Message("assistant", "<bash>ls"), Message("observation", "é")])

    async def once() -> Sampled:
        async with ChatPolicy(url, "m", first_delay_s=0.01, **options) as policy:
            with policy.session("s"):
                return await policy.sample(prompt, SamplingParams(max_tokens, 0.5, seed=3), session="s")

    return asyncio.run(once())


def test_the_endpoint_is_sent_the_conversation_and_its_answer_becomes_ids() -> None:
    """Ids go in and come out; between them travel exactly the messages, with the protocol explained first."""
    with serving(completion("<submit> ü")) as endpoint:
        sampled = ask(endpoint.url)
    assert renderer.decode(sampled.ids) == "<submit> ü"
    assert sampled.ids[-1] == END
    assert (sampled.stop_reason, sampled.version, len(sampled.logprobs)) == ("stop", -1, len(sampled.ids))
    asked = endpoint.asked[0]
    assert asked["path"] == "/v1/chat/completions"
    assert (asked["model"], asked["temperature"], asked["seed"], asked["max_tokens"]) == ("m", 0.5, 3, 1000)
    assert [(m["role"], m["content"]) for m in asked["messages"]] == [
        ("system", SYSTEM_PROMPT),
        ("user", "fix it"),
        ("assistant", "<bash>ls"),
        ("user", "é"),
    ]


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bearer token comes from the environment, and a server that quotes it does not bring it into an error."""
    monkeypatch.setenv("TEST_KEY", "sesame-open")
    with serving((401, b"bad key sesame-open")) as endpoint, pytest.raises(PolicyRefused, match="401") as caught:
        ask(endpoint.url, api_key_env="TEST_KEY")
    assert endpoint.headers[0]["Authorization"] == "Bearer sesame-open"
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("status", [500, 503, 429, 0])
def test_passing_failures_are_tried_again(status: int) -> None:
    """A busy or broken server, or a connection that breaks, is asked again."""
    with serving((status, b"later"), (status, b"later"), completion("<submit>")) as endpoint:
        assert renderer.decode(ask(endpoint.url).ids) == "<submit>"
    assert len(endpoint.asked) == 3


def test_a_server_that_stays_broken_is_an_infrastructure_fault() -> None:
    """After its tries the policy has not answered, which masks the attempt."""
    with serving((500, b"no")) as endpoint, pytest.raises(PolicyError, match="3 tries: status 500") as caught:
        ask(endpoint.url, tries=3)
    assert caught.value.category == "infrastructure"
    assert len(endpoint.asked) == 3


def test_a_server_that_hangs_is_given_up_at_the_deadline() -> None:
    """No wait is longer than the deadline."""
    with serving((200, HANG)) as endpoint, pytest.raises(PolicyError, match=r"within 0\.2 s"):
        ask(endpoint.url, deadline_s=0.2)


def test_a_server_that_is_not_there_is_an_infrastructure_fault() -> None:
    """A refused connection names what happened."""
    with serving(completion("")) as endpoint:
        url = endpoint.url
    with pytest.raises(PolicyError, match="ConnectError"):
        ask(url, tries=2)


@pytest.mark.parametrize(
    ("status", "data"),
    [
        (400, b"context too long"),
        (404, b""),
        (302, b""),
        (200, b"not json"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"choices": []}'),
        (200, b'{"choices": [{"message": {"content": 3}}]}'),
        (200, b"[" * 200_000),
        (200, b"\xff\xfe\x00"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(status: int, data: bytes) -> None:
    """A refusal, or a reply that is no chat completion, is not asked for again and says what came."""
    with serving((status, data)) as endpoint, pytest.raises(PolicyRefused):
        ask(endpoint.url)
    assert len(endpoint.asked) == 1


def test_odd_text_is_data() -> None:
    """No content, NUL bytes and lone surrogates all become ids."""
    with serving(completion(None), completion("a\0b"), completion("\ud800")) as endpoint:
        assert ask(endpoint.url).ids == (END,)
        assert renderer.decode(ask(endpoint.url).ids) == "a\0b"
        assert ask(endpoint.url).ids[-1] == END


def test_a_reply_is_cut_at_the_budget() -> None:
    """A reply longer than asked for counts as cut by length, whether the server or the budget cut it."""
    with serving(completion("abcdef"), completion("abc", "length")) as endpoint:
        cut = ask(endpoint.url, max_tokens=4)
        assert (renderer.decode(cut.ids), len(cut.ids), cut.stop_reason) == ("abcd", 4, "length")
        assert ask(endpoint.url).stop_reason == "length"


def test_a_wrong_address_or_a_missing_key_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad configuration is found before the first attempt."""
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(ConfigError, match="not an http address"):
        ask("ftp://host/v1")
    with pytest.raises(ConfigError, match="cannot be used"):
        ask("http://host:port/v1")
    with pytest.raises(ConfigError, match="TEST_KEY"):
        ask("http://host/v1", api_key_env="TEST_KEY")


def test_it_may_not_be_trained_on() -> None:
    """A chat endpoint does not say which ids it sampled, so its attempts are for evaluation only."""
    assert ChatPolicy.trainable is False
