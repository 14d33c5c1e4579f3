"""Collecting the figures of many small reports in one table.

Owns: the family `collect`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief

OPTIONS = ("drafts", "latest", "total", "thousands", "several", "done", "default", "rank")
FUNCTIONS = ("collect", "gather", "make_summary", "compile_table", "extract", "report")


class P:
    """Parameters, with an example of each."""

    name: str = "Station"
    figure: str = "Rain"
    day: str = "Day"
    mark: str = ":"
    target: str = "summary.csv"
    comma: str = ","
    header: bool = True
    drafts: str = ""
    latest: bool = False
    total: str = ""
    thousands: str = ""
    several: bool = False
    done: str = ""
    default: bool = False
    rank: bool = False
    names: tuple[str, ...] = ("Ems", "Isar")


def fields(text: str) -> dict[str, str]:
    """The first value of each key of a report."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        key, parted, value = line.partition(P.mark)
        if parted:
            found.setdefault(key.strip(), value.strip())
    return found


def figure(text: str) -> int | None:
    if P.thousands:
        text = text.replace(P.thousands, "")
    return int(text) if text.isascii() and text.isdigit() else None


def row_of(report: str) -> tuple[str, str, int] | None:
    found = fields(report)
    if P.drafts and found.get("Status") == P.drafts:
        return None
    if not found.get(P.name) or not found.get(P.day):
        return None
    value = figure(found.get(P.figure, "0" if P.default else ""))
    return None if value is None else (found[P.name], found[P.day], value)


def solve(files: dict[str, str]) -> dict[str, str]:
    result = dict(files)
    rows: list[tuple[str, str, int]] = []
    for path in sorted(files) if P.latest else files:
        if not path.endswith(".txt") or "/" in path:
            continue
        if P.several:
            found = [row for row in map(row_of, files[path].split("\n---\n")) if row is not None]
            rows += found
            if P.done:
                used = len(found) > 0
        else:
            row = row_of(files[path])
            if P.done:
                used = row is not None
            if row is not None:
                rows.append(row)
        if P.done and used:
            result[P.done + "/" + path] = result.pop(path)
    if P.latest:
        newest: dict[str, tuple[str, str, int]] = {}
        for row in rows:
            if row[0] not in newest or row[1] >= newest[row[0]][1]:
                newest[row[0]] = row
        rows = list(newest.values())
    if P.rank:
        rows.sort(key=lambda row: (-row[2], row[0], row[1]))
    else:
        rows.sort(key=lambda row: (row[0], row[1], row[2]))
    lines = [P.comma.join((row[0], row[1], str(row[2]))) for row in rows]
    if P.header:
        lines.insert(0, P.comma.join((P.name, P.day, P.figure)))
    if P.total:
        lines.append(P.comma.join((P.total, str(len(rows)), str(sum(row[2] for row in rows)))))
    result[P.target] = "".join(line + "\n" for line in lines)
    return result


def again(files: dict[str, str]) -> dict[str, str]:
    result = {path: text for path, text in files.items() if path != P.target}
    entries: list[list[Any]] = []
    for path in sorted(name for name in files if "/" not in name and name[-4:] == ".txt"):
        before = len(entries)
        for report in files[path].split("\n---\n") if P.several else (files[path],):
            values: dict[str, str] = {}
            for line in reversed([line for line in report.split("\n") if P.mark in line]):
                at = line.index(P.mark)
                values[line[:at].strip()] = line[at + len(P.mark) :].strip()
            if P.drafts and values.get("Status", "") == P.drafts:
                continue
            number = values.get(P.figure, "0" if P.default else "-")
            if P.thousands:
                number = "".join(number.split(P.thousands))
            if number.isdecimal() and values.get(P.name, "") != "" and values.get(P.day, "") != "":
                entries.append([values[P.name], values[P.day], int(number)])
        if P.done and len(entries) > before:
            result[f"{P.done}/{path}"] = result.pop(path)
    if P.latest:
        kept = []
        for at, entry in enumerate(entries):
            rivals = [(other[1], place) for place, other in enumerate(entries) if other[0] == entry[0]]
            if max(rivals) == (entry[1], at):
                kept.append(entry)
        entries = kept
    entries.sort()
    if P.rank:
        entries = sorted(entries, key=lambda entry: (-int(entry[2]), str(entry[0]), str(entry[1])))
    text = f"{P.name}{P.comma}{P.day}{P.comma}{P.figure}\n" if P.header else ""
    for entry in entries:
        text += f"{entry[0]}{P.comma}{entry[1]}{P.comma}{entry[2]}\n"
    if P.total:
        text += f"{P.total}{P.comma}{len(entries)}{P.comma}{sum(int(entry[2]) for entry in entries)}\n"
    return {**result, P.target: text}


