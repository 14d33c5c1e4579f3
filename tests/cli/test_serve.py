"""`practicum serve`, and `eval` against it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import torch

from practicum.cli.template import template_task
from practicum.errors import PolicyRefused
from practicum.pipeline.run import STATE_FILE, RunState
from practicum.policies.contract import Sampled, SamplingParams
from practicum.policies.http_tokens import TokenPolicy
from practicum.policies.http_weights import load_served_version
from practicum.policies.local.folder import save_folder
from practicum.policies.local.model import Decoder, ModelShape
from practicum.policies.local.saved import files_of
from practicum.policies.local.tiny import tiny_shape, tiny_tokenizer
from practicum.policies.local.tokenizer import Tokenizer
from practicum.tasks.harbor import save_task
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from cli.conftest import Cli

torch.set_num_threads(1)


def save(folder: Path, *, seed: int = 1, context: int = 1024, template: str | None = None) -> Path:
    """A small model as a Hugging Face folder."""
    folder.mkdir(parents=True)
    model = Decoder(replace(tiny_shape(), context=context), seed=seed)
    words = tiny_tokenizer() if template is None else tiny_tokenizer(template)
    save_folder(model, words, folder, model.state_dict())
    return folder


@dataclass
class Serving:
    """A server of its own process."""

    process: subprocess.Popen[str]
    told: dict[str, Any]

    @property
    def url(self) -> str:
        url: str = self.told["url"]
        return url


Serve = Callable[..., Serving]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Runs `practicum serve ARGUMENTS` on a free port until the test ends."""
    with ExitStack() as stack:

        def start(*arguments: str | Path) -> Serving:
            process = subprocess.Popen(
                [sys.executable, "-m", "practicum", "serve", *map(str, arguments), "--port", "0", "--json"],
                env={**os.environ, "OMP_NUM_THREADS": "1", "KEY": "sesame"},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            return Serving(process, json.loads(line))

        yield start


def sample(url: str, *, max_tokens: int = 8, **options: Any) -> Sampled:
    async def once() -> Sampled:
        async with TokenPolicy(url, **options) as policy:
            return await policy.sample([1, 2, 3], SamplingParams(max_tokens, seed=1), session="s")

    return asyncio.run(once())


def test_what_is_under_way_is_answered(serve: Serve, tmp_path: Path) -> None:
    """The address is told, and a server that is told to stop answers what it has begun before it ends."""
    server = serve(save(tmp_path / "small", context=4096), "--grace", "60")
    assert server.told == {"url": server.url, "model": "small", "version": 0}

    async def run() -> Sampled:
        async with TokenPolicy(server.url) as policy:
            asked = asyncio.create_task(policy.sample([1], SamplingParams(600, seed=1), session="s"))
            await busy(server)
            server.process.send_signal(signal.SIGTERM)
            return await asked

    assert len(asyncio.run(run()).ids) == 600
    _, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, err) == (143, "stopped cleanly\n")


def test_the_end_does_not_wait_for_ever(serve: Serve, tmp_path: Path) -> None:
    """What takes longer than the time that is given is given up, and its client told."""
    server = serve(save(tmp_path / "small", context=50_000), "--grace", "1")

    async def run() -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            body = {"prompt": [1], "max_tokens": 49_000, "ignore_eos": True}
            asked = asyncio.create_task(client.post(f"{server.url}/completions", json=body))
            await busy(server)
            server.process.send_signal(signal.SIGTERM)
            assert (await asked).status_code == 503

    asyncio.run(run())
    _, err = server.process.communicate(timeout=60)
    assert server.process.returncode == 143
    assert "stopped cleanly" in err


