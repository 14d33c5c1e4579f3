"""Who acts: from what a person writes (`oracle`, `script:FILE`, an address, a run folder) to a policy.

Owns: `Agent`, `AgentChoice`, `parse_agent`, `open_agent`.
Invariant: a choice that cannot be honoured is refused before any box is made.
Must not know: boxes, verdicts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from practicum.errors import ConfigError
from practicum.policies.contract import Policy, Renderer
from practicum.policies.scripted import noop_policy, oracle_policy, script_policy
from practicum.policies.text import ByteRenderer
from practicum.rollouts.session import TEXT_BUDGETS, Budgets

_ADDRESS_FIX = "write e.g. http://host:8000/v1"


@dataclass(frozen=True, slots=True)
class Agent:
    """A policy with what it needs around it. `with_solution`: its boxes hold the gold."""

    policy: Policy
    renderer: Renderer
    budgets: Budgets
    temperature: float = 1.0
    with_solution: bool = False


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """A parsed choice. `where` is a script file, an address or a run folder."""

    kind: Literal["oracle", "noop", "script", "chat", "run"]
    where: str = ""
    model: str = "default"
    api_key_env: str | None = None
    temperature: float = 1.0


def parse_agent(
    text: str, *, model: str | None = None, api_key_env: str | None = None, temperature: float | None = None
) -> AgentChoice:
    """The choice written as `text`. Raises `ConfigError` for what it is not, and for options it would ignore."""
    kind, where = _kind_of(text)
    for name, value in (("--model", model), ("--api-key-env", api_key_env)):
        if value is not None and kind != "chat":
            raise ConfigError(f"{name} goes with an http address, and the policy is {text!r}", fix=f"leave {name} out")
    if temperature is not None and kind not in ("chat", "run"):
        raise ConfigError(f"--temperature means nothing to {text!r}", fix="leave it out")
    return AgentChoice(kind, where, model or "default", api_key_env, 1.0 if temperature is None else temperature)


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


def oracle_agent() -> Agent:
    """Applies the gold and submits."""
    renderer = ByteRenderer()
    return Agent(oracle_policy(renderer), renderer, TEXT_BUDGETS, with_solution=True)


def noop_agent() -> Agent:
    """Submits at once."""
    renderer = ByteRenderer()
    return Agent(noop_policy(renderer), renderer, TEXT_BUDGETS)


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
    elif choice.kind == "chat":
        from practicum.policies.http import ChatPolicy

        async with ChatPolicy(choice.where, choice.model, api_key_env=choice.api_key_env) as policy:
            yield Agent(policy, renderer, TEXT_BUDGETS, choice.temperature)
    else:
        yield _trained(Path(choice.where), choice.temperature)


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
