"""The client for training against servers that keep to vLLM's and SGLang's documents, and some that do not."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from practicum.errors import ConfigError, PolicyError, PolicyRefused
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.http_tokens import Described, TokenPolicy
from practicum.policies.http_weights import (
    load_served_version,
    load_sglang_folder,
    load_vllm_adapter,
    unload_vllm_adapter,
)

PROMPT = [5, 6, 7]
PARAMS = SamplingParams(4, 1.0, (9,), seed=3)

# What vLLM answers to a completion of ids (fields that no client reads are left out).
VLLM: Mapping[str, Any] = {
    "id": "cmpl-1",
    "object": "text_completion",
    "model": "base",
    "choices": [
        {
            "index": 0,
            "text": " a b",
            "logprobs": {
                "tokens": [" a", " b", ""],
                "token_logprobs": [-0.5, -1.25, -0.0625],
                "top_logprobs": [{}] * 3,
            },
            "finish_reason": "stop",
            "stop_reason": 9,
            "prompt_token_ids": PROMPT,
            "token_ids": [1, 2, 9],
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
}
# What SGLang answers to /generate.
SGLANG: Mapping[str, Any] = {
    "text": " a b",
    "output_ids": [1, 2, 9],
    "meta_info": {
        "id": "r1",
        "finish_reason": {"type": "stop", "matched": 9},
        "prompt_tokens": 3,
        "completion_tokens": 3,
        "weight_version": "default",
        "output_token_logprobs": [[-0.5, 1, None], [-1.25, 2, None], [-0.0625, 9, None]],
    },
}


@dataclass
class Server:
    """Answers each path with a status and a document (bytes: as they are), and keeps what it was asked."""

    answers: dict[str, list[tuple[int, Any]]]
    asked: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(**answers: Any) -> Iterator[Server]:
    """`answers` by the last word of the path: a document, or pairs of a status and one, the last for ever."""
    listed = {name: given if isinstance(given, list) else [(200, given)] for name, given in answers.items()}
    listed.setdefault("models", [(200, {"data": [{"id": "base", "max_model_len": 77}]})])
    server = Server(listed)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            server.asked.append((self.path, body))
            turns = server.answers.get(self.path.rpartition("/")[2], [(404, {"error": "no such path"})])
            status, document = turns.pop(0) if len(turns) > 1 else turns[0]
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_port}"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def ask(url: str, params: SamplingParams = PARAMS, **options: Any) -> Sampled:
    async def once() -> Sampled:
        async with TokenPolicy(url, "base", first_delay_s=0.01, **options) as policy:
            with policy.session("s"):
                return await policy.sample(PROMPT, params, session="s")

    return asyncio.run(once())


def vllm(change: Callable[[Any], object]) -> dict[str, Any]:
    """vLLM's answer with its choice changed."""
    answer = copy.deepcopy(dict(VLLM))
    change(answer["choices"][0])
    return answer


def sglang(change: Callable[[Any], object]) -> dict[str, Any]:
    """SGLang's answer, changed."""
    answer = copy.deepcopy(dict(SGLANG))
    change(answer)
    return answer


@pytest.mark.parametrize("ending", ["", "/v1", "/v1/"])
def test_vllm(ending: str) -> None:
    """Ids go in and come out with their log-probabilities; nothing of the model's own defaults changes the sampling."""
    with serving(completions=VLLM) as server:
        sampled = ask(server.url + ending, version=4)
    assert sampled == Sampled((1, 2, 9), (-0.5, -1.25, -0.0625), "stop", 4)
    path, body = server.asked[0]
    assert path == "/v1/completions"
    assert (body["model"], body["prompt"], body["max_tokens"], body["seed"]) == ("base", PROMPT, 4, 3)
    assert (body["stop_token_ids"], body["ignore_eos"], body["logprobs"], body["return_token_ids"]) == (
        [9],
        True,
        0,
        True,
    )
    neutral = {"top_p": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0}
    assert body.items() >= neutral.items()


