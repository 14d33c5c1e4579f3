"""Rotating logs in a folder.

Owns: the family `rotate`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

OPTIONS = ("least", "header", "pinned", "archive", "fresh", "gaps")
FUNCTIONS = ("rotate", "turn_over", "shift_logs", "roll", "age_files", "cycle")


class P:
    """Parameters, with an example of each."""

    ending: str = ".log"
    keep: int = 3
    first: int = 1
    joint: str = "."
    before: bool = False
    least: int = 0
    header: str = ""
    pinned: str = ""
    archive: str = ""
    fresh: bool = False
    gaps: bool = False
    stems: tuple[str, ...] = ("app", "web")


def aged(path: str, number: int) -> str:
    if P.before:
        return path[: -len(P.ending)] + P.joint + str(number) + P.ending
    return path + P.joint + str(number)


def solve(files: dict[str, str]) -> dict[str, str]:
    result = dict(files)
    for path in sorted(files):
        if not path.endswith(P.ending):
            continue
        if P.before and path[: -len(P.ending)].rpartition(P.joint)[2].isdigit():
            continue
        text = files[path]
        if P.least and text.count("\n") < P.least:
            continue
        if P.pinned and text.startswith(P.pinned):
            continue
        last = P.first + P.keep - 1
        if P.gaps:
            for number in range(P.first, last + 1):
                if aged(path, number) not in files:
                    last = number
                    break
        oldest = result.pop(aged(path, last), None)
        if P.archive and oldest is not None:
            result[P.archive] = result.get(P.archive, "") + oldest
        for number in range(last - 1, P.first - 1, -1):
            if aged(path, number) in result:
                result[aged(path, number + 1)] = result.pop(aged(path, number))
        if P.header:
            result[aged(path, P.first)] = P.header + "\n" + text
        else:
            result[aged(path, P.first)] = text
        if P.fresh:
            result[path] = ""
        else:
            del result[path]
    return result


def again(files: dict[str, str]) -> dict[str, str]:
    result = dict(files)
    for path in sorted(files):
        stem, found, rest = path.rpartition(P.ending)
        if not found or rest or (P.before and stem.split(P.joint)[-1].isdigit()):
            continue
        text = files[path]
        if (P.least and len(text.split("\n")) - 1 < P.least) or (P.pinned and text[: len(P.pinned)] == P.pinned):
            continue
        chain = [files.get(aged(path, P.first + step)) for step in range(P.keep)]
        if P.gaps and None in chain:
            at = chain.index(None)
            moved: list[str | None] = [text, *chain[:at], *chain[at + 1 :]]
            dropped = None
        else:
            moved, dropped = [text, *chain[:-1]], chain[-1]
        if P.archive and dropped is not None:
            result[P.archive] = result.get(P.archive, "") + dropped
        if P.header:
            moved[0] = f"{P.header}\n{text}"
        for step, content in enumerate(moved):
            name = aged(path, P.first + step)
            if content is None:
                result.pop(name, None)
            else:
                result[name] = content
        if P.fresh:
            result[path] = ""
        else:
            result.pop(path)
    return result


def make(rng: random.Random) -> list[Any]:
    files = {}
    for stem in rng.sample(P.stems, rng.randint(1, len(P.stems))):
        base = rng.choice(["", "", "old/"]) + stem + P.ending
        lines = [rng.choice(["start", "stop", "load 3", "tick"]) for _ in range(rng.randint(0, 4))]
        text = "\n".join(lines) + rng.choice(["", "\n"])
        if P.pinned and rng.random() < 0.25:
            text = rng.choice([P.pinned + "\n", " " + P.pinned, P.pinned + text]) + text
        files[base] = text
        for number in range(P.first - 1, P.first + P.keep + 2):
            if rng.random() < 0.7:
                files[aged(base, number)] = "kept " + str(number) + " of " + stem + "\n"
    if rng.random() < 0.5:
        files[rng.choice(["readme", "notes" + P.ending + "x", P.stems[0] + ".txt"])] = "stay\n"
    if P.archive and rng.random() < 0.5:
        files[P.archive] = "before\n"
    return [files]


_SYSTEMS = (
    ("a backup server", ("disk", "tape", "mail")),
    ("three printers", ("north", "cellar", "desk")),
    ("a game server", ("chat", "match", "login")),
    ("the gates of a car park", ("entry", "exit", "till")),
    ("a telescope", ("dome", "mount", "camera")),
    ("a reading robot", ("arm", "scan", "page")),
    ("a pumping station", ("inlet", "valve", "outlet")),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    system, stems = rng.choice(_SYSTEMS)
    return {
        "system": system,
        "stems": stems,
        "ending": rng.choice((".log", ".out", ".trace", ".txt")),
        "keep": rng.randint(2, 4),
        "first": rng.randint(0, 1),
        "joint": rng.choice((".", "-", "_")),
        "before": rng.random() < 0.5,
        "least": rng.randint(1, 3) if "least" in options else 0,
        "header": rng.choice(("# rotated", "--- old ---", "CLOSED")) if "header" in options else "",
        "pinned": rng.choice(("KEEP", "#pinned", "!")) if "pinned" in options else "",
        "archive": rng.choice(("archive.all", "ancient", "attic/all")) if "archive" in options else "",
        "fresh": "fresh" in options,
        "gaps": "gaps" in options,
    }


def _example(v: Mapping[str, Any], number: int) -> str:
    stem, ending, joint = v["stems"][0], v["ending"], v["joint"]
    return f"{stem}{joint}{number}{ending}" if v["before"] else f"{stem}{ending}{joint}{number}"


def _rules(v: Mapping[str, Any]) -> list[str]:
    first, last = v["first"], v["first"] + v["keep"] - 1
    rules = []
    if v["least"]:
        few = "no line end" if v["least"] == 1 else f"fewer than {v['least']} line ends"
        rules.append(f"A log with {few} (`\\n`) is left alone, and so are its generations.")
    if v["pinned"]:
        rules.append(f"A log whose text begins with `{v['pinned']}` is left alone, and so are its generations.")
    rules.append(
        f"Each generation moves on by one: `{_example(v, first)}` becomes `{_example(v, first + 1)}` "
        f"and so on; the log "
        f"itself becomes `{_example(v, first)}`. Numbers {first} to {last} are used, so {v['keep']} "
        f"generations are kept."
    )
    if v["gaps"]:
        rules.append(
            f"If one of the numbers {first} to {last} is not taken, only generations below the lowest such number "
            "move, and none is lost at the end."
        )
    fate = (
        f"its text is appended to the file `{v['archive']}`, which may not exist yet" if v["archive"] else "is deleted"
    )
    rules.append(
        f"What was number {last} "
        + (f"falls out: {fate}, before it goes." if v["archive"] else f"{fate}.")
        + " Files with other numbers are not touched."
    )
    if v["header"]:
        rules.append(f"The log gets a new first line `{v['header']}` when it becomes number {first}.")
    rules.append(
        "Afterwards there is an empty file where the log was."
        if v["fresh"]
        else "Afterwards the log is gone; no new one is made."
    )
    return rules


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    v = values
    goal = rng.choice(
        (
            f"The logs of {v['system']} grow without end. Write `{v['function']}(folder)`, which rotates them.",
            f"`{v['function']}(folder)` is run each midnight and rotates the logs of {v['system']}.",
            f"Rotate the logs of {v['system']}: write a function `{v['function']}(folder)`.",
        )
    )
    inputs = [
        "`folder` is the path of a folder of text files; logs in its sub-folders are rotated like those at the top.",
        f"A log is a file whose name ends in `{v['ending']}`; its generations lie beside it, such as "
        f"{said([_example(v, n) for n in (v['first'], v['first'] + 1)])}.",
    ]
    if v["before"]:
        inputs.append(
            f"A name with digits only between its last `{v['joint']}` and the ending (or, without a "
            f"`{v['joint']}`, before "
            "the ending) is a generation, not a log."
        )
    order = "Go through the logs in sorted order of their paths." if v["archive"] else ""
    return Brief(
        goal, [*inputs, *([order] if order else [])], _rules(v), ["All other files stay. Nothing need be returned."]
    )
