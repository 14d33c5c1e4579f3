"""From a family and a seed to tasks.

Owns: `make_task`, `FAMILIES`, `generate`.
Invariant: same kind, seed and number, same task, byte for byte, however many are asked for.
Must not know: boxes, disks, the command line.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from typing import Literal

from practicum.curation.synthesis.generators import forms, results
from practicum.curation.synthesis.generators.brief import Family, chosen
from practicum.curation.synthesis.generators.families import (
    collect,
    ledgers,
    ledgers_words,
    rotate,
    settings,
    settings_words,
    slowest,
    table,
    table_words,
    tally,
    tidy,
)
from practicum.curation.synthesis.generators.programs import programs_of, rows_of
from practicum.curation.synthesis.generators.wording import instruction_of
from practicum.errors import ConfigError
from practicum.records.task import MIB, Limits, Task

Kind = Literal["scripts", "data-cleaning"]
FAMILIES: dict[Kind, tuple[Family, ...]] = {
    "scripts": (
        Family("tally", "plain", tally, tally),
        Family("tidy", "folder", tidy, tidy),
        Family("slowest", "plain", slowest, slowest),
        Family("collect", "folder", collect, collect),
        Family("settings", "plain", settings, settings_words),
        Family("rotate", "folder", rotate, rotate),
    ),
    "data-cleaning": (
        Family("table", "plain", table, table_words),
        Family("ledgers", "plain", ledgers, ledgers_words),
        Family("sheet", "file", table, table_words),
    ),
}
DOMAINS: dict[Kind, str] = {"scripts": "script-automation", "data-cleaning": "data-cleaning"}
VERSION = "2"
LICENCE = "Apache-2.0"  # that of this package, whose programs and words a task is made of
ALIKE = 0.6  # Jaccard index of runs of three words from which two instructions say nearly the same
_PATIENCE = 60
LIMITS = Limits(
    memory_bytes=256 * MIB, pids=32, disk_bytes=16 * MIB, output_bytes=32 * 1024, command_s=10.0, episode_s=180.0
)
STRATA = ("easy", "medium", "hard")
FILE_ROWS = 90
_MODULES = ("tool", "job", "script", "worker", "batch", "nightly", "duty", "helper", "daily", "chores")
_SOURCES = ("raw", "export", "dump", "typed", "inbox", "sheet1")
_TARGETS = ("clean", "done", "final", "tidy", "table", "ready")


def generate(kind: Kind, count: int, seed: int, split: str = "train") -> Iterator[Task]:
    """`count` tasks; families take turns, while they have something new. A longer list begins with the shorter one.

    What says nearly the same as an earlier one is passed over. Raises `ConfigError` where no family has more of them.
    """
    left = [(family, itertools.count()) for family in FAMILIES[kind]]
    said: list[frozenset[tuple[str, ...]]] = []
    while len(said) < count and left:
        family, numbers = left.pop(0)
        for _, number in zip(range(_PATIENCE), numbers, strict=False):
            task = make_task(family, kind, seed, number, split)
            words = _shingles(task.instruction)
            if all(len(words & other) < ALIKE * len(words | other) for other in said):
                said.append(words)
                left.append((family, numbers))
                yield task
                break
    if len(said) < count:
        raise ConfigError(f"there are no more than {len(said)} tasks that differ enough", fix="ask for fewer")


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return frozenset(tuple(words[at : at + 3]) for at in range(len(words) - 2))


def make_task(family: Family, kind: Kind, seed: int, number: int, split: str = "train") -> Task:
    """Task `number` of `family`. The number of rules goes round, so that every degree of difficulty occurs."""
    name = f"{kind}/{family.name}/{seed}/{number}"
    rng = random.Random(name)
    options, degree = _options(family, number, rng)
    path = f"{rng.choice(_MODULES)}.py"
    place = {"function": rng.choice(family.functions), "as_file": family.form == "file"}
    if family.form == "file":
        place |= {"source": f"{rng.choice(_SOURCES)}.csv", "target": f"{rng.choice(_TARGETS)}.csv"}
    values = family.words.draw(rng, options) | place
    if family.form == "file":
        values["rows"] = FILE_ROWS
    brief = family.words.describe(values, rng)
    programs = programs_of(family, values, path)
    rows = rows_of(programs, forms.needed(family.form), name)
    if family.form == "plain":
        made = forms.plain(programs, rows, family.parameters, family.files)
    elif family.form == "folder":
        made = forms.folder(programs, rows)
    else:
        made = results.made(family, values, rows[0])
    return Task(
        id=f"{family.name}-{seed}-{number:04d}",
        instruction=instruction_of(brief, rng.choice(made.closings), rng),
        files=made.files,
        verification=made.verification,
        editable=made.editable,
        limits=LIMITS,
        solution=made.solution,
        split=split,
        domain=DOMAINS[kind],
        difficulty=STRATA[degree],
        provenance={
            "generator": f"{kind}/{family.name}",
            "version": VERSION,
            "seed": seed,
            "number": number,
            "options": sorted(options),
            "license": LICENCE,
        },
    )


def _options(family: Family, number: int, rng: random.Random) -> tuple[frozenset[str], int]:
    degree, most = number % len(STRATA), len(family.options)
    count = (rng.randint(1, 2), (most + 1) // 2, most - rng.randint(0, 1))[degree]
    return chosen(rng, family.options, count), degree
