"""Who acts: from what a person writes (`oracle`, `script:FILE`, an address, a run folder) to a policy.

Owns: `AgentChoice`, `parse_agent`, `open_agent`, `identity`, `models_cache`.
Invariant: a choice that cannot be honoured is refused before any box is made.
Must not know: boxes, verdicts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from practicum.errors import ConfigError
from practicum.policies.contract import Policy
from practicum.policies.scripted import script_policy
from practicum.policies.speech import SPEECHES, TAGS
from practicum.policies.text import ByteRenderer
from practicum.rollouts.agents import Agent, noop_agent, oracle_agent
from practicum.rollouts.session import TEXT_BUDGETS, Budgets

_ADDRESS_FIX = "write e.g. http://host:8000/v1"
_APIS = {"chat": "", "tokens": "vllm", "sglang": "sglang"}
"""Ways to ask an address, and the dialect in which token ids are asked for; none for text."""
_TOKEN_BUDGETS = Budgets(max_turns=16, max_tokens=1024, max_context=16_384)


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """A parsed choice. `where` is a script file, an address or a run folder.

    An address is asked by `api` (chat, tokens, sglang); a model acts by `speech`, and its ids are those of `tokenizer`:
    a Hugging Face folder, or a model that is known.
    """

    kind: Literal["oracle", "noop", "script", "chat", "run"]
    where: str = ""
    model: str = "default"
    api_key_env: str | None = None
    temperature: float = 1.0
    api: str = "chat"
    tokenizer: str | None = None
    speech: str = TAGS.name


def parse_agent(
    text: str,
    *,
    model: str | None = None,
    api_key_env: str | None = None,
    temperature: float | None = None,
    api: str | None = None,
    tokenizer: str | None = None,
    speech: str | None = None,
) -> AgentChoice:
    """The choice written as `text`. Raises `ConfigError` for what it is not, and for options it would ignore."""
    kind, where = _kind_of(text)
    options = {
        "--model": model, "--api-key-env": api_key_env, "--api": api, "--tokenizer": tokenizer, "--speech": speech,
    }  # fmt: skip
    for name, value in options.items():
        if value is not None and kind != "chat":
            raise ConfigError(f"{name} goes with an http address, and the policy is {text!r}", fix=f"leave {name} out")
    if temperature is not None and kind not in ("chat", "run"):
        raise ConfigError(f"--temperature means nothing to {text!r}", fix="leave it out")
    if api is not None and api not in _APIS:
        raise ConfigError(f"--api {api!r} is unknown", fix=f"one of {', '.join(_APIS)}")
    if speech is not None and speech not in SPEECHES:
        raise ConfigError(f"--speech {speech!r} is unknown", fix=f"one of {', '.join(SPEECHES)}")
    if (tokenizer is not None) != (api is not None and bool(_APIS[api])):
        raise ConfigError(
            "token ids need the model's tokenizer, and texts need none", fix="--api tokens --tokenizer DIR|smollm2"
        )
    return AgentChoice(
        kind, where, model or "default", api_key_env, 1.0 if temperature is None else temperature,
        api or "chat", tokenizer, speech or TAGS.name,
    )  # fmt: skip


def models_cache() -> Path:
    """Where models that are known by name are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "practicum" / "models"


def _kind_of(text: str) -> tuple[Literal["oracle", "noop", "script", "chat", "run"], str]:
    if text == "oracle":
        return "oracle", ""
    if text == "noop":
        return "noop", ""
    if text.startswith("script:"):
        script = text.removeprefix("script:")
        if not Path(script).is_file():
            raise ConfigError(f"there is no script {script!r}", fix="script:FILE names a shell script")
        return "script", script
    if text.startswith(("http://", "https://")):
        _check_address(text)
        return "chat", text
    if (Path(text) / "config.toml").is_file():
        return "run", text
    raise ConfigError(
        f"{text!r} is no policy",
        fix="write oracle, noop, script:FILE, an address such as http://host:8000/v1, or the folder of a run",
    )


