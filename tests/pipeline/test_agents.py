"""From what a person writes to a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.errors import ConfigError
from practicum.pipeline.agents import identity, parse_agent


def test_kinds(tmp_path: Path) -> None:
    """Each way of naming a policy is told from the others."""
    (tmp_path / "fix.sh").write_text("true")
    (tmp_path / "config.toml").write_text("")
    assert parse_agent("oracle").kind == "oracle"
    assert parse_agent("noop").kind == "noop"
    assert parse_agent(f"script:{tmp_path}/fix.sh").where == f"{tmp_path}/fix.sh"
    chat = parse_agent("http://host:1/v1", model="m", api_key_env="K", temperature=0.0)
    assert (chat.kind, chat.model, chat.api_key_env, chat.temperature) == ("chat", "m", "K", 0.0)
    assert parse_agent(str(tmp_path), temperature=0.5).kind == "run"


@pytest.mark.parametrize("option", [{"model": "m"}, {"api_key_env": "K"}, {"temperature": 0.5}])
def test_nothing_is_ignored(option: dict[str, str | float]) -> None:
    """An option that the policy would ignore is refused."""
    with pytest.raises(ConfigError, match="noop"):
        parse_agent("noop", **option)  # type: ignore[arg-type]


def test_unknown() -> None:
    """What is no policy is named, with what could be written."""
    with pytest.raises(ConfigError) as caught:
        parse_agent("gpt")
    assert "'gpt' is no policy" in caught.value.message
    assert "oracle, noop" in (caught.value.fix or "")


def test_ways_to_ask_an_address(tmp_path: Path) -> None:
    """Token ids are asked for with a tokenizer, texts without; a way that there is not is named."""
    url = "http://host:1/v1"
    chosen = parse_agent(url, api="tokens", tokenizer="smollm2", speech="fence")
    assert (chosen.kind, chosen.api, chosen.tokenizer, chosen.speech) == ("chat", "tokens", "smollm2", "fence")
    assert parse_agent(url, api="chat", speech="hermes").speech == "hermes"
    plain = parse_agent(url)
    assert (plain.api, plain.tokenizer, plain.speech) == ("chat", None, "tags")
    assert identity(plain) == (url, "default")
    assert identity(chosen) != identity(plain)
    for options, said in (
        ({"api": "tokens"}, "--tokenizer"),
        ({"tokenizer": "smollm2"}, "--tokenizer"),
        ({"api": "chat", "tokenizer": "smollm2"}, "--tokenizer"),
        ({"api": "grpc"}, "'grpc'"),
        ({"speech": "shout"}, "'shout'"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse_agent(url, **options)  # type: ignore[arg-type]
        assert said in str(caught.value)
    for option in ({"api": "tokens"}, {"tokenizer": "x"}, {"speech": "tags"}):
        with pytest.raises(ConfigError, match="goes with an http address"):
            parse_agent("oracle", **option)  # type: ignore[arg-type]
