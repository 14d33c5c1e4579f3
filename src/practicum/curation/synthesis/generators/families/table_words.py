"""The words of the family `table`: what tables are about, and how their rules are said.

Owns: `draw`, `describe`. Invariant: each rule that `table.solve` follows is said. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

# what it is, then the columns: key, name, day, amount, kind, weight, mail, phone
_TABLES = (
    ("the orders of a plant nursery", "order no", "customer", "ordered", "price", "season", "parcel", "mail", "phone"),
    ("the members of a sailing club", "member", "name", "joined", "fee", "class", "sail", "email", "mobile"),
    ("the loans of a tool library", "loan", "borrower", "due", "deposit", "trade", "load", "address", "landline"),
    ("the donations to a museum", "entry", "donor", "received", "value", "material", "mass", "contact", "telephone"),
    ("the harvest of a vineyard", "lot", "picker", "picked", "wage", "grape", "yield", "inbox", "cell"),
    (
        "the adoptions of an animal shelter",
        "case",
        "family",
        "adopted",
        "donation",
        "animal",
        "heaviness",
        "post",
        "call",
    ),
    ("the repairs of a bicycle shop", "job", "owner", "brought", "bill", "part", "bike", "e-mail", "tel"),
    ("the entries of a baking contest", "stall", "baker", "baked", "prize", "flour", "loaf", "reply to", "number"),
)
_KINDS = (
    ((("spr", "spring"), ("spring", "spring"), ("aut", "autumn"), ("fall", "autumn"), ("autumn", "autumn")), "none"),
    ((("a", "first"), ("1st", "first"), ("first", "first"), ("b", "second"), ("2nd", "second")), "unknown"),
    ((("wd", "wood"), ("wood", "wood"), ("timber", "wood"), ("mtl", "metal"), ("metal", "metal")), "other"),
    ((("k9", "dog"), ("dog", "dog"), ("kitty", "cat"), ("cat", "cat")), "else"),
    ((("wht", "white"), ("white", "white"), ("blanc", "white"), ("red", "red"), ("rouge", "red")), "?"),
    ((("brk", "brake"), ("brake", "brake"), ("tyre", "tire"), ("tire", "tire")), "misc"),
)
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d %b %Y", "%Y/%m/%d")
_SPOKEN = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%b": "Mon"}
_NAMES = (
    ("Zoë Brandt", "Jürgen", "Ana Sá", "Per", "Łukasz W"),
    ("André", "Björk G", "Max", "Chloé Roy", "Dvořák"),
    ("Renée", "Müller & Co", "Li Wei", "François", "Ødegård"),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    table = rng.choice(_TABLES)
    kinds, unknown = rng.choice(_KINDS)
    has = {name: name in options for name in ("dates", "amounts", "kinds", "weights", "contacts")}
    if not any(has.values()):
        has[rng.choice(("dates", "amounts", "kinds", "weights"))] = True
    thousands, point = rng.choice(((",", "."), (".", ","), ("'", ".")))
    dates = rng.sample(_DATES, 3)
    if "%d/%m/%Y" in dates and "%m/%d/%Y" in dates:
        dates.remove("%m/%d/%Y")
    values = {
        "what": table[0],
        "key": table[1],
        "name": table[2],
        "day": table[3] if has["dates"] else "",
        "amount": table[4] if has["amounts"] else "",
        "kind": table[5] if has["kinds"] else "",
        "weight": table[6] if has["weights"] else "",
        "mail": table[7] if has["contacts"] else "",
        "phone": table[8] if has["contacts"] else "",
        "comma": rng.choice((",", ";", "|")),
        "dates": tuple(dates),
        "currency": rng.choice(("€", "$", "£", "kr")),
        "thousands": thousands,
        "point": point,
        "brackets": rng.random() < 0.5,
        "kinds": tuple(rng.sample(kinds, len(kinds))),
        "unknown": unknown,
        "garbled": "garbled" in options,
        "missing": rng.choice((("n/a", "-"), ("null", "none", "?"), ("unknown", "--"))) if "missing" in options else (),
        "headers": "headers" in options,
        "totals": rng.choice(("total", "sum", "all")) if "totals" in options else "",
        "names": rng.choice(_NAMES),
        "rows": 14,
    }
    repeats = ["first", "last", "filled"] + ["newest"] * has["dates"]
    needs = [values[name] for name in ("name", "day", "amount", "weight") if values[name]]
    values["repeats"] = rng.choice(repeats) if "repeats" in options else ""
    values["need"] = rng.choice(needs) if "need" in options else ""
    orders = [values[name] for name in ("name", "day") if values[name]]
    values["order"] = rng.choice(orders) if "order" in options else values["key"]
    return values


def columns(values: Mapping[str, Any]) -> list[str]:
    """The table's columns, in the order of a written result."""
    roles = ("key", "name", "day", "amount", "kind", "weight", "mail", "phone")
    return [values[role] for role in roles if values[role]]


def _spoken(form: str) -> str:
    for code, words in _SPOKEN.items():
        form = form.replace(code, words)
    return f"`{form}`"