def test_sglang() -> None:
    """The same by SGLang's own way."""
    with serving(generate=SGLANG) as server:
        sampled = ask(server.url + "/v1", dialect="sglang", version=4)
    assert sampled == Sampled((1, 2, 9), (-0.5, -1.25, -0.0625), "stop", 4)
    path, body = server.asked[0]
    assert path == "/generate"
    assert (body["input_ids"], body["return_logprob"]) == (PROMPT, True)
    sampling = body["sampling_params"]
    assert (sampling["max_new_tokens"], sampling["sampling_seed"], sampling["stop_token_ids"]) == (4, 3, [9])
    assert (sampling["top_p"], sampling["top_k"], sampling["temperature"]) == (1, -1, 1)


def test_versions() -> None:
    """A server that tells the version of its weights is believed; else it is the one that was configured."""
    with serving(completions=[(200, dict(VLLM) | {"weight_version": 12}), (200, VLLM)]) as server:
        assert [ask(server.url, version=4).version, ask(server.url, version=4).version] == [12, 4]
    with serving(generate=sglang(lambda answer: answer["meta_info"].update(weight_version="7"))) as server:
        assert ask(server.url, dialect="sglang").version == 7
    unknown = sglang(lambda answer: answer["meta_info"].update(weight_version="best"))
    with serving(generate=unknown) as server, pytest.raises(PolicyRefused, match="'best' is no number"):
        ask(server.url, dialect="sglang")


def test_a_model_and_its_version_go_together() -> None:
    """What was asked of one adapter keeps its version, though another is used by the time the answer comes."""
    with serving(completions=VLLM) as server:

        async def run() -> list[Sampled]:
            async with TokenPolicy(server.url, "run-1", version=1) as policy:
                first = asyncio.create_task(policy.sample(PROMPT, PARAMS, session="a"))
                await asyncio.sleep(0)
                policy.use("run-2", 2)
                return [await first, await policy.sample(PROMPT, PARAMS, session="b")]

        assert [sampled.version for sampled in asyncio.run(run())] == [1, 2]
    assert [body["model"] for _, body in server.asked] == ["run-1", "run-2"]


LIES: list[tuple[str, dict[str, Any]]] = [
    ("without token ids", vllm(lambda c: c.pop("token_ids"))),
    ("without token ids", vllm(lambda c: c.update(token_ids=None))),
    ("omits the log-probabilities", vllm(lambda c: c.update(logprobs=None))),
    ("omits the log-probabilities", vllm(lambda c: c["logprobs"].pop("token_logprobs"))),
    ("2 log-probabilities for 3 ids", vllm(lambda c: c["logprobs"]["token_logprobs"].pop())),
    ("not numbers", vllm(lambda c: c["logprobs"].update(token_logprobs=[None, -1, -1]))),
    ("not numbers", vllm(lambda c: c["logprobs"].update(token_logprobs=["-1", -1, -1]))),
    ("not a finite number", vllm(lambda c: c["logprobs"].update(token_logprobs=[float("nan"), -1, -1]))),
    ("not a finite number", vllm(lambda c: c["logprobs"].update(token_logprobs=[float("-inf"), -1, -1]))),
    ("not a finite number", vllm(lambda c: c["logprobs"].update(token_logprobs=[-9999.0, -1, -1]))),
    ("not a finite number", vllm(lambda c: c["logprobs"].update(token_logprobs=[0.5, -1, -1]))),
    ("whole numbers", vllm(lambda c: c.update(token_ids=["1", 2, 9]))),
    ("whole numbers", vllm(lambda c: c.update(token_ids=[True, 2, 9]))),
    ("whole numbers", vllm(lambda c: c.update(token_ids=[-1, 2, 9]))),
    ("other ids than the prompt", vllm(lambda c: c.update(prompt_token_ids=[1, *PROMPT]))),
    ("other ids than the prompt", vllm(lambda c: c.update(prompt_token_ids=[5, 6, 8]))),
    ("0 ids", vllm(lambda c: (c.update(token_ids=[]), c["logprobs"].update(token_logprobs=[])))),
    (
        "5 ids where 1 to 4",
        vllm(lambda c: (c.update(token_ids=[1] * 5), c["logprobs"].update(token_logprobs=[-1] * 5))),
    ),
    ("went on after an id", vllm(lambda c: c.update(token_ids=[9, 2, 9]))),
    ("leaves out the id", vllm(lambda c: c.update(token_ids=[1, 2, 3]))),
    ("cut a sample at 3 of 4", vllm(lambda c: c.update(finish_reason="length", token_ids=[1, 2, 3]))),
    ("reason 'tool_calls'", vllm(lambda c: c.update(finish_reason="tool_calls"))),
    ("reason 'None'", vllm(lambda c: c.update(finish_reason=None))),
    ("not a completion", {"choices": []}),
    ("not a completion", {"object": "error"}),
]
SGLANG_LIES: list[tuple[str, dict[str, Any]]] = [
    ("omits the log-probabilities", sglang(lambda a: a["meta_info"].pop("output_token_logprobs"))),
    ("are not those", sglang(lambda a: a["meta_info"]["output_token_logprobs"].pop())),
    ("are not those", sglang(lambda a: a.update(output_ids=[1, 3, 9]))),
    ("are not \\[log-prob", sglang(lambda a: a["meta_info"].update(output_token_logprobs=[-1, -2, -3]))),
    ("not numbers", sglang(lambda a: a["meta_info"]["output_token_logprobs"][0].__setitem__(0, None))),
    ("other ids than the prompt", sglang(lambda a: a["meta_info"].update(prompt_tokens=4))),
    ("leaves out the id", sglang(lambda a: (a.pop("output_ids"), a["meta_info"]["output_token_logprobs"].pop()))),
    ("no answer of /generate", {"text": "only"}),
    ("no answer of /generate", {"meta_info": {"finish_reason": "stop"}}),
]


