"""What a person is told about a configuration that is refused.

Owns: the words for each kind of problem, where a value came from, the nearest known key.
Invariant: a message names the key, the value, the layer that set it and what to write instead.
Must not know: how layers are read or merged.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from practicum.errors import ConfigError

Layer = tuple[str, dict[str, Any]]  # where it came from, as a person would say it; what it sets


def explain(error: ValidationError, layers: Sequence[Layer], model: type[BaseModel]) -> ConfigError:
    """The first thing wrong with a `model`, with its dotted key, the layer that set it, and what to write instead."""
    first = error.errors()[0]
    loc = tuple(str(part) for part in first["loc"])
    key, origin = ".".join(loc), _origin(loc, layers)
    where = f" (in {origin})" if origin else ""
    if first["type"] == "extra_forbidden":
        close = _closest(loc, model)
        listed = f"the keys of {'.'.join(loc[:-1])} are" if len(loc) > 1 else "the keys are"
        known = ", ".join(_model_at(loc[:-1], model).model_fields)
        return ConfigError(f"unknown key {key}{where}", fix=f"did you mean {close}?" if close else f"{listed} {known}")
    if first["type"] == "value_error":  # ours: the message shows the arithmetic
        prefix = f"{key}: " if key else ""
        return ConfigError(f"{prefix}{first['ctx']['error']}{where if key else ''}")
    quote = f" (to make it one: --set '{key}=\"{first['input']}\"')" if first["type"] == "string_type" else ""
    return ConfigError(f"{key} = {first['input']!r}{where}: expected {_expected(first, loc, model)}{quote}")


def _expected(problem: Mapping[str, Any], loc: Sequence[str], root: type[BaseModel]) -> str:
    """What pydantic wanted, in the words of this project."""
    if problem["type"] in ("model_type", "model_attributes_type"):
        return f"a table of {', '.join(_model_at(loc, root).model_fields)}"
    if problem["type"] == "string_pattern_mismatch":
        return "letters, digits, `.`, `_` and `-`, beginning with a letter or digit, 64 at most"
    if loc[-1] == "group_size" and problem["type"] == "greater_than_equal":
        return "at least 2: an advantage is reward − mean of the group, and of one attempt that is r − r = 0"
    text = str(problem["msg"]).removeprefix("Input should be ").removeprefix("a valid ")
    for theirs, ours in (("greater than or equal to", "at least"), ("less than or equal to", "at most")):
        text = text.replace(theirs, ours)
    return text.replace("greater than", "more than")


def _origin(loc: Sequence[str], layers: Sequence[Layer]) -> str | None:
    """The last layer that says anything at `loc`, or above it."""
    for depth in range(len(loc), 0, -1):
        for name, values in reversed(layers):
            node: Any = values
            for part in loc[:depth]:
                node = node.get(part) if isinstance(node, dict) else None
            if node is not None:
                return name
    return layers[-1][0] if layers else None


def _model_at(loc: Sequence[str], root: type[BaseModel]) -> type[BaseModel]:
    model = root
    for part in loc:
        kind = model.model_fields[part].annotation
        for candidate in (kind, *get_args(kind)):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                model = candidate
    return model


def _closest(loc: Sequence[str], root: type[BaseModel]) -> str | None:
    """The known dotted key nearest to an unknown one: in its section first, then the same word elsewhere."""
    section, word = ".".join(loc[:-1]), loc[-1]
    siblings = list(_model_at(loc[:-1], root).model_fields)
    if close := difflib.get_close_matches(word, siblings, n=1):
        return f"{section}.{close[0]}" if section else close[0]
    elsewhere = {f"{name}.{field}": field for name in root.model_fields for field in _fields(name, root)}
    same = [dotted for dotted, field in elsewhere.items() if field == word]
    alike = [dotted for dotted, field in elsewhere.items() if difflib.SequenceMatcher(None, word, field).ratio() > 0.75]
    return " or ".join((same or alike)[:3]) or None


def _fields(section: str, root: type[BaseModel]) -> list[str]:
    model = _model_at([section], root)
    return [] if model is root else list(model.model_fields)
