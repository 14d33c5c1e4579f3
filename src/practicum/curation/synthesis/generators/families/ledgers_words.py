"""The words of the family `ledgers`: books, and how their rules are said.

Owns: `draw`, `describe`. Invariant: each rule that `ledgers.solve` follows is said. Must not know: tasks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

_BOOKS = (
    (
        "a village hall",
        ("slip", "title", "cents", "posted", "name", "synonyms"),
        ("Heating", "Chairs", "Stage lights", "Roof"),
    ),
    ("a chess club", ("voucher", "pot", "points", "date", "pot", "nicknames"), ("Boards", "Old clocks", "Travel")),
    (
        "a research ship",
        ("order", "cost centre", "units", "when", "centre", "codes"),
        ("Fuel", "Ship galley", "Winch", "Lab"),
    ),
    (
        "a film crew",
        ("receipt", "budget", "pence", "shot on", "budget", "short names"),
        ("Camera", "Sound crew", "Catering"),
    ),
    (
        "a farm shop",
        ("till no", "shelf", "sum", "sold", "shelf", "labels"),
        ("Cheese", "Wild honey", "Roots", "Flowers"),
    ),
    ("a youth orchestra", ("entry", "fund", "amount", "day", "fund", "variants"), ("Strings", "New scores", "Tour")),
    (
        "an observatory",
        ("request", "project", "minutes", "night", "project", "old names"),
        ("Comets", "Far quasars", "Mars"),
    ),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    what, (number, account, amount, day, title, aliases), names = rng.choice(_BOOKS)
    rates = rng.choice(((("eur", 100), ("usd", 92)), (("chf", 105), ("sek", 9), ("eur", 100)), (("a", 50), ("b", 125))))
    return {
        "what": what,
        "number": number,
        "account": account,
        "amount": amount,
        "day": day,
        "title": title,
        "names": names,
        "aliases": aliases if "aliases" in options else "",
        "state": rng.choice(("status", "state", "mark")) if "state" in options else "",
        "void": rng.choice((("void",), ("cancelled", "storno"), ("test", "draft"))),
        "money": rng.choice(("currency", "unit", "kind")) if "money" in options else "",
        "rates": rates,
        "repeats": rng.choice(("first", "last")) if "repeats" in options else "",
        "months": "months" in options,
        "unknown": rng.choice(("?", "unassigned", "elsewhere")) if "unknown" in options else "",
        "zero": "zero" in options,
        "swapped": "swapped" in options,
    }


def _rules(v: Mapping[str, Any]) -> list[str]:
    rules = []
    if v["state"]:
        rules.append(f"Rows with {said(v['void'], 'or')} as `{v['state']}`, in any case, do not count at all.")
    if v["swapped"]:
        rules.append(
            f"If `{v['amount']}` holds a name that `accounts` knows and `{v['account']}` an integer, the two were "
            "swapped: take them the other way round."
        )
    rules.append(f"A row counts only if `{v['amount']}` is an integer such as `12` or `-5`; other rows are left out.")
    if v["repeats"]:
        counted = f"an integer as `{v['amount']}`" + (f", and not {said(v['void'], 'or')}," if v["state"] else "")
        rules.append(
            f"Of several rows with the same `{v['number']}` (all with {counted.rstrip(',')}) only the "
            f"{v['repeats']} one counts."
        )
    names = f"a `{v['title']}`" + (f", or one of its `{v['aliases']}`" if v["aliases"] else "")
    rules.append(
        f"The `{v['account']}` of a booking names {names} of `accounts`; case does not matter."
        + (f" `{v['aliases']}` are parted by `/`, blanks around them do not count." if v["aliases"] else "")
        + (" A name wins over such a variant, an earlier variant over a later one." if v["aliases"] else "")
    )
    rules.append(
        f"Rows that name nothing that `accounts` knows are added up as `{v['unknown']}`."
        if v["unknown"]
        else "Rows that name nothing that `accounts` knows are left out."
    )
    if v["money"]:
        rates = ", ".join(f"`{code}` × {rate}" for code, rate in v["rates"])
        rules.append(
            f"Each amount is converted by its `{v['money']}` (any case): {rates}, and then divided by "
            f"100, rounded down "
            f"(towards minus infinity), row by row. Rows with another `{v['money']}` are left out."
        )
    return rules


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    v, f = values, values["function"]
    goal = rng.choice(
        (
            f"The books of {v['what']} do not add up. `{f}(bookings, accounts)` shall say what each "
            f"`{v['title']}` comes to.",
            f"Write `{f}(bookings, accounts)`, which sums up what {v['what']} booked.",
            f"For {v['what']} we need totals for each `{v['title']}` from two untidy tables: "
            f"`{f}(bookings, accounts)`.",
        )
    )
    extra = [name for name in (v["state"], v["money"]) if name]
    heads = said([v["number"], v["day"], v["account"], v["amount"], *extra])
    per = (
        f"to a dict from month (`YYYY-MM`, the start of `{v['day']}`) to its sum"
        if v["months"]
        else "to its sum, an int"
    )
    result = [f"Return a dict from `{v['title']}`, as written in `accounts`, {per}."]
    if v["zero"]:
        result.append("Leave out sums of 0" + (" and what then has no month." if v["months"] else "."))
    else:
        empty = "an empty dict" if v["months"] else "0"
        result.append(f"Each `{v['title']}` of `accounts` occurs, with {empty} where nothing was booked.")
    columns = said([v["title"], *([v["aliases"]] if v["aliases"] else [])])
    return Brief(
        goal,
        [
            f"`bookings` is CSV (commas, a first line of names) with the columns {heads}.",
            f"`accounts` is CSV too; its columns: {columns}.",
            "In both, blanks around a cell do not count, runs of them inside are one, and rows of "
            "another length than the "
            "first line are skipped.",
        ],
        _rules(v),
        result,
    )