def make(rng: random.Random) -> list[Any]:
    files = {}
    for number in range(rng.randint(2, 6)):
        reports = []
        for _ in range(rng.randint(1, 3) if P.several else 1):
            value = rng.choice(["0", "7", "12", "940", "12", "n/a", ""])
            if P.thousands:
                value = rng.choice([value, "1" + P.thousands + "250", "1250", "12" + P.thousands + "000"])
            day = "2024-0" + str(rng.randint(1, 2)) + "-1" + str(rng.randint(0, 1))
            lines = [P.name + P.mark + " " + rng.choice(P.names), P.day + P.mark + " " + day]
            lines.append(P.figure + " " + P.mark + value)
            if P.drafts and rng.random() < 0.4:
                lines.append("Status" + P.mark + " " + rng.choice([P.drafts, "fine", P.drafts + "?"]))
            if rng.random() < 0.25:
                lines.append(P.figure + P.mark + " 5")
            if rng.random() < 0.4:
                lines.insert(
                    rng.randint(0, 2), rng.choice(["Observed by Kim", "", "Note" + P.mark + " a" + P.mark + "b"])
                )
            if rng.random() < 0.2:
                lines.pop(rng.randint(0, 2))
            elif rng.random() < 0.1:
                lines[rng.randint(0, 1)] = rng.choice([P.name, P.day]) + P.mark
            rng.shuffle(lines)
            reports.append("\n".join(lines))
        name = rng.choice(["r", "report-", "x/"]) + str(number) + rng.choice([".txt", ".txt", ".txt", ".md"])
        files[name] = "\n---\n".join(reports) + "\n"
    if rng.random() < 0.4:
        files[P.target] = "old\n"
    return [files]


