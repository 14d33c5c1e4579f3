"""The words of the family `settings`: systems, layers, and how their rules are said.

Owns: `draw`, `describe`. Invariant: each rule that `settings.solve` follows is said. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

_SYSTEMS = (
    ("a mail server", ("queue", "relay", "size_limit", "greeting")),
    ("a print spooler", ("tray", "duplex", "paper", "resolution")),
    ("a backup job", ("target", "keep", "compress", "skip")),
    ("a radio player", ("volume", "station", "buffer", "theme")),
    ("an irrigation controller", ("zone", "minutes", "pump", "rain_stop")),
    ("a chat bot", ("nick", "channel", "greet", "log_level")),
    ("a museum's audio guide", ("language", "voice", "pause", "tour")),
)
_LAYERS = (
    ("defaults", "site", "host"),
    ("base", "team", "user"),
    ("vendor", "system", "local"),
    ("factory", "shop", "till", "override"),
    ("common", "stage"),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    system, keys = rng.choice(_SYSTEMS)
    yes, no = rng.choice(
        ((("yes", "on"), ("no", "off")), (("true", "yes"), ("false", "no")), (("ja", "an"), ("nein",)))
    )
    return {
        "system": system,
        "keys": keys,
        "layers": rng.choice(_LAYERS),
        "comment": rng.choice(("#", ";", "//", "--")),
        "equals": rng.choice(("=", ":", "->", ":=")),
        "joint": rng.choice((".", "/", "::", "_")),
        "ending": rng.choice((".conf", ".cfg", ".ini", ".settings")),
        "sections": "sections" in options,
        "append": "append" in options,
        "separator": rng.choice((",", ";", " ", "|")),
        "unset": rng.choice(("unset ", "drop ", "~")) if "unset" in options else "",
        "types": "types" in options,
        "yes": yes,
        "no": no,
        "fold": "fold" in options,
        "refer": "refer" in options,
        "locked": rng.choice(("!", "*", "final ")) if "locked" in options else "",
        "quotes": "quotes" in options,
    }


def _rules(v: Mapping[str, Any], rng: random.Random) -> list[str]:
    eq, rules = v["equals"], list[str]()
    if v["sections"]:
        rules.append(
            f"`[name]` begins a section (blanks inside the brackets do not count); a key below it is called "
            f"`name{v['joint']}key`. `[]` ends sections. Each file starts outside of any."
        )
    if v["fold"]:
        rules.append(
            rng.choice(
                (
                    "Whole names of keys are put into lower case.",
                    "Case does not matter in the name of a key: it is written in lower case throughout.",
                )
            )
        )
    if v["locked"]:
        rules.append(
            f"A key that is written with `{v['locked'].strip()}` in front (`{v['locked']}key {eq} "
            f"value`) is set and then "
            "locked: whatever comes later for this key, in this file or another, is ignored. The "
            "mark itself is not part "
            "of the name."
        )
    if v["append"]:
        rules.append(
            f"`key+ {eq} value` (blanks before the `+` are allowed) does not replace: where the key "
            f"has a value, the new "
            f"text is put behind it with `{v['separator']}` between them. Where it has none, it is set."
        )
    if v["unset"]:
        rules.append(
            f"A line that starts with `{v['unset']}` takes away the key that is named behind it"
            + (" by its full name, whatever section the line is in" if v["sections"] else "")
            + "; nothing happens if there is no such key."
            + (" Locked keys stay." if v["locked"] else "")
        )
    if v["quotes"]:
        rules.append('If a value has two characters or more and both starts and ends with `"`, these two are removed.')
    if v["refer"]:
        rules.append(
            "When all is read: go through the keys in sorted order; in the value of each, replace `<other>` by the "
            "present value of the key `other`, for every other key in sorted order, one after another, each once."
        )
    if v["types"]:
        rules.append(
            f"Once all is read, and every other rule applied, values become typed: "
            f"{said(v['yes'], 'or')} in any case is `True`, {said(v['no'], 'or')} is "
            "`False`, digits only is an int, all else stays text."
        )
    return rules


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    v = values
    names = said([layer + v["ending"] for layer in v["layers"]])
    goal = rng.choice(
        (
            f"The settings of {v['system']} are spread over several files. Write `{v['function']}(files)` that works "
            "out which ones are in force.",
            f"`{v['function']}(files)` shall merge the configuration layers of {v['system']}.",
            f"To find out why {v['system']} behaves as it does, we need its effective configuration: "
            f"`{v['function']}(files)`.",
        )
    )
    others = "other " if v["sections"] or v["unset"] else ""
    return Brief(
        goal,
        [
            "`files` maps file names to texts.",
            f"Read {names}, in this order, those that exist; ignore any other. What comes later wins over what came "
            "before, even within one file.",
            f"Per line: `key {v['equals']} value`, parted at the first `{v['equals']}`. Blanks around "
            f"line, key and value "
            f"do not count. Empty lines, lines that begin with `{v['comment']}` and {others}lines without "
            f"`{v['equals']}` are skipped.",
        ],
        _rules(v, rng),
        ["Return one flat dict from key to value" + (" (a str)." if not v["types"] else ".")],
    )
