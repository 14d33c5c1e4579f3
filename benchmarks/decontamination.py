"""Decontamination at size: seconds, peak memory, recall of planted copies, false positives.

Run: python benchmarks/decontamination.py [--tasks 100000] [--protected 500] [--folders DIR] [--json]. Tasks are made by
number, so that none has to be kept; with --folders they are written as task directories first, and read from there.
Of 100 tasks, two are exact copies of earlier ones, two renamed, two edited (statement, code and layout), and two are
copies of protected tasks (exact, renamed, edited, or only a passage of the statement), by turns. The others are made
from a vocabulary of their own, with sentences and test helpers that all tasks of a source or repository share.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import overload

from practicum.curation.similarity import Survey, TaskFolders, survey
from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import save_task

KINDS = ("exact", "renamed", "edited", "leak")
LEAKS = ("exact", "renamed", "edited", "passage")
_SYLLABLES = [a + b for a in "bcdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "is", "or")]
_INTRO = "The module below holds one function that does not do what it should. Find out why and repair it."
_OUTRO = "Change nothing else, keep its name and its parameters, and do not edit the tests that come with it."
_STATEMENTS = (
    "{a} = {b} {o} {n}",
    "{a} = [{c} {o} {n} for {c} in range({n}, {m})]",
    "for {c} in range({n}):\n        {a} = {a} {o} {c}",
    "if {b} {r} {n}:\n        {a} = {b} {o} {m}",
    "{a} = max({b}, {n}) {o} min({b}, {m})",
    "while {a} {r} {n} and {b} != {m}:\n        {a} -= {n}\n        {b} = {a} {o} {m}",
    "{a}, {b} = {b} {o} {n}, {a}",
    "{a} = sum({c} {o} {m} for {c} in ({a}, {b}, {n}))",
    "try:\n        {a} = {b} // ({a} {o} {n})\n    except ZeroDivisionError:\n        {a} = {m}",
    "{a} = len(str({b} {o} {n})) {o} {m}",
    "{a} = {{{n}: {b}, {m}: {a}}}.get({b} {o} {n}, {m})",
    "assert isinstance({b}, int), {n}",
)


@lru_cache(maxsize=8)
def vocabulary(size: int = 6000) -> tuple[str, ...]:
    """Words that look like words."""
    rng = random.Random("vocabulary")
    return tuple(sorted({"".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(size)}))


@dataclass(frozen=True, slots=True)
class Plan:
    """How a task is made: from which content, under which names, edited or not, with whose passage."""

    content: str
    names: str
    edited: bool = False
    passage: str | None = None


def body(plan: Plan) -> tuple[list[str], str]:
    """The lines of a function, and its name."""
    rng, named = random.Random(f"code {plan.content}"), random.Random(f"names {plan.names}")
    words = vocabulary()
    names = [
        f"{word}_{other}" for word, other in zip(named.choices(words, k=9), named.choices(words, k=9), strict=True)
    ]
    lines = [f"def {names[0]}({names[1]}, {names[2]}):"]
    for number in range(rng.randint(8, 16)):
        a, b, c = (names[1 + rng.randrange(8)] if number > 5 else names[1 + rng.randrange(2)] for _ in range(3))
        slots = {"a": a, "b": b, "c": c, "o": rng.choice("+-*"), "r": rng.choice(("<", ">", "<=", "=="))}
        numbers = {"n": rng.randrange(2, 90), "m": rng.randrange(2, 90)}
        lines.append("    " + rng.choice(_STATEMENTS).format(**slots, **numbers))
    lines.append(f"    return {names[1]} + {names[2]}")
    if plan.edited:
        lines.insert(len(lines) // 2, f"    {names[3]} = None  # seen")
    return lines, names[0]


def statement(plan: Plan, function: str) -> str:
    """What is asked, in words of which few are common."""
    rng, words = random.Random(f"words {plan.content}"), vocabulary()
    ranks = [int(len(words) * rng.random() ** 2) for _ in range(rng.randint(60, 110))]
    said = [words[min(rank, len(words) - 1)] for rank in ranks]
    if plan.edited:
        other = random.Random(f"edit {plan.names}")
        for at in range(7, len(said), 18):
            said[at] = other.choice(words)
    if plan.passage is not None:
        said[20:45] = statement(Plan(plan.passage, plan.passage), "it").split("\n\n")[1].split()[10:40]
    return f"{_INTRO}\n\n{' '.join(said)}\n\nThe function is `{function}`. {_OUTRO}\n"


def make(name: str, plan: Plan, group: int) -> Task:
    """The task of a plan."""
    lines, function = body(plan)
    rng = random.Random(f"rest {plan.content}")
    place = rng.randrange(2, len(lines) - 1)
    while not any(sign in lines[place] for sign in "+*"):
        place = place + 1
    right = f"\n\ndef helper_{group % 40}(value):\n    return value\n\n\n" + "\n".join(lines) + "\n"
    broken = [*lines[:place], lines[place].replace("+", "-").replace("*", "+"), *lines[place + 1 :]]
    wrong = f"\n\ndef helper_{group % 40}(value):\n    return value\n\n\n" + "\n".join(broken) + "\n"
    cases = "".join(
        f"    assert {function}({rng.randrange(99)}, {rng.randrange(99)}) == {rng.randrange(9999)}\n" for _ in range(6)
    )
    tests = f"import pytest\nfrom work import {function}\n\n\ndef test_it():\n{cases}"
    return Task(
        id=name,
        instruction=statement(plan, function),
        files={"work.py": File(wrong.encode())},
        verification=Verification(
            "pytest", {"test_it.py": File(tests.encode())}, ("test_it.py",), fail_to_pass=("test_it.py::test_it",)
        ),
        solution={
            "solve.sh": File(b"cp /solution/work.py /app/work.py\n", 0o755),
            "work.py": File(right.encode()),
        },
        provenance={"generator": f"made-{group % 10}", "license": "MIT"},
    )


class Made(Sequence[Task]):
    """`count` tasks, made when they are asked for. `plan(i)` says how; `origin(i)` what a planted one is like."""

    def __init__(self, count: int, protected: int, prefix: str = "task") -> None:
        self.count, self.protected, self.prefix = count, protected, prefix

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < self.count:
            raise IndexError(index)
        return make(f"{self.prefix}-{index:06d}", self.plan(index), index)

    def planted(self, index: int) -> str:
        """The kind of a planted task; empty for one of its own."""
        slot = index % 100
        return KINDS[slot - 92 - (slot >= 96) * 4] if self.protected and index >= 100 and slot >= 92 else ""

    def origin(self, index: int) -> int:
        """The task, or protected task, that a planted one is like; always one of its own."""
        rng = random.Random(f"origin {index}")
        if self.planted(index) == "leak":
            return rng.randrange(self.protected)
        return 100 * rng.randrange(index // 100) + rng.randrange(92)

    def leak(self, index: int) -> str:
        return LEAKS[index // 100 % len(LEAKS)]

    def plan(self, index: int) -> Plan:
        kind, own = self.planted(index), f"{self.prefix} {index}"
        if not kind:
            return Plan(own, own)
        source = f"{'protected' if kind == 'leak' else self.prefix} {self.origin(index)}"
        kind = self.leak(index) if kind == "leak" else kind
        if kind == "passage":
            return Plan(own, own, passage=source)
        return Plan(source, source if kind == "exact" or kind == "edited" else own, edited=kind == "edited")


def measure(count: int, protected: int, folders: Path | None) -> dict[str, object]:
    """Make, look for copies, and compare with what was planted."""
    made, guarded = Made(count, protected), Made(protected, 0, "protected")
    tasks: Sequence[Task] = made
    if folders is not None:
        for index, task in enumerate(made):
            save_task(task, folders / f"{index // 1000:03d}" / task.id)
        tasks = TaskFolders(folders)
    start, used = time.perf_counter(), cpu()
    found = survey(tasks, guarded, processes=2, on_progress=told)
    taken = {"seconds": round(time.perf_counter() - start, 1), "cpu_seconds": round(cpu() - used, 1)}
    return {"tasks": count, "protected": protected} | taken | peak() | scores(found, made) | {
        "stages": found.seconds,
        "pairs_verified": found.pairs,
    }  # fmt: skip


def told(stage: str, done: int, total: int) -> None:
    """Say on stderr how far it is."""
    if done % 10_000 == 0 or done == total:
        print(f"{stage}: {done:,} of {total:,} after {cpu():.0f} cpu seconds of this process", file=sys.stderr)


def cpu() -> float:
    """Cpu seconds of this process and of helpers that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))


