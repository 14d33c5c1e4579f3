"""From TOML files, what is shipped under a name, and `--set` overrides to one strict model.

Owns: `load_config`, `load_model`, `Shelf`, `recipes`, how layers are merged.
Invariant: later layers win key by key; what cannot be read or run is a `ConfigError` that says where it was set.
Must not know: which keys there are.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from practicum.config.explain import Layer, explain
from practicum.config.section import Section
from practicum.config.sections import RunConfig
from practicum.errors import ConfigError

M = TypeVar("M", bound=Section)


@dataclass(frozen=True, slots=True)
class Shelf:
    """TOML files that are shipped in `folder` of the package, each of which is a `kind`."""

    kind: str
    folder: str

    def names(self) -> list[str]:
        """Without the ending, sorted."""
        return sorted(entry.name.removesuffix(".toml") for entry in self._folder().iterdir() if ".toml" in entry.name)

    def text(self, name: str) -> str:
        """The file of that name."""
        return (self._folder() / f"{name}.toml").read_text("utf-8")

    def _folder(self) -> Traversable:
        return resources.files("practicum") / self.folder


_RECIPES = Shelf("recipe", "recipes")


def recipes() -> list[str]:
    """Names of the recipes shipped with the package."""
    return _RECIPES.names()


def load_config(source: str | Path | Sequence[str | Path], overrides: Iterable[str] = ()) -> RunConfig:
    """The configuration of `source`, with `overrides` applied.

    `source` is a TOML file or the name of a shipped recipe, or several of them, later ones winning key by key.
    An override reads `a.b=value`; the value is TOML, or a bare word for a string. Raises `ConfigError`.
    """
    sources = [source] if isinstance(source, (str, Path)) else list(source)
    return load_model(RunConfig, _RECIPES, sources, overrides)


def read_config(source: str | Path) -> dict[str, Any]:
    """What `source`, a TOML file or the name of a shipped recipe, says by itself, unchecked. Raises `ConfigError`."""
    return _read(source, _RECIPES)[1]


def load_model(model: type[M], shelf: Shelf, sources: Sequence[str | Path], overrides: Iterable[str] = ()) -> M:
    """As `load_config`, for any strict model and what is shipped of it on `shelf`."""
    layers = [_read(item, shelf) for item in sources] + [_override(text) for text in overrides]
    merged: dict[str, Any] = {}
    for _, values in layers:
        merged = _merge(merged, values)
    try:
        return model.model_validate(merged)
    except ValidationError as error:
        raise explain(error, layers, model) from None


def _read(source: str | Path, shelf: Shelf) -> Layer:
    is_file = isinstance(source, Path) or source.endswith(".toml") or "/" in source
    known = shelf.names()
    if not is_file and source not in known:
        close = difflib.get_close_matches(str(source), known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ConfigError(
            f"there is no {shelf.kind} {str(source)!r}",
            fix=f"{hint}the {shelf.kind}s are {', '.join(known)}; a file is named with its .toml",
        )
    try:
        if is_file:
            return str(source), tomllib.loads(Path(source).read_text("utf-8"))
        return f"{shelf.kind} {source}", tomllib.loads(shelf.text(str(source)))
    except OSError as error:
        raise ConfigError(
            f"cannot read configuration {str(source)!r}: {error.strerror or error}",
            fix=f"name an existing TOML file or one of the {shelf.kind}s: {', '.join(known)}",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error


def _override(text: str) -> Layer:
    key, separator, raw = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not separator or not all(parts):
        raise ConfigError(f"--set {text!r} is not of the form a.b=value", fix="for example --set rl.updates=10")
    try:
        parsed = tomllib.loads(f"value = {raw}")
        value = parsed["value"] if parsed.keys() == {"value"} else raw
    except tomllib.TOMLDecodeError:
        value = raw  # a bare word
    for part in reversed(parts[1:]):
        value = {part: value}
    return f"--set {text}", {parts[0]: value}


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
