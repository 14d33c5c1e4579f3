"""Sorting the files of a folder into sub-folders under tidy names.

Owns: the family `tidy`. Invariant: see `families`. Must not know: tasks.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Brief, said

OPTIONS = ("lower", "blanks", "copies", "empty", "keep", "same", "ledger", "prefix")
FUNCTIONS = ("tidy", "sort_files", "arrange", "file_away", "clean_up", "organise")


class P:
    """Parameters, with an example of each."""

    by: str = "ending"
    none: str = "other"
    lower: bool = False
    blanks: str = ""
    copies: str = ""
    empty: bool = False
    keep: tuple[str, ...] = ()
    same: bool = False
    ledger: str = ""
    arrow: str = " -> "
    prefix: bool = False
    joint: str = "-"
    stems: tuple[str, ...] = ("report", "plan")


def parted(name: str) -> tuple[str, str]:
    """Stem and ending, without the dot; a name without a dot has no ending."""
    stem, dot, ending = name.rpartition(".")
    return (stem, ending) if dot else (name, "")


def place(stem: str, ending: str, text: str) -> str:
    if P.by == "ending":
        return ending or P.none
    if P.by == "initial":
        return stem[0].lower() if stem[0].isalpha() else P.none
    first = text.split("\n")[0]
    if first.startswith("Date: ") and first[6:10].isdigit() and first[10:11] == "-":
        return first[6:10]
    return P.none


def solve(files: dict[str, str]) -> dict[str, str]:
    result: dict[str, str] = {}
    moves: list[str] = []
    contents = set()
    for path in sorted(files):
        text = files[path]
        if "/" in path:
            result[path] = text
            continue
        stem, ending = parted(path)
        if P.keep and ending.lower() in P.keep:
            result[path] = text
            continue
        if P.empty and not text.strip():
            continue
        if P.same:
            if text in contents:
                continue
            contents.add(text)
        if P.copies and stem.endswith(P.copies):
            stem = stem[: -len(P.copies)]
        if P.lower:
            stem, ending = stem.lower(), ending.lower()
        if P.blanks:
            stem = P.blanks.join(stem.split())
        folder = place(stem, ending, text)
        if P.prefix:
            stem = folder + P.joint + stem
        tail = "." + ending if ending else ""
        target = folder + "/" + stem + tail
        for number in itertools.count(2):
            if target not in result and target not in files:
                break
            target = folder + "/" + stem + P.joint + str(number) + tail
        result[target] = text
        if P.ledger:
            moves.append(path + P.arrow + target)
    if P.ledger and moves:
        result[P.ledger] = "\n".join(moves) + "\n"
    return result


def again(files: dict[str, str]) -> dict[str, str]:
    flat = [path for path in sorted(files) if path.count("/") == 0]
    stay = [path for path in flat if P.keep and parted(path)[1].lower() in P.keep]
    todo = [path for path in flat if path not in stay]
    if P.empty:
        todo = [path for path in todo if files[path].strip()]
    if P.same:
        todo = [path for n, path in enumerate(todo) if all(files[path] != files[other] for other in todo[:n])]
    taken = {path: text for path, text in files.items() if "/" in path or path in stay}
    lines = ""
    for path in todo:
        stem, ending = parted(path)
        if P.copies:
            stem = stem.removesuffix(P.copies)
        if P.lower:
            stem, ending = stem.lower(), ending.lower()
        if P.blanks:
            stem = P.blanks.join(part for part in stem.split(" ") if part)
        folder = place(stem, ending, files[path])
        base = f"{folder}/{folder + P.joint if P.prefix else ''}{stem}"
        names = [base, *(f"{base}{P.joint}{number}" for number in range(2, len(files) + 3))]
        ends = "." + ending if ending else ""
        target = next(name + ends for name in names if name + ends not in taken and name + ends not in files)
        taken[target] = files[path]
        lines += path + P.arrow + target + "\n"
    if P.ledger and lines:
        taken[P.ledger] = lines
    return taken


def make(rng: random.Random) -> list[Any]:
    files: dict[str, str] = {}
    endings = ["txt", "md", "csv", "", *P.keep]
    if P.lower:
        endings += ["TXT", "Csv"]
    texts = [
        "Date: 2023-04-01\nready\n",
        "Date: 2024-11-30\n",
        "notes\nDate: 2022-01-01\n",
        "Date: soon\n",
        "Date: 2021/12\n",
        "x = 1\n",
    ]
    if P.empty or P.same:
        texts += ["", " \n"]
    for _ in range(rng.randint(5, 10)):
        stem = rng.choice(P.stems)
        if P.blanks:
            stem = rng.choice([stem, stem + " old", stem + "  2", "new " + stem])
        if P.copies:
            stem = rng.choice([stem, stem + P.copies, stem + P.copies])
        if P.lower:
            stem = rng.choice([stem, stem.upper(), stem.title()])
        if P.by == "initial" and rng.random() < 0.2:
            stem = rng.choice(["7", "_"]) + stem
        ending = rng.choice(endings)
        path = stem + "." + ending if ending else stem
        if rng.random() < 0.35:
            if P.by == "ending":
                folder = rng.choice(["txt", "md", P.none])
            elif P.by == "initial":
                folder = rng.choice([P.stems[0][0], P.stems[1][0], P.none])
            else:
                folder = rng.choice(["2023", "2024", P.none])
            if P.prefix:
                path = rng.choice([folder + P.joint + path, path])
            path = folder + "/" + path
        folders = [other.split("/")[0] for other in files if "/" in other]
        if path in folders or any(other == path.split("/")[0] for other in files if "/" in path):
            continue
        text = rng.choice(texts)
        files[path] = text if P.same else text + rng.choice(["", path + "\n"])
    return [files]


_PLACES = (
    ("the scanner's inbox", ("letter", "invoice", "contract")),
    ("a shared folder of a choir", ("score", "lyrics", "plan")),
    ("the download folder", ("paper", "ticket", "recipe")),
    ("the drop box of a lab", ("sample", "assay", "report")),
    ("an archive of field notes", ("ridge", "lake", "survey")),
    ("the intake of a photo agency", ("harbour", "match", "portrait")),
    ("the folder where tenants' mails end up", ("repair", "keys", "deposit")),
)


def draw(rng: random.Random, options: frozenset[str]) -> dict[str, Any]:
    where, stems = rng.choice(_PLACES)
    return {
        "where": where,
        "stems": stems,
        "by": rng.choice(("ending", "initial", "year")),
        "none": rng.choice(("other", "misc", "rest", "unsorted")),
        "lower": "lower" in options,
        "blanks": rng.choice(("_", "-", ".")) if "blanks" in options else "",
        "copies": rng.choice((" copy", "(1)", "~", "_old")) if "copies" in options else "",
        "empty": "empty" in options,
        "keep": rng.choice((("tmp",), ("lock", "part"), ("bak",))) if "keep" in options else (),
        "same": "same" in options,
        "ledger": rng.choice(("moved.txt", "MOVES", "journal.log")) if "ledger" in options else "",
        "arrow": rng.choice((" -> ", "\t", " => ", "|")),
        "prefix": "prefix" in options,
        "joint": rng.choice(("-", "_", "+")),
    }


_BY = {
    "ending": "its ending (without the dot), a file without an ending into",
    "initial": "the first character of its stem (as that is by now) in lower case, but if it is no letter into",
    "year": "the year in its first line, if that line begins with `Date: `, four digits and `-`, and otherwise into",
}


def _rules(v: Mapping[str, Any]) -> list[str]:
    rules = ["Files that already lie in a sub-folder stay as they are."]
    if v["keep"]:
        rules.append(f"Files with the ending {said(v['keep'], 'or')}, in whatever case, stay where they are.")
    if v["empty"]:
        rules.append("Delete a file that is empty or holds nothing but white space.")
    if v["same"]:
        rules.append("Delete a file whose text is the same as that of one which was dealt with before it.")
    if v["copies"]:
        rules.append(f"If the stem of a name ends in `{v['copies']}`, take that away, once.")
    if v["lower"]:
        rules.append("Put stem and ending into lower case.")
    if v["blanks"]:
        rules.append(f"Runs of blanks in the stem become one `{v['blanks']}`.")
    rules.append(f"A file goes into the sub-folder that is named by {_BY[v['by']]} `{v['none']}`.")
    if v["prefix"]:
        rules.append(f"The sub-folder's name and `{v['joint']}` are put before the stem.")
    rules.append(
        f"Where a file of that path exists, be it from the start or moved there, the stem is followed by "
        f"`{v['joint']}2`, or else `{v['joint']}3` and so on, the first that is free."
    )
    if v["ledger"]:
        arrow = "a tab" if v["arrow"] == "\t" else f"`{v['arrow']}`"
        rules.append(
            f"Write `{v['ledger']}` at the top, one line for each file that was moved, in the order "
            f"in which they were: "
            f"old path, {arrow}, new path. No moves, no such file."
        )
    return rules


def describe(values: Mapping[str, Any], rng: random.Random) -> Brief:
    f = values["function"]
    goal = rng.choice(
        (
            f"Nobody finds anything in {values['where']}. `{f}(folder)` shall bring order into it.",
            f"Write `{f}(folder)` to sort {values['where']} by rule.",
            f"Once a week {values['where']} has to be cleared. Let `{f}(folder)` do that.",
        )
    )
    return Brief(
        goal,
        [
            "`folder` is the path of a folder of UTF-8 text files, some of them in sub-folders.",
            "A name's ending is what follows its last dot, the stem what stands before; without a dot it has none.",
            "Deal with the files at the top one after another, in sorted order of their names as they were. The rules "
            "apply in the order given here.",
        ],
        _rules(values),
        ["Change the folder itself; the texts of files stay as they are. What is returned does not matter."],
    )