_REPORTS = (
    ("rain gauges", "Station", "Rain", "Day", ("Ems", "Isar", "Lech")),
    ("school kitchens", "School", "Meals", "Date", ("Oak Lane", "Hilltop", "Abbey")),
    ("bee hives", "Hive", "Grams", "Weighed", ("Blue", "Old oak", "Roof")),
    ("toll bridges", "Bridge", "Cars", "Counted", ("Fen", "Mill", "Castle")),
    ("blood drives", "Town", "Donors", "Held", ("Aylsham", "Cromer", "Holt")),
    ("night buses", "Line", "Riders", "Night", ("N1", "N7", "N30")),
    ("allotments", "Plot", "Litres", "Read on", ("A4", "B12", "C2")),
    ("ski lifts", "Lift", "Rides", "Day", ("Valley", "Glacier", "Bowl")),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    what, name, number, day, names = rng.choice(_REPORTS)
    comma = rng.choice((",", ";", "\t"))
    ending = ".tsv" if comma == "\t" else ".csv"
    return {
        "what": what,
        "name": name,
        "figure": number,
        "day": day,
        "names": names,
        "mark": rng.choice((":", " =", " is", "|")),
        "target": rng.choice(("summary", "table", "all.txt", "figures")) + ending,
        "comma": comma,
        "header": rng.random() < 0.7,
        "drafts": rng.choice(("draft", "provisional", "test")) if "drafts" in options else "",
        "latest": "latest" in options,
        "total": rng.choice(("total", "all", "sum")) if "total" in options else "",
        "thousands": rng.choice((".", ",", "'", "_")) if "thousands" in options else "",
        "several": "several" in options,
        "done": rng.choice(("done", "read", "old")) if "done" in options else "",
        "default": "default" in options,
        "rank": "rank" in options,
    }


def _rules(v: Mapping[str, Any]) -> list[str]:
    rules = []
    if v["several"]:
        rules.append("A file may hold several reports, parted by lines that are exactly `---`.")
    if v["drafts"]:
        rules.append(f"A report whose `Status` is `{v['drafts']}`, exactly, is passed over.")
    rules.append(f"A report without `{v['name']}` or `{v['day']}`, or with an empty one, is passed over.")
    if v["thousands"]:
        rules.append(f"In `{v['figure']}` every `{v['thousands']}` is a separator of thousands: take it out.")
    shape = "digits only, once its separators are taken out" if v["thousands"] else "digits only"
    rules.append(
        f"`{v['figure']}` must be {shape}; a report in which it is anything else, or empty, is passed over. "
        + (
            f"A report without the key `{v['figure']}` counts with 0."
            if v["default"]
            else f"So is a report without the key `{v['figure']}`."
        )
    )
    if v["done"]:
        rules.append(
            f"A file moves into the sub-folder `{v['done']}`, under its own name, if it holds at least one report that "
            "is not passed over" + (", even one in whose place a later one stands." if v["latest"] else ".")
        )
    if v["latest"]:
        rules.append(
            f"Of several reports with the same `{v['name']}`, leaving aside those that are passed over, only the one "
            f"with the greatest `{v['day']}` stays (compare the texts); of equal ones the last, with files in sorted "
            "order of names."
        )
    order = f"the greatest `{v['figure']}` first, equal ones by" if v["rank"] else "by"
    last = "" if v["rank"] else f", then `{v['figure']}` as a number"
    rules.append(f"The lines of reports are sorted: {order} `{v['name']}`, then `{v['day']}`{last}.")
    return rules


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    v, f = values, values["function"]
    goal = rng.choice(
        (
            f"Every day small reports about {v['what']} arrive as text files. `{f}(folder)` shall turn them into one "
            "table.",
            f"Write `{f}(folder)`: it collects the reports about {v['what']} in a single file.",
            f"Someone retypes the figures of {v['what']} by hand. Spare them that, with `{f}(folder)`.",
        )
    )
    comma = "a tab" if v["comma"] == "\t" else f"`{v['comma']}`"
    result = [f"Write `{v['target']}` into the folder, in place of one that may be there, each line ended by `\\n`."]
    if v["header"]:
        result.append(f"The first line names the columns: `{v['name']}`, `{v['day']}`, `{v['figure']}`.")
    result.append(
        f"There is one line for each report that stays: its `{v['name']}`, its `{v['day']}` and its `{v['figure']}`, "
        f"the latter as a plain number. {comma[:1].upper()}{comma[1:]} parts the cells of every line."
    )
    if v["total"]:
        result.append(
            f"The very last line is a total: `{v['total']}`, the number of reports that stay, the sum of their "
            f"`{v['figure']}`."
        )
    result.append("Files that are not spoken of here stay as they are, and nothing need be returned.")
    return Brief(
        goal,
        [
            "`folder` is a path. The reports are the files directly in it (not deeper) whose names end in `.txt`.",
            f"Their lines read `key{v['mark']} value`, parted at the first `{v['mark']}`; blanks "
            f"around key and value do not "
            "count. Other lines mean nothing. If a key comes twice in a report, the first one counts.",
        ],
        _rules(v),
        result,
    )
