"""Cleaning one messy table.

Owns: the family `table`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import contextlib
import csv
import io
import random
import re
from datetime import date, datetime
from typing import Any

OPTIONS = (
    *("dates", "amounts", "kinds", "weights", "contacts", "garbled", "missing", "headers", "totals", "repeats", "need"),
    "order",
)
FILES = {"text": "table.csv"}
FUNCTIONS = ("clean", "tidy_rows", "normalise", "scrub", "read_clean", "repair_table", "load_rows")


class P:
    """Parameters, with an example of each. A column that the table does not have is ""."""

    key: str = "id"
    name: str = "name"
    day: str = "ordered"
    amount: str = "price"
    kind: str = "colour"
    weight: str = "weight"
    mail: str = "mail"
    phone: str = "phone"
    comma: str = ","
    dates: tuple[str, ...] = ("%Y-%m-%d", "%d.%m.%Y")
    currency: str = "€"
    thousands: str = ","
    point: str = "."
    brackets: bool = True
    kinds: tuple[tuple[str, str], ...] = (("r", "red"), ("red", "red"))
    unknown: str = "other"
    garbled: bool = True
    missing: tuple[str, ...] = ("n/a", "-")
    headers: bool = True
    totals: str = "total"
    repeats: str = "first"
    need: str = "price"
    order: str = "id"
    names: tuple[str, ...] = ("Zoë", "Jürgen", "Ana")
    rows: int = 12


def plain(cell: str) -> str:
    if P.garbled:
        with contextlib.suppress(ValueError):
            cell = cell.encode("latin-1").decode("utf-8")
    cell = " ".join(cell.split())
    if P.missing and cell.lower() in P.missing:
        return ""
    return cell


def day_of(text: str) -> str:
    for form in P.dates:
        try:
            return datetime.strptime(text, form).strftime("%Y-%m-%d")
        except ValueError:
            continue
    return ""


def cents_of(text: str) -> int | None:
    text = text.replace(P.currency, "").replace(" ", "")
    sign = 1
    if P.brackets and text.startswith("(") and text.endswith(")"):
        sign = -1
        text = text[1:-1]
    elif text.startswith("-"):
        sign = -1
        text = text[1:]
    whole, _, rest = text.replace(P.thousands, "").partition(P.point)
    if not whole.isdigit() or len(rest) not in (0, 2) or not (whole + rest).isdigit():
        return None
    return sign * (int(whole) * 100 + int(rest or "0"))


def grams_of(text: str) -> int | None:
    text = text.lower().replace(" ", "")
    if text.endswith("kg"):
        whole, _, rest = text[:-2].partition(".")
        if not (whole + rest).isdigit() or not whole or len(rest) > 3:
            return None
        return int(whole) * 1000 + int(rest.ljust(3, "0"))
    text = text[:-1] if text.endswith("g") else text
    return int(text) if text.isdigit() else None


def solve(text: str) -> list[dict[str, Any]]:
    lines = list(csv.reader(io.StringIO(text), delimiter=P.comma))
    head = [" ".join(cell.split()).lower() for cell in lines[0]]
    rows: list[dict[str, Any]] = []
    for cells in lines[1:]:
        if len(cells) != len(head):
            continue
        if P.headers and [" ".join(cell.split()).lower() for cell in cells] == head:
            continue
        row: dict[str, Any] = dict(zip(head, map(plain, cells), strict=True))
        row[P.key] = row[P.key].upper()
        if not row[P.key]:
            continue
        if P.totals and row[P.key] == P.totals.upper():
            continue
        if P.mail and "@" not in row[P.mail] and "@" in row[P.phone]:
            row[P.mail], row[P.phone] = row[P.phone], row[P.mail]
        if P.mail:
            row[P.mail] = row[P.mail].lower()
            row[P.phone] = "".join(sign for sign in row[P.phone] if sign.isdigit())
        if P.day:
            row[P.day] = day_of(row[P.day])
        if P.amount:
            row[P.amount] = cents_of(row[P.amount])
        if P.weight:
            row[P.weight] = grams_of(row[P.weight])
        if P.kind and row[P.kind]:
            row[P.kind] = dict(P.kinds).get(row[P.kind].lower(), P.unknown)
        if P.need and row[P.need] in ("", None):
            continue
        rows.append(row)
    if P.repeats:
        kept: dict[str, dict[str, Any]] = {}
        for row in rows:
            if row[P.key] not in kept:
                kept[row[P.key]] = row
                continue
            if P.repeats == "last":
                kept[row[P.key]] = row
            if P.repeats == "newest" and row[P.day] > kept[row[P.key]][P.day]:
                kept[row[P.key]] = row
            if P.repeats == "filled":
                for name in head:
                    if kept[row[P.key]][name] in ("", None):
                        kept[row[P.key]][name] = row[name]
        rows = list(kept.values())
    if P.order == P.key:
        rows.sort(key=lambda row: row[P.key])
    else:
        rows.sort(key=lambda row: (row[P.order], row[P.key]))
    return rows


def written(text: str) -> str:
    rows = solve(text)
    out = io.StringIO()
    names = [name for name in (P.key, P.name, P.day, P.amount, P.kind, P.weight, P.mail, P.phone) if name]
    writer = csv.writer(out, delimiter=P.comma, lineterminator="\n")
    writer.writerows([names, *(["" if row[name] is None else row[name] for name in names] for row in rows)])
    return out.getvalue()


def again(text: str) -> list[dict[str, Any]]:
    first, *others = list(csv.reader(io.StringIO(text), delimiter=P.comma))
    names = [re.sub(r"\s+", " ", cell.strip()).lower() for cell in first]
    rows: list[dict[str, Any]] = []
    for cells in [cells for cells in others if len(cells) == len(names)]:
        cleaned = []
        for cell in cells:
            if P.garbled:
                data = bytes(ord(sign) for sign in cell) if all(ord(sign) < 256 for sign in cell) else b"\xff"
                repaired = data.decode("utf-8", "replace")
                cell = cell if "\ufffd" in repaired else repaired
            cell = re.sub(r"\s+", " ", cell).strip(" ")
            cleaned.append("" if any(cell.lower() == token for token in P.missing) else cell)
        if P.headers and [re.sub(r"\s+", " ", cell).strip().lower() for cell in cells] == names:
            continue
        row: dict[str, Any] = {name: cleaned[place] for place, name in enumerate(names)}
        key = str(row[P.key]).upper()
        if key == "" or (P.totals and key.lower() == P.totals.lower()):
            continue
        row[P.key] = key
        if P.mail:
            if "@" in row[P.phone] and not row[P.mail].count("@"):
                row.update({P.mail: row[P.phone], P.phone: row[P.mail]})
            row.update({P.mail: row[P.mail].lower(), P.phone: re.sub(r"\D", "", row[P.phone])})
        if P.day:
            row[P.day] = next((found for found in (read_day(row[P.day], form) for form in P.dates) if found), "")
        if P.amount:
            row[P.amount] = read_cents(row[P.amount])
        if P.weight:
            found = re.fullmatch(r"(\d+)(?:\.(\d{0,3}))? ?(kg)|(\d+) ?g?", row[P.weight].replace(" ", "").lower())
            row[P.weight] = None if found is None else int(found[4] or str(found[1]) + f"{found[2] or '':0<3}")
        if P.kind and row[P.kind] != "":
            row[P.kind] = next((right for raw, right in P.kinds if raw == row[P.kind].lower()), P.unknown)
        if not P.need or (row[P.need] is not None and row[P.need] != ""):
            rows.append(row)
    if P.repeats:
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(row[P.key], []).append(row)
        if P.repeats == "first":
            rows = [group[0] for group in groups.values()]
        elif P.repeats == "last":
            rows = [group[-1] for group in groups.values()]
        elif P.repeats == "newest":
            rows = [max(group, key=lambda row: str(row[P.day])) for group in groups.values()]
        else:
            rows = [
                {name: next((r[name] for r in group if r[name] not in ("", None)), group[0][name]) for name in names}
                for group in groups.values()
            ]
    return sorted(rows, key=lambda row: (row[P.order], row[P.key]) if P.order != P.key else (row[P.key],))


def read_day(text: str, form: str) -> str:
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    pattern = re.escape(form).replace("%Y", r"(?P<y>\d{4})").replace("%m", r"(?P<m>\d\d?)")
    pattern = pattern.replace("%d", r"(?P<d>\d\d?)").replace("%b", r"(?P<b>[a-z]{3})")
    found = re.fullmatch(pattern, text.lower())
    if found is None:
        return ""
    parts = found.groupdict()
    try:
        month = int(parts["m"]) if "m" in parts else months.index(parts["b"]) + 1
        return date(int(parts["y"]), month, int(parts["d"])).isoformat()
    except ValueError:
        return ""


def read_cents(text: str) -> int | None:
    number = "".join(text.split(P.currency)).replace(" ", "")
    negative = number[:1] == "-"
    number = number[1:] if negative else number
    if P.brackets and not negative and number[:1] == "(" and number[-1:] == ")":
        negative, number = True, number[1:-1]
    parts = "".join(number.split(P.thousands)).split(P.point, 1)
    if not re.fullmatch(r"[0-9]+", parts[0]) or (len(parts) > 1 and not re.fullmatch(r"[0-9]{2}|", parts[1])):
        return None
    value = int(parts[0] + (parts[1] if len(parts) > 1 and parts[1] else "00"))
    return -value if negative else value


def make(rng: random.Random) -> list[Any]:
    out = io.StringIO()
    names = [name for name in (P.key, P.name, P.day, P.amount, P.kind, P.weight, P.mail, P.phone) if name]
    rng.shuffle(names)
    shown = [rng.choice([name, name.title(), " " + name.upper(), name + "  "]) for name in names]
    writer = csv.writer(out, delimiter=P.comma, lineterminator="\n")
    writer.writerow(shown)
    for _ in range(rng.randint(P.rows * 2 // 3, P.rows)):
        when = date(2024, rng.randint(1, 12), rng.randint(1, 28))
        cells = {P.key: rng.choice("abk") + "-" + str(rng.randint(1, max(4, P.rows // 2))), P.name: rng.choice(P.names)}
        cells[P.key] = rng.choice([cells[P.key], cells[P.key].upper()])
        if P.need == P.name and rng.random() < 0.2:
            cells[P.name] = ""
        if P.garbled and rng.random() < 0.5:
            cells[P.name] = cells[P.name].encode("utf-8").decode("latin-1")
        if P.day:
            cells[P.day] = when.strftime(rng.choice(P.dates))
            if rng.random() < 0.12:
                cells[P.day] = rng.choice(["soon", "31.02.2024", "2024-13-01", "2023-02-29", "1/1"])
        if P.amount:
            whole = rng.choice([rng.randint(0, 99), rng.randint(1000, 9999), 1234567])
            text = f"{whole:,}".replace(",", rng.choice([P.thousands, ""]))
            text += P.point + rng.choice(["00", "05", "50", "99"]) if rng.random() < 0.7 else ""
            sign = rng.random()
            if sign < 0.15:
                text = "-" + text
            elif P.brackets and sign < 0.4:
                text = "(" + text + ")"
            cells[P.amount] = rng.choice([text, P.currency + text, text + " " + P.currency])
            if rng.random() < 0.1:
                cells[P.amount] = rng.choice(["free", "1" + P.point + "5", P.point + "50", "", "(12", "7)"])
        if P.kind:
            raw = rng.choice(P.kinds)[0]
            cells[P.kind] = rng.choice([raw, raw.title(), raw.upper(), "", "zz" + raw])
        if P.weight:
            weights = ["250 g", "900g", "1.2 kg", "2KG", "0.075 kg", "40", "1.2345kg", "heavy", ".5 kg", ""]
            cells[P.weight] = rng.choice(weights)
        if P.mail:
            cells[P.mail] = rng.choice(["Ann@x.org", "bo@Y.example", "cy@z.net", ""])
            cells[P.phone] = rng.choice(["+44 20 71", "(030) 5-12", "0171/99", "", "ask@me"])
            if rng.random() < 0.3:
                cells[P.mail], cells[P.phone] = cells[P.phone], cells[P.mail]
        if P.missing and rng.random() < 0.4:
            cells[rng.choice(names)] = rng.choice([*P.missing, P.missing[0].upper()])
        if rng.random() < 0.3:
            spoilt, blank = rng.choice(names), rng.choice([" ", "\u00a0", "  "])
            cells[spoilt] = blank + cells[spoilt].replace(" ", "  ") + rng.choice(["", " ", "\t"])
        if P.totals and rng.random() < 0.12:
            cells[P.key] = rng.choice([P.totals, P.totals.upper(), P.totals.title() + " "])
        elif rng.random() < 0.06:
            cells[P.key] = rng.choice(["", " "])
        row = [cells[name] for name in names]
        if P.headers and rng.random() < 0.1:
            row = [rng.choice([name.upper(), name + " "]) for name in names]
        elif rng.random() < 0.08:
            row = rng.choice([[], [""], row[:-1], [*row, "x"]])
        writer.writerow(row)
    return [out.getvalue()]
