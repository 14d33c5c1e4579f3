"""Finding the slow routes of an access log.

Owns: the family `slowest`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

OPTIONS = ("query", "numbers", "failed", "methods", "least", "units", "ties", "slash")
FILES = {"log": "access.log"}
FUNCTIONS = ("slowest", "slow_routes", "rank_paths", "worst", "top_routes", "latency_table")


class P:
    """Parameters, with an example of each."""

    statistic: str = "max"
    share: int = 90
    top: int = 3
    query: bool = False
    numbers: bool = False
    holder: str = ":id"
    failed: int = 0
    methods: tuple[str, ...] = ()
    least: int = 0
    units: bool = False
    ties: bool = False
    slash: bool = False
    count: bool = True
    routes: tuple[str, ...] = ("/cart", "/users/{}")


def parse(line: str) -> tuple[str, str, int, int] | None:
    """Method, path, status and milliseconds of a line; None where it is malformed."""
    parts = line.split()
    if len(parts) != 4 or not parts[2].isdigit():
        return None
    text = parts[3]
    if P.units:
        if text.endswith("ms") and text[:-2].isdigit():
            return parts[0], parts[1], int(parts[2]), int(text[:-2])
        whole, _, tenths = text[:-1].partition(".")
        if text.endswith("s") and whole.isdigit() and len(tenths) == 1 and tenths.isdigit():
            return parts[0], parts[1], int(parts[2]), int(whole) * 1000 + int(tenths) * 100
        return None
    return (parts[0], parts[1], int(parts[2]), int(text)) if text.isdigit() else None


def route(path: str) -> str:
    if P.query:
        path = path.split("?")[0]
    if P.slash and path.endswith("/") and path != "/":
        path = path[:-1]
    if P.numbers:
        path = "/".join(P.holder if part.isdigit() else part for part in path.split("/"))
    return path


def solve(log: str) -> list[list[Any]]:
    times: dict[str, list[int]] = {}
    for line in log.splitlines():
        entry = parse(line)
        if entry is None:
            continue
        method, path, status, taken = entry
        if P.failed and status >= P.failed:
            continue
        if P.methods and method not in P.methods:
            continue
        times.setdefault(route(path), []).append(taken)
    rows: list[list[Any]] = []
    for path, values in times.items():
        if P.least and len(values) < P.least:
            continue
        values.sort()
        if P.statistic == "max":
            value = values[-1]
        elif P.statistic == "mean":
            value = sum(values) // len(values)
        elif P.statistic == "total":
            value = sum(values)
        else:
            value = values[-(-len(values) * P.share // 100) - 1]
        if P.count:
            rows.append([path, value, len(values)])
        else:
            rows.append([path, value])
    if P.ties:
        rows.sort(key=lambda row: (-row[1], len(row[0]), row[0]))
    else:
        rows.sort(key=lambda row: (-row[1], row[0]))
    return rows[: P.top]


def again(log: str) -> list[list[Any]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for entry in map(parse, log.splitlines()):
        if entry is not None and not (P.failed and entry[2] >= P.failed) and (not P.methods or entry[0] in P.methods):
            groups[route(entry[1])].append(entry[3])
    found: list[list[Any]] = []
    for path in sorted(groups):
        ordered = sorted(groups[path], reverse=True)
        size = len(ordered)
        if P.least and size < P.least:
            continue
        if P.statistic == "max":
            value = max(ordered)
        elif P.statistic == "mean":
            value = (sum(ordered) - sum(ordered) % size) // size
        elif P.statistic == "total":
            value = sum(ordered)
        else:
            value = next(v for v in reversed(ordered) if sum(w <= v for w in ordered) * 100 >= P.share * size)
        found.append([path, value, size] if P.count else [path, value])
    if P.ties:
        found.sort(key=lambda row: len(str(row[0])))
    found.sort(key=lambda row: int(row[1]), reverse=True)
    return found[: P.top]


def make(rng: random.Random) -> list[Any]:
    lines = []
    speeds = [rng.randint(1, 30) * 100 for _ in range(4)]
    methods = [*P.methods, *P.methods, "GET", "PUT", "HEAD"]
    for _ in range(rng.randint(4, 18)):
        path = rng.choice(P.routes).replace("{}", rng.choice(["7", "12", "305", "x9"]))
        if P.query:
            path += rng.choice(["", "", "?page=2", "?a=1&b=2"])
        if P.slash:
            path = rng.choice([path, path, path + "/", "/"])
        status = rng.choice(["200", "200", "201", "302", "404", "499", "500", "503"])
        if P.failed and rng.random() < 0.2:
            status = str(P.failed - rng.randint(0, 1))
        taken = rng.choice(speeds) + rng.choice([0, 0, 0, 35])
        text = str(taken)
        if P.units:
            text = rng.choice([text + "ms", str(taken // 1000) + "." + str(taken // 100 % 10) + "s"])
            if rng.random() < 0.1:
                text = rng.choice(["ms", "1.25s", "3s", "3.s", "4.5m", "x.5s", "2.xs", "8.0", "5xms"])
        line = rng.choice(methods) + " " + path + " " + status + " " + text
        if rng.random() < 0.08:
            line = rng.choice(["", line + " -", line[:-1] + "?", line.replace(status, "---"), "GET /"])
        lines.append(line)
    return ["\n".join(lines) + "\n"]


_SITES = (
    ("a web shop", ("/cart", "/items/{}", "/items/{}/photos", "/pay", "/")),
    ("a library's catalogue", ("/books/{}", "/loans", "/readers/{}/loans", "/search", "/holds/{}")),
    ("a weather service", ("/stations/{}", "/now", "/maps/rain", "/stations/{}/days/{}", "/alerts")),
    ("a ticket office", ("/shows", "/shows/{}", "/seats/{}", "/orders", "/venues/{}/plan")),
    ("a parcel tracker", ("/parcels/{}", "/depots", "/depots/{}/queue", "/rates", "/label/{}")),
    ("a school's timetable", ("/classes/{}", "/rooms", "/rooms/{}", "/today", "/pupils/{}/week")),
)
_STATISTICS = {
    "max": "the longest time of one request",
    "mean": "the mean time, rounded down to a whole millisecond",
    "total": "the sum of all its times",
}


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    site, routes = rng.choice(_SITES)
    return {
        "site": site,
        "routes": routes,
        "statistic": rng.choice(("max", "mean", "total", "share")),
        "share": rng.choice((50, 75, 80, 90)),
        "top": rng.randint(2, 4),
        "query": "query" in options,
        "numbers": "numbers" in options,
        "holder": rng.choice((":id", "*", "{n}", "#")),
        "failed": rng.choice((400, 500)) if "failed" in options else 0,
        "methods": rng.choice((("GET",), ("POST", "PUT"), ("GET", "POST"))) if "methods" in options else (),
        "least": rng.randint(2, 3) if "least" in options else 0,
        "units": "units" in options,
        "ties": "ties" in options,
        "slash": "slash" in options,
        "count": rng.random() < 0.5,
    }


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    share = values["share"]
    statistic = _STATISTICS.get(
        values["statistic"],
        f"the {share}th percentile by nearest rank: the smallest of its times such that at least {share} % of its "
        "times are not greater",
    )
    rules: list[str] = []
    if values["failed"]:
        rules.append(f"Requests with a status of {values['failed']} or more are left out.")
    if values["methods"]:
        rules.append(f"Only requests with the method {said(values['methods'], 'or')} count.")
    if values["query"]:
        rules.append(
            rng.choice(
                ("Cut a path at its first `?`.", "A `?` in a path, and what follows it, is no part of the route.")
            )
        )
    if values["slash"]:
        rules.append("One slash at the very end of a path is dropped, except that `/` stays.")
    if values["numbers"]:
        rules.append(
            f"Segments of a path (between slashes) that consist of digits only are replaced by "
            f"`{values['holder']}`, so "
            "that such paths are one route."
        )
    if values["least"]:
        rules.append(f"A route with fewer than {values['least']} requests that count is not ranked.")
    tie = "the shorter route comes first, and among equally long ones" if values["ties"] else "the route that is"
    rules.append(f"Slowest first; where two are equally slow, {tie} first in alphabetical order of characters.")
    rules.append(f"Give the first {values['top']} only, or as many as there are.")
    form = (
        "a time is either whole milliseconds as in `250ms`, or seconds with exactly one decimal as in `1.2s`"
        if values["units"]
        else "a time is a whole number of milliseconds as in `250`"
    )
    goal = rng.choice(
        (
            f"Which pages of {values['site']} are slow? Write `{values['function']}(log)`, which tells from the "
            "access log.",
            f"The people who run {values['site']} want a ranking of its slow routes each night: "
            f"`{values['function']}(log)`.",
            f"`{values['function']}(log)` reads the access log of {values['site']} and names the routes that take "
            "longest.",
        )
    )
    last = "and the number of its requests that were looked at" if values["count"] else "and nothing else"
    return Brief(
        goal,
        [
            "`log` is the text of the log, one request a line: `METHOD PATH STATUS TIME`, parted by white space.",
            f"The status is digits; {form}.",
            "Lines of any other shape are passed over.",
        ],
        rules,
        [
            f"Return a list of lists: the route, its time in milliseconds as an int, {last}.",
            f"A route's time is {statistic}.",
        ],
    )
