"""Merging layers of configuration files.

Owns: the family `settings`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import random
from typing import Any

OPTIONS = ("sections", "append", "unset", "types", "fold", "refer", "locked", "quotes")
FUNCTIONS = ("merge", "load_settings", "effective", "resolve", "combined", "flatten_config")


class P:
    """Parameters, with an example of each."""

    layers: tuple[str, ...] = ("site", "host")
    keys: tuple[str, ...] = ("port", "mode")
    comment: str = "#"
    equals: str = "="
    joint: str = "."
    sections: bool = False
    append: bool = False
    separator: str = ","
    unset: str = ""
    types: bool = False
    yes: tuple[str, ...] = ("yes", "on")
    no: tuple[str, ...] = ("no", "off")
    fold: bool = False
    refer: bool = False
    locked: str = ""
    quotes: bool = False
    ending: str = ".conf"


def typed(value: str) -> Any:
    if value.lower() in P.yes:
        return True
    if value.lower() in P.no:
        return False
    if value.isdigit():
        return int(value)
    return value


def solve(files: dict[str, str]) -> dict[str, Any]:
    found: dict[str, str] = {}
    if P.locked:
        locked = set()
    for layer in P.layers:
        text = files.get(layer + P.ending, "")
        if P.sections:
            section = ""
        for raw in text.split("\n"):
            line = raw.strip()
            if not line or line.startswith(P.comment):
                continue
            if P.sections and line.startswith("[") and line.endswith("]"):
                section = line[1:-1].strip()
                continue
            if P.unset and line.startswith(P.unset):
                name = line[len(P.unset) :].strip()
                if P.fold:
                    name = name.lower()
                if P.locked and name in locked:
                    continue
                found.pop(name, None)
                continue
            name, parted, value = line.partition(P.equals)
            if not parted:
                continue
            name, value = name.strip(), value.strip()
            if P.locked:
                lock = name.startswith(P.locked)
                if lock:
                    name = name[len(P.locked) :]
            if P.append:
                more = name.endswith("+")
                if more:
                    name = name[:-1].strip()
            if P.sections and section:
                name = section + P.joint + name
            if P.fold:
                name = name.lower()
            if P.quotes and len(value) >= 2 and value[0] == value[-1] == '"':
                value = value[1:-1]
            if P.locked:
                if name in locked:
                    continue
                if lock:
                    locked.add(name)
            if P.append and more and name in found:
                value = found[name] + P.separator + value
            found[name] = value
    if P.refer:
        for name in sorted(found):
            for other in sorted(found):
                if other != name:
                    found[name] = found[name].replace("<" + other + ">", found[other])
    if P.types:
        return {name: typed(value) for name, value in found.items()}
    return found


def again(files: dict[str, str]) -> dict[str, Any]:
    lines: list[tuple[str, str]] = []
    for layer in P.layers:
        prefix = ""
        for line in map(str.strip, files.get(layer + P.ending, "").split("\n")):
            if P.sections and line[:1] == "[" and line[-1:] == "]" and line[: len(P.comment)] != P.comment:
                prefix = line[1:-1].strip()
                prefix = prefix + P.joint if prefix else ""
            elif line and line[: len(P.comment)] != P.comment:
                lines.append((prefix, line))
    values: dict[str, str] = {}
    closed: list[str] = []
    for prefix, line in lines:
        if P.unset and line[: len(P.unset)] == P.unset:
            key = line[len(P.unset) :].strip()
            key = key.lower() if P.fold else key
            if key not in closed:
                values = {name: value for name, value in values.items() if name != key}
            continue
        if P.equals not in line:
            continue
        at = line.index(P.equals)
        left, right = line[:at].strip(), line[at + len(P.equals) :].strip()
        locks = bool(P.locked) and left[: len(P.locked)] == P.locked
        left = left[len(P.locked) :] if locks else left
        adds = P.append and left[-1:] == "+"
        key = prefix + (left[:-1].strip() if adds else left)
        key = key.lower() if P.fold else key
        if key in closed:
            continue
        if P.quotes and len(right) > 1 and right.startswith('"') and right.endswith('"'):
            right = right[1:-1]
        if locks:
            closed.append(key)
        values[key] = P.separator.join([values[key], right]) if adds and key in values else right
    if P.refer:
        for key in sorted(values):
            for other in sorted(set(values) - {key}):
                values[key] = values[other].join(values[key].split("<" + other + ">"))
    result: dict[str, Any] = {}
    for key, value in values.items():
        if not P.types:
            result[key] = value
        elif value.lower() in (*P.yes, *P.no):
            result[key] = value.lower() in P.yes
        else:
            result[key] = int(value) if value.isdigit() else value
    return result


def make(rng: random.Random) -> list[Any]:
    files = {}
    for layer in rng.sample([*P.layers, "other"], rng.randint(2, len(P.layers))):
        lines = []
        for _ in range(rng.randint(2, 9)):
            key = rng.choice(P.keys)
            value = rng.choice(["a", "b c", "20", "7", "x" + P.equals + "y", "", "A B"])
            if P.types:
                value = rng.choice([value, P.yes[0], P.no[-1], P.yes[-1].title(), P.no[0].upper(), "012"])
            if P.refer and rng.random() < 0.5:
                value = "<" + rng.choice(P.keys) + ">/" + value
            if P.quotes and rng.random() < 0.3:
                value = rng.choice(['"' + value + ' "', '"', '"' + value, '""'])
            if P.fold and rng.random() < 0.3:
                key = rng.choice([key.upper(), key.title()])
            name = key
            if P.append and rng.random() < 0.4:
                name += rng.choice(["+", " +"])
            if P.locked and rng.random() < 0.2:
                name = P.locked + name
            line = name + rng.choice([" " + P.equals + " ", P.equals, P.equals + "  "]) + value
            kind = rng.random()
            if kind < 0.06:
                line = P.comment + line
            elif kind < 0.1:
                line = key
            elif kind < 0.14:
                line = "   "
            elif P.sections and kind < 0.3:
                line = rng.choice(["[net]", "[ log ]", "[net]", "[]", "[a" + P.equals + "b", "c" + P.equals + "d]"])
            elif P.unset and kind < 0.4:
                line = P.unset + rng.choice([key, " " + key])
                if P.sections:
                    line = P.unset + rng.choice([key, "net" + P.joint + key])
            if rng.random() < 0.15:
                line = "  " + line + " "
            lines.append(line)
        files[layer + P.ending] = "\n".join(lines) + "\n"
    return [files]