def peak() -> dict[str, object]:
    """Peak memory in MiB, of this process and of the largest of its helpers."""
    kinds = {"peak_mib": resource.RUSAGE_SELF, "peak_mib_helper": resource.RUSAGE_CHILDREN}
    return {name: round(resource.getrusage(kind).ru_maxrss / 1024) for name, kind in kinds.items()}


def scores(found: Survey, made: Made) -> dict[str, object]:
    """Recall by kind of what was planted, and what was found without having been planted."""
    cluster = {task: number for number, members in enumerate(found.duplicate_clusters) for task in members}
    hits: dict[str, list[bool]] = {}
    innocent_copies, innocent_leaks = set(found.duplicates), set(found.contaminated)
    for index in range(len(made)):
        kind, name = made.planted(index), f"task-{index:06d}"
        if not kind:
            continue
        if kind == "leak":
            hits.setdefault(f"leak, {made.leak(index)}", []).append(name in found.contaminated)
            innocent_leaks.discard(name)
        else:
            origin = f"task-{made.origin(index):06d}"
            hits.setdefault(kind, []).append(name in cluster and cluster[name] == cluster.get(origin))
            innocent_copies.discard(origin)
        innocent_copies.discard(name)  # two copies of one protected task are copies of each other
    recall = {kind: round(sum(seen) / len(seen), 4) for kind, seen in sorted(hits.items())}
    return {
        "planted": {kind: len(seen) for kind, seen in sorted(hits.items())},
        "recall": recall,
        "false_duplicates": len(innocent_copies),
        "false_contaminated": len(innocent_leaks),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--protected", type=int, default=500)
    parser.add_argument("--folders", type=Path, help="an empty folder to write the tasks into, and read them from")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.tasks, options.protected, options.folders)
    if options.json:
        json.dump(found, sys.stdout)
        return
    for name, value in found.items():
        print(f"{name:20} {value}")
    print("wanted at 100,000: minutes on two cores, memory far below the texts, recall near 1, no false ones")


if __name__ == "__main__":
    main()
