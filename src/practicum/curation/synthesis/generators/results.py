"""The form in which a file of results is all that is asked for.

Owns: `made`.
Invariant: nothing of a submission runs; frozen scripts read the file as data, and what they expect is never on disk
where it could be found. Pure. Must not know: boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from practicum.curation.synthesis.generators.brief import Family
from practicum.curation.synthesis.generators.forms import Made, text_file
from practicum.curation.synthesis.generators.programs import Row, loaded
from practicum.curation.synthesis.generators.specialise import render
from practicum.records.task import Verification
from practicum.records.tree import File

_READ = """import csv
import os
import stat

MOST = 4 << 20
descriptor = os.open({target!r}, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
assert stat.S_ISREG(os.fstat(descriptor).st_mode), "not a plain file"
with open(descriptor, "rb") as file:
    data = file.read(MOST + 1)
assert len(data) <= MOST, "too large"
table = list(csv.reader(data.decode("utf-8").splitlines(), delimiter={comma!r}))
names = {names!r}
"""
_SHAPE = """assert table[0] == names, "wrong columns"
assert all(len(row) == len(names) for row in table), "a row has another number of cells"
assert len(table) == {count} + 1, "wrong number of rows"
"""
_COLUMN = """place = table[0].index({name!r})
found = [row[place] for row in table[1:]]
wanted = {wanted!r}
assert found == wanted, next((n for n, pair in enumerate(zip(found, wanted), 1) if pair[0] != pair[1]), "length")
"""
_ALIKE = """def figures(name):
    place = table[0].index(name)
    return [int(row[place]) for row in table[1:] if row[place]]


for name, total in {totals!r}.items():
    assert sum(figures(name)) == total, name
keys = [row[table[0].index({key!r})] for row in table[1:]]
assert len(set(keys)) == {distinct} and all(key == key.strip() != "" for key in keys), "keys"
"""
_CHECK = '''"""Looks at the form of {target}, not at what it says."""

import csv

with open("{target}", encoding="utf-8", newline="") as file:
    table = list(csv.reader(file, delimiter={comma!r}))
assert table[0] == {names!r}, table[0]
assert all(len(row) == len(table[0]) for row in table), "rows of different lengths"
print("the form is right:", len(table) - 1, "rows")
'''


def made(family: Family, values: Mapping[str, Any], row: Row) -> Made:
    """A table lies in the workspace, a clean one is to be put beside it."""
    source, target = str(values["source"]), str(values["target"])
    program = render(family.programs, ["written"], values)
    text = loaded(program, "written")(*row.args)
    names: list[str] = family.words.columns(values)
    fields: dict[str, Any] = {"target": target, "comma": values["comma"], "names": names}
    head = _READ.format(**fields)
    totals = {
        name: sum(each[name] or 0 for each in row.expected) for name in (values["amount"], values["weight"]) if name
    }
    distinct = len({each[values["key"]] for each in row.expected})
    tests = {
        "shape.py": head + _SHAPE.format(count=len(row.expected)),
        "figures.py": head + _ALIKE.format(totals=totals, key=values["key"], distinct=distinct),
    }
    for number, name in enumerate(names, 1):
        wanted = ["" if each[name] is None else str(each[name]) for each in row.expected]
        tests[f"column_{number}.py"] = head + _COLUMN.format(name=name, wanted=wanted)
    check = text_file(_CHECK.format(**fields))
    files = tuple(tests)
    verification = Verification(
        "command",
        {name: text_file(script) for name, script in tests.items()} | {"check.py": check},
        files=files,
        visible=("check.py",),
        fail_to_pass=files,
        timeout_s=20.0,
    )
    return Made(
        files={source: text_file(row.args[0]), "check.py": check},
        verification=verification,
        solution={
            f"gold/{target}": text_file(text),
            "clean.py": text_file(program),
            "solve.sh": File(f"cp /solution/gold/{target} {target}\n".encode(), 0o755),
        },
        editable=(target, "**/*.py"),
        closings=(
            f"Programs that you write on the way may stay in the folder. `python3 check.py` tells "
            f"whether `{target}` has "
            "the right form.",
            f"How you get there is up to you; `python3 check.py` looks at the form of `{target}` only.",
        ),
    )