def _check_address(text: str) -> None:
    """Raises `ConfigError` where `text` cannot be an address at all; whether somebody answers is found out later."""
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and parts.port != 0  # reading the port checks its range
    except ValueError as error:
        raise ConfigError(f"{text!r} is not an http address: {error}", fix=_ADDRESS_FIX) from None
    if not usable:
        raise ConfigError(f"{text!r} is not an http address", fix=_ADDRESS_FIX)


def identity(choice: AgentChoice) -> tuple[str, str]:
    """Name and version of the policy of `choice`: what was measured under the same two may be counted together.

    An address cannot show its weights, so its version is the model's name. Raises `ConfigError` or `StoreError`.
    """
    if choice.kind == "chat":
        how = "" if (choice.api, choice.speech) == ("chat", TAGS.name) else f" by {choice.api}, {choice.speech}"
        return choice.where, choice.model + how
    if choice.kind == "script":
        return choice.where, hashlib.sha256(Path(choice.where).read_bytes()).hexdigest()[:12]
    if choice.kind == "run":
        from practicum.pipeline.trained import chosen_version

        version, digest = chosen_version(Path(choice.where))
        return Path(choice.where).resolve().name, f"{version}+{digest[:12]}"
    return choice.kind, "1"


@asynccontextmanager
async def open_agent(choice: AgentChoice) -> AsyncIterator[Agent]:
    """The agent of `choice`. Raises `ConfigError` or `StoreError` where it cannot be had."""
    renderer = ByteRenderer()
    if choice.kind == "oracle":
        yield oracle_agent()
    elif choice.kind == "noop":
        yield noop_agent()
    elif choice.kind == "script":
        yield Agent(_script(choice.where, renderer), renderer, TEXT_BUDGETS)
    elif choice.kind == "chat" and choice.tokenizer is not None:
        async with _by_tokens(choice, choice.tokenizer) as agent:
            yield agent
    elif choice.kind == "chat":
        from practicum.policies.http import ChatPolicy

        speech = SPEECHES[choice.speech]
        async with ChatPolicy(
            choice.where, choice.model, api_key_env=choice.api_key_env, system_prompt=speech.system
        ) as policy:
            yield Agent(policy, ByteRenderer(speech), TEXT_BUDGETS, choice.temperature)
    else:
        yield _trained(Path(choice.where), choice.temperature)


@asynccontextmanager
async def _by_tokens(choice: AgentChoice, tokenizer: str) -> AsyncIterator[Agent]:
    from practicum.policies.http_tokens import TokenPolicy
    from practicum.policies.local.chat import ChatRenderer
    from practicum.policies.local.known import model_folder
    from practicum.policies.local.vocabulary import load_tokenizer

    renderer = ChatRenderer(load_tokenizer(model_folder(tokenizer, models_cache())), SPEECHES[choice.speech])
    model = "" if choice.model == "default" else choice.model
    async with TokenPolicy(choice.where, model, dialect=_APIS[choice.api], api_key_env=choice.api_key_env) as policy:
        context = (await policy.describe()).context
        budgets = _TOKEN_BUDGETS
        if context is not None:
            budgets = replace(budgets, max_context=min(context, budgets.max_context))
        yield Agent(policy, renderer, budgets, choice.temperature)


def _trained(run: Path, temperature: float) -> Agent:
    from practicum.pipeline.runfolder import RunFolder
    from practicum.pipeline.trained import load_trained

    with RunFolder.open(run) as folder:
        rollout = folder.config.rollout
    policy, renderer = load_trained(run)
    return Agent(
        policy, renderer, Budgets(rollout.max_turns, rollout.max_tokens_per_turn, rollout.max_context), temperature
    )


def _script(file: str, renderer: ByteRenderer) -> Policy:
    try:
        return script_policy(renderer, Path(file).read_text("utf-8"))
    except (ValueError, OSError) as error:  # bytes that are no text, or text that the protocol cannot carry
        raise ConfigError(f"{file} cannot be used as a script: {error}") from error