def _cells(v: Mapping[str, Any], nothing: str) -> list[str]:
    rules = []
    if v["garbled"]:
        rules.append(
            "Some cells were decoded wrongly: their UTF-8 bytes were read as Latin-1 (`Zoë` became "
            "`ZoÃ«`). If all of a "
            "cell can be turned into Latin-1 bytes and these are valid UTF-8, take that text in its "
            "place; else leave it. "
            "Do so before anything else."
        )
    rules.append("White space of any kind around a cell is dropped, inside it each run becomes one blank.")
    if v["missing"]:
        rules.append(
            f"A cell that is {said(v['missing'], 'or')}, white space aside and in any case of letters, counts as empty."
        )
    rules.append(f"`{v['key']}` is put into capitals; a row without it is dropped.")
    if v["totals"]:
        rules.append(f"A row whose `{v['key']}` is the word `{v['totals']}`, in any case, is a summary and is dropped.")
    if v["mail"]:
        rules.append(
            f"Now and then `{v['mail']}` and `{v['phone']}` were swapped: where `{v['mail']}` has no `@` and "
            f"`{v['phone']}` has one, swap them back. "
            f"Then `{v['mail']}` goes into lower case, and of `{v['phone']}` only digits stay."
        )
    if v["day"]:
        forms = ", ".join(map(_spoken, v["dates"]))
        named = ", `Mon` is Jan, Feb and so on" if any("%b" in form for form in v["dates"]) else ""
        several = "; try them in this order" if len(v["dates"]) > 1 else ""
        rules.append(
            f"`{v['day']}` may be written as {forms}{several} (days and months may lack their leading zero{named}). "
            f"Write it as `YYYY-MM-DD`; what is no such date becomes empty."
        )
    if v["amount"]:
        brackets = ", or round brackets around it," if v["brackets"] else ""
        rules.append(
            f"`{v['amount']}` becomes an int, in hundredths. Take out `{v['currency']}` and blanks; a "
            f"leading `-`{brackets} "
            f"means negative; then `{v['thousands']}` parts thousands and may stand anywhere before "
            f"the `{v['point']}`, which "
            f"is followed by exactly two decimals, or is missing together with them. Anything else is {nothing}."
        )
    if v["weight"]:
        rules.append(
            f"`{v['weight']}` becomes an int in grams: digits alone or with `g` are grams; with `kg` "
            f"at most three decimals "
            f"after a `.` are allowed, and at least one digit before it. Case and blanks do not "
            f"matter. Else it is {nothing}."
        )
    if v["kind"]:
        groups: dict[str, list[str]] = {}
        for raw, right in v["kinds"]:
            groups.setdefault(right, []).append(raw)
        listed = "; ".join(f"{said(raws, 'or')} → `{right}`" for right, raws in groups.items())
        rules.append(
            f"`{v['kind']}`, whatever the case: {listed}; any other text becomes `{v['unknown']}`, empty stays empty."
        )
    return rules


def _rows(v: Mapping[str, Any]) -> list[str]:
    rules = []
    if v["need"]:
        rules.append(f"Rows in which `{v['need']}` is empty once all cells are cleaned are dropped.")
    if v["repeats"]:
        how = {
            "first": "the first one stays",
            "last": "the last one stays",
            "newest": f"the one with the latest `{v['day']}` stays (an empty one is the earliest; of equals the first)",
            "filled": "the first stays, and each of its empty cells takes the first value that a later one has there",
        }[v["repeats"]]
        rules.append(f"Of several rows with one `{v['key']}`, {how}.")
    if v["order"] == v["key"]:
        rules.append(f"Sort by `{v['key']}` as text; rows with the same `{v['key']}` stay in their order.")
    else:
        rules.append(
            f"Sort by `{v['order']}`, then `{v['key']}`, both as text; rows that are equal in both stay in their order."
        )
    return rules


def _values(v: Mapping[str, Any]) -> str:
    figures = [v[role] for role in ("amount", "weight") if v[role]]
    if not figures:
        return "Values are str, empty where there is nothing."
    said_so = f"{said(figures)} {'are ints' if len(figures) > 1 else 'is an int'} or `None`"
    return f"Values are str, empty where there is nothing; but {said_so}."


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    v, is_file = values, values["as_file"]
    nothing = "left empty" if is_file else "`None`"
    source = f"`{v['source']}`" if is_file else f"`{v['function']}(text)` gets"
    if is_file:
        goal = rng.choice(
            (
                f"{source} holds {v['what']}, typed in by many hands. Make a clean table of it, `{v['target']}`.",
                f"Before {v['what']} can be counted, {source} has to be put in order; the result is `{v['target']}`.",
                f"Clean {source} ({v['what']}) and save what comes out as `{v['target']}`. Only this "
                f"file will be looked at.",
            )
        )
    else:
        goal = rng.choice(
            (
                f"{source} {v['what']} as a messy table and returns clean rows.",
                f"Spreadsheets with {v['what']} arrive in a sorry state. {source} one and brings it into order.",
                f"Write the cleaning step for {v['what']}: {source} a table as it was typed in.",
            )
        )
    table = source if is_file else "`text`"
    inputs = [
        f"{table} is CSV with `{v['comma']}` between cells and the usual double quotes.",
        "The first line names the columns, in any order; case and surplus blanks in the names do not matter: "
        f"{said(columns(v))}.",
        "Lines with more or fewer cells than the first are dropped"
        + (", and so is a line that repeats the names of the columns." if v["headers"] else "."),
    ]
    if is_file:
        result = [
            f"CSV in UTF-8 with `{v['comma']}` between cells, lines ended by `\\n`, quotes only where needed.",
            f"The first line names the columns, in this order: {said(columns(v))}.",
        ]
    else:
        result = [
            "Return a list of dicts, one a row, from the names of the columns (in lower case) to values.",
            _values(v),
        ]
    return Brief(goal, inputs, [*_cells(v, nothing), *_rows(v)], result)