@pytest.mark.parametrize(("said", "answer"), LIES)
def test_what_vllm_must_not_say(said: str, answer: dict[str, Any]) -> None:
    """A sample that is not complete and exact is refused with the reason, and not asked for again."""
    with serving(completions=answer) as server, pytest.raises(PolicyRefused, match=said):
        ask(server.url)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("said", "answer"), SGLANG_LIES)
def test_what_sglang_must_not_say(said: str, answer: dict[str, Any]) -> None:
    """The same for SGLang."""
    with serving(generate=answer) as server, pytest.raises(PolicyRefused, match=said):
        ask(server.url, dialect="sglang")
    assert len(server.asked) == 1


def test_a_model_ends_by_an_id_of_its_own() -> None:
    """SGLang ends a sample by the model's own end, too, and says which id it was: nothing is missing then."""
    ended = sglang(lambda a: (a["meta_info"]["output_token_logprobs"][2].__setitem__(1, 8), a.pop("output_ids")))
    ended["meta_info"]["finish_reason"]["matched"] = 8
    with serving(generate=ended) as server:
        assert ask(server.url, dialect="sglang").ids == (1, 2, 8)


def test_a_sample_cut_by_length() -> None:
    """A sample of the length that was asked for is one, whatever its last id."""
    cut = vllm(lambda c: (c.update(token_ids=[1, 2, 3, 4], finish_reason="length"),
                          c["logprobs"].update(token_logprobs=[-1] * 4)))  # fmt: skip
    with serving(completions=cut) as server:
        assert ask(server.url).stop_reason == "length"


def test_temperatures() -> None:
    """vLLM's log-probabilities are those before the temperature unless it is told otherwise: at any but 0 and 1 they
    are not those of what was sampled from."""
    warm, said = SamplingParams(4, 0.7, (9,)), r"at temperature 0\.7"
    with serving(completions=VLLM) as server:
        with pytest.raises(PolicyRefused, match=said):
            ask(server.url, warm)
        assert ask(server.url, warm, tempered=True).ids == (1, 2, 9)
        assert ask(server.url, SamplingParams(4, 0.0, (9,))).ids == (1, 2, 9)
    with serving(completions=dict(VLLM) | {"logprobs_mode": "processed_logprobs"}) as server:
        assert ask(server.url, warm).ids == (1, 2, 9)
    raw = dict(VLLM) | {"logprobs_mode": "raw_logprobs"}
    with serving(completions=raw) as server, pytest.raises(PolicyRefused, match=said):
        ask(server.url, warm, tempered=True)


def test_an_interrupted_request_is_asked_again() -> None:
    """Servers end what they were sampling when new weights come; that is no sample."""
    aborted = sglang(lambda a: a["meta_info"].update(finish_reason={"type": "abort", "message": "paused"}))
    with serving(generate=[(200, aborted), (503, {}), (200, SGLANG)]) as server:
        assert ask(server.url, dialect="sglang").ids == (1, 2, 9)
    assert len(server.asked) == 3
    ended = "2 tries: the server ended the request with 'abort'"
    always = vllm(lambda c: c.update(finish_reason="abort"))
    with serving(completions=always) as server, pytest.raises(PolicyError, match=ended):
        ask(server.url, tries=2)


