"""Counting the lines of log files by sender and time.

Owns: the family `tally`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

OPTIONS = ("merge", "repeats", "prefix", "shift", "least", "suffix", "once", "case")
FUNCTIONS = ("tally", "count_events", "hourly", "summarise", "error_table", "breakdown")


class P:
    """Parameters, with an example of each."""

    form: str = "space"
    levels: tuple[str, ...] = ("ERROR", "FATAL")
    senders: tuple[str, ...] = ("billing", "search")
    bucket: str = "hour"
    time_first: bool = False
    merge: bool = False
    repeats: bool = False
    prefix: str = ""
    shift: int = 0
    least: int = 0
    suffix: str = ""
    once: bool = False
    case: bool = False
    words: tuple[str, ...] = ("disk full", "no answer")


def parse(line: str) -> tuple[datetime, str, str, str] | None:
    """Time, level, sender and message of a line; None where it is malformed."""
    if P.form == "space":
        parts = line.split(" ", 3)
        if len(parts) < 4 or not parts[2].endswith(":"):
            return None
        when, level, sender, message = parts[0], parts[1], parts[2][:-1], parts[3]
    if P.form == "pipe":
        parts = line.split("|")
        if len(parts) != 4:
            return None
        sender, level, when, message = parts[0], parts[1], parts[2], parts[3]
    if P.form == "bracket":
        head, found, message = line.partition("] ")
        parts = head.split(" ")
        if not found or len(parts) != 3 or not parts[0].startswith("["):
            return None
        when, sender, level = parts[0][1:], parts[1], parts[2]
    try:
        return datetime.strptime(when, "%Y-%m-%dT%H:%M:%S"), level, sender, message
    except ValueError:
        return None


def solve(files: dict[str, str]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    seen = set()
    for path in files:
        if P.suffix and not path.endswith(P.suffix):
            continue
        if P.repeats:
            previous = ""
        for line in files[path].split("\n"):
            if P.repeats:
                repeated = line == previous
                previous = line
                if repeated:
                    continue
            entry = parse(line)
            if entry is None:
                continue
            when, level, sender, message = entry
            if P.case:
                level = level.upper()
                sender = sender.lower()
            if level not in P.levels:
                continue
            if P.prefix and sender.startswith(P.prefix):
                continue
            if P.merge:
                sender = sender.split("-")[0]
            if P.shift:
                when = when + timedelta(minutes=P.shift)
            if P.bucket == "hour":
                bucket = when.strftime("%Y-%m-%d %H")
            elif P.bucket == "day":
                bucket = when.strftime("%Y-%m-%d")
            else:
                bucket = when.strftime("%H")
            if P.once:
                if (sender, bucket, message) in seen:
                    continue
                seen.add((sender, bucket, message))
            outer, inner = (bucket, sender) if P.time_first else (sender, bucket)
            row = counts.setdefault(outer, {})
            row[inner] = row.get(inner, 0) + 1
    if P.least:
        counts = {outer: {k: n for k, n in row.items() if n >= P.least} for outer, row in counts.items()}
        counts = {outer: row for outer, row in counts.items() if row}
    return counts


def again(files: dict[str, str]) -> dict[str, dict[str, int]]:
    kept: list[tuple[str, str, str]] = []
    for path, text in sorted(files.items()):
        lines = text.split("\n")
        for number, line in enumerate(lines):
            entry = parse(line)
            if entry is None or (P.suffix and path[-len(P.suffix) :] != P.suffix):
                continue
            if P.repeats and number > 0 and lines[number - 1] == line:
                continue
            level = entry[1].upper() if P.case else entry[1]
            sender = entry[2].lower() if P.case else entry[2]
            if all(level != wanted for wanted in P.levels) or (P.prefix and sender[: len(P.prefix)] == P.prefix):
                continue
            stamp = (entry[0] + timedelta(minutes=P.shift)).isoformat(" ")
            bucket = stamp[:13] if P.bucket == "hour" else stamp[:10] if P.bucket == "day" else stamp[11:13]
            kept.append((sender.partition("-")[0] if P.merge else sender, bucket, entry[3]))
    if P.once:
        kept = list(dict.fromkeys(kept))
    totals = Counter((bucket, sender) if P.time_first else (sender, bucket) for sender, bucket, _ in kept)
    result: dict[str, dict[str, int]] = {}
    for (outer, inner), count in totals.items():
        if not P.least or count >= P.least:
            result.setdefault(outer, {})[inner] = count
    return result


def make(rng: random.Random) -> list[Any]:
    files = {}
    senders = [*P.senders, P.senders[0] + "-2", P.senders[1] + "-eu"]
    if P.prefix:
        senders += [P.prefix + P.senders[0], P.senders[0] + P.prefix]
    if P.case:
        senders += [P.senders[0].upper(), P.senders[1].title()]
    levels = [*P.levels, *P.levels, *P.levels, "INFO", "DEBUG"]
    if P.case:
        levels += [P.levels[0].lower(), P.levels[-1].title()]
    start = datetime(2024, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23))
    slots = [start + timedelta(minutes=20 * rng.randint(0, 90)) for _ in range(3)]
    names = ["app.log", "old/app.log", "worker.txt", "app.log.bak", "z.out"]
    for name in rng.sample(names, rng.randint(1, 3)):
        lines = []
        for _ in range(rng.randint(0, 10)):
            when = (rng.choice(slots) + timedelta(minutes=20 * rng.randint(0, 3))).strftime("%Y-%m-%dT%H:%M:%S")
            level, sender, message = rng.choice(levels), rng.choice(senders), rng.choice(P.words)
            if rng.random() < 0.1:
                when = rng.choice(["yesterday", when[:10], when[:14] + "77:00", ""])
            if P.form == "space":
                line = when + " " + level + " " + sender + ": " + message
            elif P.form == "pipe":
                line = sender + "|" + level + "|" + when + "|" + message
            else:
                line = "[" + when + " " + sender + " " + level + "] " + message
            if rng.random() < 0.12:
                others = [line + "|x", line.replace("] ", " "), line.replace(": ", " "), line.replace("[", "(")]
                line = rng.choice([*others, line.replace(" ", "  ", 1), "", "  at main()"])
            lines += [line] * rng.choice([1, 1, 1, 2, 3])
        files[name] = "\n".join(lines) + rng.choice(["", "\n"])
    return [files]


_THEMES = (
    ("services", ("billing", "search", "auth"), ("disk full", "no answer", "bad token", "queue late")),
    ("turbines of a wind farm", ("north", "ridge", "shore"), ("blade ice", "brake hot", "grid lost")),
    ("robots of a warehouse", ("picker", "lifter", "sorter"), ("wheel stuck", "lost box", "low charge")),
    ("tills of a shop", ("front", "cafe", "garden"), ("card refused", "drawer open", "paper out")),
    ("sensors of a greenhouse", ("vent", "pump", "lamp"), ("too dry", "no signal", "door open")),
    ("nodes of a render farm", ("alpha", "delta", "omega"), ("frame lost", "heat limit", "licence gone")),
    ("trams", ("redline", "harbour", "airport"), ("door fault", "late start", "sand empty")),
    ("ovens of a bakery", ("stone", "deck", "tunnel"), ("belt slow", "steam low", "door open")),
)
_LEVELS = (
    ("ERROR", "FATAL"),
    ("WARN", "ERROR"),
    ("ALERT",),
    ("CRIT", "ERROR", "EMERG"),
    ("FAULT", "PANIC"),
    ("ERROR",),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    theme, senders, words = rng.choice(_THEMES)
    return {
        "theme": theme,
        "senders": tuple(rng.sample(senders, len(senders))),
        "words": words,
        "form": rng.choice(("space", "pipe", "bracket")),
        "levels": rng.choice(_LEVELS),
        "bucket": rng.choice(("hour", "day", "clock")),
        "time_first": rng.random() < 0.5,
        "merge": "merge" in options,
        "repeats": "repeats" in options and "once" not in options,  # which says more
        "prefix": rng.choice(("test-", "dev-", "demo-", "x-")) if "prefix" in options else "",
        "shift": rng.choice((-330, -120, -60, 60, 120, 345, 540)) if "shift" in options else 0,
        "least": rng.randint(2, 3) if "least" in options else 0,
        "suffix": rng.choice((".log", ".txt")) if "suffix" in options else "",
        "once": "once" in options,
        "case": "case" in options,
    }


_FORMS = {
    "space": "`TIME LEVEL SENDER: MESSAGE`, with one space between the parts; everything after the third space belongs "
    "to the message, and the third word ends in a colon that is not part of the sender",
    "pipe": "`SENDER|LEVEL|TIME|MESSAGE`: exactly four fields, so a message never holds a `|`",
    "bracket": "`[TIME SENDER LEVEL] MESSAGE`: a bracket with three words parted by single spaces, "
    "then `] ` (the first "
    "one in the line ends the bracket) and the message",
}
_BUCKETS = {
    "hour": "the hour as `YYYY-MM-DD HH`",
    "day": "the day as `YYYY-MM-DD`",
    "clock": "the hour of the day as two digits, `00` to `23`, whatever the day",
}


def _rules(values: Mapping[str, Any], rng: random.Random) -> list[str]:
    levels = said(values["levels"], "or")
    rules = [f"Only lines whose level is {levels} count."]
    if values["case"]:
        rules.append(
            rng.choice(
                (
                    "Upper and lower case do not matter: compare levels in upper case, and write senders in lower case "
                    "before anything is done with them.",
                    "Before anything is compared, put the level into capitals and the sender into small letters.",
                )
            )
        )
    if values["prefix"]:
        rules.append(f"Leave out every sender whose name begins with `{values['prefix']}`.")
    if values["merge"]:
        rules.append(
            rng.choice(
                (
                    "A sender such as `name-2` or `name-eu` counts as `name`: keep what stands before the first `-`.",
                    "Instances are counted together: cut a sender's name at its first hyphen.",
                )
            )
            + (" (This is after the rule about the prefix.)" if values["prefix"] else "")
        )
    if values["repeats"]:
        rules.append("A line that is the very same text as the line directly above it in its file is not counted.")
    if values["suffix"]:
        rules.append(f"Read only files whose path ends in `{values['suffix']}`; ignore the others.")
    if values["shift"]:
        how = "later" if values["shift"] > 0 else "earlier"
        rules.append(
            f"The clocks are wrong: the true time is {abs(values['shift'])} minutes {how} than the one written, and it "
            "is the true time that decides where a line is counted."
        )
    if values["once"]:
        rules.append(
            "The same message of the same sender (under the name that you count it by) counts once within one time "
            "slot, across all files."
        )
    if values["least"]:
        rules.append(f"At the end drop counts below {values['least']}, and outer entries that have nothing left.")
    return rules


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    """The whole work in words."""
    f = values["function"]
    outer, inner = ("time slot", "sender") if values["time_first"] else ("sender", "time slot")
    goal = rng.choice(
        (
            f"The {values['theme']} write log files, and somebody counts by hand how often each of them had trouble. "
            f"Write `{f}(files)` so that nobody has to.",
            f"We need a table of incidents of the {values['theme']}: who, when, how many. `{f}(files)` shall make it.",
            f"Automate the incident count for the {values['theme']} with a function `{f}(files)`.",
        )
    )
    return Brief(
        goal,
        [
            "`files` maps the path of each log file to its whole text; lines end with `\\n`.",
            f"A line reads {_FORMS[values['form']]}.",
            "The time looks like `2024-03-05T14:07:09`. A line of another shape, or with a time that does not exist, "
            "is skipped.",
        ],
        _rules(values, rng),
        [
            f"Return a dict of dicts: {outer} → {inner} → number of lines (an int).",
            f"The time slot is {_BUCKETS[values['bucket']]}.",
            "What would be 0 or empty is left out; with nothing to count the result is `{}`.",
        ],
    )
