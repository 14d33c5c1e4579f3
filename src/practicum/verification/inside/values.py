"""Plain values as JSON text.

Owns: `encode`. Invariant: only the exact types below are written, never a subclass, so that no code of the value's
author runs while it is written or read; depth and size are bounded. Must not know: who reads the text.

None, bool, int, float, str, list and dict with str keys are themselves in JSON. The rest, and what JSON would
confuse, is an object with one key: `$tuple`, `$set`, `$frozenset` (lists), `$bytes` (hex), `$dict` (list of
pairs), `$float` ("nan", "inf", "-inf"), `$int` (hex, beyond 2**53).
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quote

TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 50
LARGE = 1 << 53
_FLAT: dict[Any, str] = {True: "true", False: "false", None: "null"}


class NotPlain(Exception):
    """The value, or a part of it, cannot be written; the text says why."""


def encode(value: Any, max_chars: int = 1 << 18) -> str:
    """`value` as JSON text in ASCII; `NotPlain` where it holds anything else, or too much."""
    pieces: list[str] = []
    _write(value, pieces, [max_chars], 0)
    return "".join(pieces)


def _put(text: str, pieces: list[str], room: list[int]) -> None:
    room[0] -= len(text)
    if room[0] < 0:
        raise NotPlain("too large")
    pieces.append(text)


def _write(value: Any, pieces: list[str], room: list[int], depth: int) -> None:
    kind = type(value)
    if depth > MAX_DEPTH:
        raise NotPlain("too deep")
    if value is None or kind is bool:
        _put(_FLAT[value], pieces, room)
    elif kind is int:
        small = -LARGE < value < LARGE
        _put(int.__repr__(value) if small else f'{{"$int":"{hex(value)}"}}', pieces, room)
    elif kind is float:
        text = float.__repr__(value)
        _put(f'{{"$float":"{text}"}}' if text in ("nan", "inf", "-inf") else text, pieces, room)
    elif kind is str:
        if len(value) > room[0]:
            raise NotPlain("too large")
        _put(quote(value), pieces, room)
    elif kind is list:
        _items(value, pieces, room, depth)
    elif kind is dict:
        _dict(value, pieces, room, depth)
    elif kind is tuple:
        _tagged("$tuple", value, pieces, room, depth)
    elif kind is set or kind is frozenset:
        _tagged("$set" if kind is set else "$frozenset", value, pieces, room, depth)
    elif kind is bytes:
        _put(f'{{"$bytes":"{bytes.hex(value)}"}}', pieces, room)
    else:
        raise NotPlain("not a plain value: " + type.__getattribute__(kind, "__name__"))


def _items(values: list[Any], pieces: list[str], room: list[int], depth: int) -> None:
    _put("[", pieces, room)
    for at, item in enumerate(values):
        if at:
            _put(",", pieces, room)
        _write(item, pieces, room, depth + 1)
    _put("]", pieces, room)


def _tagged(tag: str, values: Any, pieces: list[str], room: list[int], depth: int) -> None:
    _put(f'{{"{tag}":', pieces, room)
    _items(values, pieces, room, depth)
    _put("}", pieces, room)


def _dict(values: dict[Any, Any], pieces: list[str], room: list[int], depth: int) -> None:
    keys = list(values)
    if any(type(key) is not str for key in keys) or (len(keys) == 1 and keys[0][:1] == "$"):
        pairs: list[Any] = [[key, values[key]] for key in keys]
        _tagged("$dict", pairs, pieces, room, depth)
        return
    _put("{", pieces, room)
    for at, key in enumerate(keys):
        if at:
            _put(",", pieces, room)
        _write(key, pieces, room, depth + 1)
        _put(":", pieces, room)
        _write(values[key], pieces, room, depth + 1)
    _put("}", pieces, room)


def decode(parsed: Any) -> Any:
    """The value that parsed JSON text of `encode` stands for; `ValueError` where it stands for none."""
    if type(parsed) is list:
        return [decode(item) for item in parsed]
    if type(parsed) is not dict:
        return parsed
    tag = next(iter(parsed)) if len(parsed) == 1 else ""
    if tag[:1] != "$":
        return {key: decode(item) for key, item in parsed.items()}
    inner = parsed[tag]
    try:
        if tag in ("$tuple", "$set", "$frozenset") and type(inner) is list:
            items = [decode(item) for item in inner]
            return tuple(items) if tag == "$tuple" else set(items) if tag == "$set" else frozenset(items)
        if tag == "$dict" and type(inner) is list:
            return {decode(key): decode(item) for key, item in inner}
        if tag == "$bytes" and type(inner) is str:
            return bytes.fromhex(inner)
        if tag == "$float" and inner in ("nan", "inf", "-inf"):
            return float(inner)
        if tag == "$int" and type(inner) is str:
            return int(inner, 16)
    except TypeError as error:  # something that cannot be hashed, or a pair that is none
        raise ValueError(str(error)) from None
    raise ValueError(f"{tag!r} stands for no value")
