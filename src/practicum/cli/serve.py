"""`practicum serve`: a local model behind an OpenAI-compatible address.

Owns: the command `serve`.
Invariant: the address is told once it can be used; nothing but what the options allow can be loaded later.
Must not know: HTTP, how models sample.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from practicum.cli.output import JsonOption, emit
from practicum.errors import ConfigError

if TYPE_CHECKING:
    from practicum.policies.local.generator import Generator
    from practicum.policies.serving.app import Weights
    from practicum.policies.serving.words import Words


@dataclass(frozen=True)
class _Opened:
    name: str
    generator: Generator
    words: Words
    weights: Weights | None


def serve(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A Hugging Face folder, smollm2, or the folder of a run.")
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one, which is printed.")] = 8000,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The model's name for clients.")] = None,
    context: Annotated[int | None, typer.Option(min=2, help="Longest sequence, in tokens; the model's own.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="Sequences sampled side by side.")] = 64,
    queue: Annotated[int, typer.Option(min=1, help="Requests at a time; more are told to come back (429).")] = 256,
    kept: Annotated[int, typer.Option(min=0, help="Conversations whose caches are kept between requests.")] = 32,
    deadline: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Longest time for one request.")] = 600.0,
    grace: Annotated[int, typer.Option(min=0, metavar="SECONDS", help="At the end, time for what is under way.")] = 10,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="VAR", help="Environment variable that holds the key.")
    ] = None,
    load_from: Annotated[
        Path | None, typer.Option(metavar="DIR", help="POST /v1/load may take weights from folders below DIR.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve MODEL until Ctrl-C or SIGTERM: /v1/models, /v1/completions, /v1/chat/completions, /v1/load, /health.

    Other than most, /v1/completions takes and gives token ids with their log-probabilities, in vLLM's dialect: it is
    what `--api tokens` of `eval` and `rollout` asks.
    """
    key = _key(api_key_env)
    try:
        from practicum.policies.serving.run import address_of, listen
        from practicum.policies.serving.run import serve as run_server
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise ConfigError(
            f"serving needs {error.name}, which is not installed",
            fix="pip install -c constraints.txt -e '.[train,serve]'",
        ) from error

    with listen(host, port, has_key=key is not None) as listening:
        opened = _open_run(Path(model), context) if (Path(model) / "config.toml").is_file() else _open(model, context)
        from practicum.policies.local.engine import LocalEngine
        from practicum.policies.serving.app import Limits, Service

        opened.generator.max_rows = rows
        engine = LocalEngine(opened.generator, continuous=True)
        service = Service(
            engine, opened.words, name or opened.name,
            weights=_weights_of(opened, load_from), limits=Limits(queue, deadline, kept), key=key,
        )  # fmt: skip
        address, version = address_of(listening), opened.generator.version
        emit(
            {"url": address, "model": service.name, "version": version},
            f"serving {service.name} (version {version}) at {address}; Ctrl-C ends it",
            as_json=as_json,
        )
        run_server(service.app(), listening, grace_s=grace, backlog=4 * queue + 16)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"environment variable {variable} is not set", fix=f"export {variable}=…")
    return key


def _open(model: str, context: int | None) -> _Opened:
    from practicum.pipeline.agents import models_cache
    from practicum.policies.local.known import KNOWN, model_folder

    folder = model_folder(model, models_cache())
    from practicum.policies.local.folder import load_folder
    from practicum.policies.local.generator import Generator

    decoder, tokenizer = load_folder(folder, context=context)
    return _Opened(model if model in KNOWN else folder.resolve().name, Generator(decoder), tokenizer, None)


def _open_run(run: Path, context: int | None) -> _Opened:
    from practicum.pipeline.trained import chosen_version
    from practicum.policies.local.chat import ChatRenderer
    from practicum.policies.local.generator import Generator
    from practicum.policies.local.renderer import LocalRenderer
    from practicum.policies.local.saved import Saved
    from practicum.policies.serving.requests import Load, Refused
    from practicum.weights.store import VersionStore

    if context is not None:
        raise ConfigError("--context goes with a model folder; a run has the one it was trained with")
    versions = VersionStore(run / "checkpoints")
    saved = Saved(versions.read, versions.fetch)
    version, _ = chosen_version(run)
    decoder, renderer = saved.build(version)
    if not isinstance(renderer, (ChatRenderer, LocalRenderer)):
        raise ConfigError(f"the model of {run} has no tokenizer that can be served")

    def weights(load: Load) -> dict[str, object]:
        if load.version not in versions.versions():
            raise Refused(f"the run has no version {load.version}", status=404, param="version")
        return dict(saved.state(load.version))

    return _Opened(run.resolve().name, Generator(decoder, version=version), renderer.tokenizer, weights)


def _weights_of(opened: _Opened, root: Path | None) -> Weights | None:
    """Where new weights come from: versions of the run, and folders below `root`."""
    if root is None and opened.weights is None:
        return None
    from practicum.policies.local.folder import load_folder
    from practicum.policies.local.vocabulary import PretrainedTokenizer
    from practicum.policies.serving.requests import Load, Refused

    below = root.resolve(strict=True) if root is not None else None

    def weights(load: Load) -> dict[str, object]:
        if load.folder is None:
            if opened.weights is None:
                raise Refused("this is not a run: folder says where the weights are", param="folder")
            return dict(opened.weights(load))
        folder = Path(load.folder).resolve()
        if below is None or below not in folder.parents:
            raise Refused("weights are not taken from there; see --load-from", status=403, param="folder")
        model, tokenizer = load_folder(folder, context=opened.generator.model.shape.context)
        same = isinstance(opened.words, PretrainedTokenizer) and tokenizer.text == opened.words.text
        if not same or model.shape != opened.generator.model.shape:
            raise Refused("the model in folder is another one, or has another tokenizer", param="folder")
        return dict(model.state_dict())

    return weights