async def busy(server: Serving) -> None:
    """Wait until the server answers a request."""
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(30):
        health = server.url.replace("/v1", "/health")
        while (await client.get(health)).json()["requests"] == 0:  # noqa: ASYNC110  another process's
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "neither a folder nor a model that is known"),
        (["."], "no tokenizer.json"),
        (["small", "--host", "0.0.0.0"], "anybody who can reach"),
        (["small", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
    ],
)
def test_bad_input(cli: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    """What cannot be served is said, with nothing served before."""
    done = cli("serve", *arguments, "--port", "0")
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_versions_of_a_run(serve: Serve, tmp_path: Path) -> None:
    """A run is served at its best version, goes to another one when told, and every sample says which it was."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").touch()
    words = Tokenizer.train(["some text, some other text"], size=300)
    shape = ModelShape(vocabulary=words.size, layers=1, width=16, heads=2, context=64)
    versions = VersionStore(run / "checkpoints")
    for version in (1, 2):
        model = Decoder(shape, seed=version)
        versions.publish(version, model.state_dict(), files_of(model, words))
        state = json.dumps(RunState(version=version, best_version=1).to_json())
        (versions.path(version) / STATE_FILE).write_text(state)
    server = serve(run, "--api-key-env", "KEY")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "sesame")
        before = sample(server.url, api_key_env="KEY")
        asyncio.run(load_served_version(server.url, 2, api_key_env="KEY"))
        after = sample(server.url, api_key_env="KEY")
        with pytest.raises(PolicyRefused, match="no version 9"):
            asyncio.run(load_served_version(server.url, 9, api_key_env="KEY"))
        with pytest.raises(PolicyRefused, match="--load-from"):
            asyncio.run(load_served_version(server.url, 9, tmp_path, api_key_env="KEY"))
    assert (server.told["version"], before.version, after.version) == (1, 1, 2)
    assert before.logprobs != after.logprobs


def test_weights_from_folders(serve: Serve, tmp_path: Path) -> None:
    """Weights are taken from folders below the one that was named, of the same model, and from nowhere else."""
    save(tmp_path / "out" / "next", seed=2)
    server = serve(save(tmp_path / "small"), "--load-from", tmp_path / "out", "--name", "mine")
    save(tmp_path / "out" / "short", context=64)
    save(tmp_path / "secret", seed=3)
    (tmp_path / "out" / "link").symlink_to(tmp_path / "secret")
    before = sample(server.url, model="mine")
    asyncio.run(load_served_version(server.url, 7, tmp_path / "out" / "next"))
    after = sample(server.url, model="mine")
    assert (before.version, after.version) == (0, 7)
    assert before.logprobs != after.logprobs
    load = server.url + "/load"
    for folder, status in [("secret", 403), ("out", 403), ("out/link", 403), ("out/short", 400), ("out/none", 400)]:
        body = {"version": 8, "folder": str(tmp_path / folder)}
        assert httpx.post(load, json=body, trust_env=False).status_code == status, folder
    assert httpx.post(load, json={"version": 8}, trust_env=False).status_code == 400
    assert sample(server.url).version == 7


def test_eval_by_tokens(serve: Serve, cli: Cli, tmp_path: Path) -> None:
    """A task is attempted by a served model through token ids, and what the options cannot mean is refused."""
    folder = save(tmp_path / "small", context=400)
    server = serve(folder)
    save_task(template_task("mine"), tmp_path / "mine")
    how = ["--policy", server.url, "--api", "tokens", "--tokenizer", folder, "--speech", "fence", "--json"]
    done = cli("eval", "mine", "--samples", "2", *how)
    assert done.code == 0, done.err
    assert (done.document["samples"], done.document["passed"], done.document["invalid"]) == (2, 0, 0)
    wrong = cli("rollout", "mine", "--agent", "policy", "--model", "other", *how)
    assert (wrong.code, wrong.document["error"]["kind"]) == (2, "PolicyRefused")
    assert "no model 'other'; it has small" in wrong.document["error"]["message"]
    server.process.send_signal(signal.SIGINT)
    server.process.communicate(timeout=60)
    assert server.process.returncode == 130