@pytest.mark.parametrize(("status", "data"), [(400, {"error": "too long"}), (404, {}), (200, b"text"), (200, [])])
def test_what_cannot_be_used_is_refused_at_once(status: int, data: Any) -> None:
    """A refusal, or an answer that is no document, is not asked for again."""
    with serving(completions=[(status, data)]) as server, pytest.raises(PolicyRefused):
        ask(server.url)
    assert len(server.asked) == 1


def describe(url: str, model: str = "") -> Described:
    async def once() -> Described:
        async with TokenPolicy(url, model) as policy:
            return await policy.describe()

    return asyncio.run(once())


def test_which_model() -> None:
    """Without a name, the only model of the server is asked; among several, one has to be named."""
    with serving(completions=VLLM) as server:
        assert describe(server.url) == Described("base", 77)
        with pytest.raises(PolicyRefused, match="no model 'other'; it has base"):
            describe(server.url, "other")
    several = {"data": [{"id": "base", "max_model_len": 77}, {"id": "run-1", "parent": "base"}, {"id": "x"}]}
    with serving(models=several) as server:
        assert describe(server.url, "run-1") == Described("run-1", 77)
        assert describe(server.url, "x") == Described("x", None)
        with pytest.raises(PolicyRefused, match="several models: base, run-1, x"):
            describe(server.url)
    with serving(models={"data": []}) as server, pytest.raises(PolicyRefused, match="no models"):
        describe(server.url)


def test_a_wrong_configuration() -> None:
    """What cannot be asked is found before the first attempt."""
    with pytest.raises(ConfigError, match="no dialect 'tgi'"):
        TokenPolicy("http://host", dialect="tgi")
    with pytest.raises(ConfigError, match="not an http address"):
        TokenPolicy("host:8000")
    assert TokenPolicy.trainable is True


def test_an_adapter_is_handed_to_vllm(tmp_path: Path) -> None:
    """The adapter's folder is named as the server sees it, and a refusal is told."""
    done = b"Success: LoRA adapter 'run-3' added successfully."
    with serving(load_lora_adapter=[(200, done), (400, {"error": {"message": "already been loaded"}})],
                 unload_lora_adapter=[(200, b"Success")]) as server:  # fmt: skip
        asyncio.run(load_vllm_adapter(server.url + "/v1", "run-3", tmp_path))
        with pytest.raises(PolicyRefused, match="already been loaded"):
            asyncio.run(load_vllm_adapter(server.url, "run-3", tmp_path))
        asyncio.run(unload_vllm_adapter(server.url, "run-3"))
    assert server.asked == [
        ("/v1/load_lora_adapter", {"lora_name": "run-3", "lora_path": str(tmp_path)}),
        ("/v1/load_lora_adapter", {"lora_name": "run-3", "lora_path": str(tmp_path)}),
        ("/v1/unload_lora_adapter", {"lora_name": "run-3"}),
    ]


def test_a_folder_is_handed_to_sglang(tmp_path: Path) -> None:
    """The server is told the folder and the version; only `success` is one."""
    answers = [(200, {"success": True, "message": "ok"}), (200, {"success": False, "message": "no such file"})]
    with serving(update_weights_from_disk=answers) as server:
        asyncio.run(load_sglang_folder(server.url, tmp_path, 5))
        with pytest.raises(PolicyRefused, match="no such file"):
            asyncio.run(load_sglang_folder(server.url, tmp_path, 6))
    assert server.asked[0] == (
        "/update_weights_from_disk",
        {"model_path": str(tmp_path), "weight_version": "5", "flush_cache": True},
    )


def test_a_hand_over_is_not_repeated() -> None:
    """A server that fails at it is not told again, since nobody knows what it has heard."""
    with serving(load=[(500, {})]) as server, pytest.raises(PolicyError, match="1 tries: status 500"):
        asyncio.run(load_served_version(server.url, 5))
    assert len(server.asked) == 1
    with serving(load={"version": 4}) as server, pytest.raises(PolicyRefused, match="did not take version 5"):
        asyncio.run(load_served_version(server.url, 5))
