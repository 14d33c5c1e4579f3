"""Adding up the bookings of one table by the names of another.

Owns: the family `ledgers`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import csv
import io
import random
from typing import Any

OPTIONS = ("aliases", "state", "money", "repeats", "months", "unknown", "zero", "swapped")
FUNCTIONS = ("balance", "sum_up", "totals", "statement", "add_up", "reconcile")


class P:
    """Parameters, with an example of each."""

    number: str = "no"
    account: str = "account"
    amount: str = "amount"
    day: str = "day"
    title: str = "title"
    aliases: str = "also"
    state: str = ""
    void: tuple[str, ...] = ("void",)
    money: str = ""
    rates: tuple[tuple[str, int], ...] = (("usd", 90),)
    repeats: str = ""
    months: bool = False
    unknown: str = ""
    zero: bool = False
    swapped: bool = False
    names: tuple[str, ...] = ("Rent", "Tools")


def table(text: str) -> list[dict[str, str]]:
    rows = [[" ".join(cell.split()) for cell in cells] for cells in csv.reader(io.StringIO(text))]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:] if len(row) == len(rows[0])]


def solve(bookings: str, accounts: str) -> dict[str, Any]:
    titles: dict[str, str] = {}
    totals: dict[str, Any] = {}
    for row in table(accounts):
        if P.months:
            totals[row[P.title]] = {}
        else:
            totals[row[P.title]] = 0
        titles[row[P.title].lower()] = row[P.title]
    if P.aliases:
        for row in table(accounts):
            for alias in row[P.aliases].split("/"):
                if alias.strip():
                    titles.setdefault(alias.strip().lower(), row[P.title])
    if P.repeats:
        chosen: dict[str, dict[str, str]] = {}
    else:
        every = []
    for row in table(bookings):
        if P.state and row[P.state].lower() in P.void:
            continue
        if P.swapped and row[P.amount].lower() in titles and row[P.account].lstrip("-").isdigit():
            row[P.account], row[P.amount] = row[P.amount], row[P.account]
        if not row[P.amount].lstrip("-").isdigit():
            continue
        if P.repeats == "first" and row[P.number] in chosen:
            continue
        if P.repeats:
            chosen[row[P.number]] = row
        else:
            every.append(row)
    for row in chosen.values() if P.repeats else every:
        title = titles.get(row[P.account].lower())
        if title is None:
            if P.unknown:
                title = P.unknown
            else:
                continue
        value = int(row[P.amount])
        if P.money:
            if row[P.money].lower() not in dict(P.rates):
                continue
            value = value * dict(P.rates)[row[P.money].lower()] // 100
        if P.months:
            month = row[P.day][:7]
            if title not in totals:
                totals[title] = {}
            totals[title][month] = totals[title].get(month, 0) + value
        else:
            totals[title] = totals.get(title, 0) + value
    if P.zero:
        if P.months:
            totals = {title: {m: n for m, n in row.items() if n} for title, row in totals.items()}
        totals = {title: total for title, total in totals.items() if total}
    return totals


def again(bookings: str, accounts: str) -> dict[str, Any]:
    known = [row[P.title] for row in table(accounts)]
    lookup: dict[str, str] = {}
    if P.aliases:
        for row in reversed(table(accounts)):
            for alias in reversed(row[P.aliases].split("/")):
                lookup[alias.strip().lower()] = row[P.title]
        lookup.pop("", None)
    for name in known:
        lookup[name.lower()] = name
    entries = []
    for row in table(bookings):
        account, amount = row[P.account], row[P.amount]
        if P.swapped and amount.lower() in lookup and account.lstrip("-").isdigit():
            account, amount = amount, account
        if amount.lstrip("-").isdigit() and not (P.state and row[P.state].lower() in P.void):
            entries.append((row, account.lower(), int(amount)))
    if P.repeats == "first":
        entries = list({row[P.number]: entry for entry in reversed(entries) for row in [entry[0]]}.values())
    if P.repeats == "last":
        entries = list({row[P.number]: entry for entry in entries for row in [entry[0]]}.values())
    sums: dict[tuple[str, str], int] = {}
    for row, account, value in entries:
        title = lookup.get(account, P.unknown)
        if P.money:
            rate = dict(P.rates).get(row[P.money].lower())
            if rate is None:
                continue
            value = (value * rate - value * rate % 100) // 100
        if title:
            place = (title, row[P.day][:7] if P.months else "")
            sums[place] = sums.get(place, 0) + value
    result: dict[str, Any] = {name: {} if P.months else 0 for name in known}
    for (title, month), total in sums.items():
        if P.months:
            result.setdefault(title, {})
            if total or not P.zero:
                result[title][month] = total
        else:
            result[title] = total
    return {title: total for title, total in result.items() if total or not P.zero}


def make(rng: random.Random) -> list[Any]:
    out, other = io.StringIO(), io.StringIO()
    names = rng.sample(P.names, rng.randint(2, len(P.names)))
    writer = csv.writer(other, lineterminator="\n")
    writer.writerow([P.title] + ([P.aliases] if P.aliases else []))
    for name in names:
        row = [rng.choice([name, " " + name])]
        if P.aliases:
            row.append(
                rng.choice([name[:2] + "/ " + name[-2:], name[:3], "", "misc/" + name[0], names[0].lower() + "/"])
            )
        writer.writerow(row)
    writer = csv.writer(out, lineterminator="\n")
    heads = [P.number, P.day, P.account, P.amount]
    heads += ([P.state] if P.state else []) + ([P.money] if P.money else [])
    writer.writerow(heads)
    for _ in range(rng.randint(4, 14)):
        name = rng.choice(names)
        if P.aliases:
            name = rng.choice([name, name[:2], name[-2:], name[:3], "misc"])
        name = rng.choice([name, name, name.upper(), name.replace(" ", "  ") + " ", "lost " + name])
        amount = rng.choice(["100", "250", "-100", "75", "-33", "1", "n/a", ""])
        cells = {
            P.number: "n" + str(rng.randint(1, 7)),
            P.day: "2024-0" + str(rng.randint(1, 3)) + "-0" + str(rng.randint(1, 9)),
            P.account: name,
            P.amount: amount,
        }
        if P.swapped and rng.random() < 0.35:
            cells[P.account], cells[P.amount] = amount, name
        if P.state:
            cells[P.state] = rng.choice(["ok", "", P.void[0], P.void[-1].upper()])
        if P.money:
            cells[P.money] = rng.choice([*[code for code, _ in P.rates], P.rates[0][0].upper(), "xxx"])
        row = [cells[head] for head in heads]
        if rng.random() < 0.06:
            row = row[:-1]
        writer.writerow(row)
    return [out.getvalue(), other.getvalue()]
