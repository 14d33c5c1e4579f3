"""Generated tasks: the same again by seed, distinct, and right in real boxes."""

from __future__ import annotations

import asyncio
import itertools
import json
import re

import pytest

from practicum.curation.admission import check_tasks
from practicum.curation.synthesis.generators.brief import Family
from practicum.curation.synthesis.generators.making import FAMILIES, Kind, generate, make_task
from practicum.pipeline.execute import open_workshop
from practicum.records.task import Task
from practicum.records.tree import File
from practicum.verification.judging import judge_all
from practicum.verification.submission import submission_from_workspace

EACH = [(kind, family) for kind, families in FAMILIES.items() for family in families]
IDS = [family.name for _, family in EACH]


@pytest.mark.parametrize(("kind", "family"), EACH, ids=IDS)
def test_the_same_seed_gives_the_same_task(kind: Kind, family: Family) -> None:
    """A task is a function of family, seed and number; another seed gives other work."""
    one, again, other = (make_task(family, kind, seed, 1) for seed in (5, 5, 6))
    assert one.content == again.content
    assert one.digest != other.digest


def test_a_longer_list_begins_with_the_shorter() -> None:
    """How many are asked for does not change the first ones; families take turns."""
    short, long = list(generate("scripts", 3, 1)), list(generate("scripts", 7, 1, "test"))
    assert [task.digest for task in short] == [task.digest for task in long[:3]]
    assert len({task.provenance["generator"] for task in long[:6]}) == 6
    assert {task.split for task in long} == {"test"}


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 3]) for at in range(len(words) - 2)}


@pytest.mark.parametrize("kind", ["scripts", "data-cleaning"])
def test_instructions_differ(kind: Kind) -> None:
    """No two tasks of a list say nearly the same."""
    texts = [shingles(task.instruction) for task in generate(kind, 18, 3)]
    assert max(len(a & b) / len(a | b) for a, b in itertools.combinations(texts, 2)) < 0.6


def with_files(task: Task, folder: str) -> dict[str, File]:
    found = {path.removeprefix(folder): file for path, file in task.solution.items() if path.startswith(folder)}
    return dict(task.files) | found


def memorised(task: Task) -> dict[str, File] | None:
    """A program that knows the frozen cases and nothing else."""
    check = task.verification
    if check.plain is None:
        return None
    module, _, name = check.plain.entry.partition(":")
    rows = [json.loads(line) for line in check.tests["cases.jsonl"].data.decode().splitlines()]
    known = {repr(row["args"]): row["expected"] for row in rows}
    text = f"KNOWN = {known!r}\n\n\ndef {name}(*args):\n    return KNOWN[repr(list(args))]\n"
    return dict(task.files) | {f"{module}.py": File(text.encode())}


def test_tasks_hold_in_boxes() -> None:
    """Gold and the second solution pass for each family; no-op and what only knows the cases do not."""
    tasks = [make_task(family, kind, 11, number) for number, (kind, family) in enumerate(EACH)]
    second = [
        (task, with_files(task, "second/")) for task in tasks if any(p.startswith("second/") for p in task.solution)
    ]
    cheats = [(task, files) for task in tasks if (files := memorised(task)) is not None]
    assert len(second) == 8
    assert len(cheats) == 5

    async def go() -> tuple[list[str | None], list[bool], list[bool]]:
        async with open_workshop() as shop:
            refused = [admission.reason for admission in await check_tasks(shop, tasks)]
            judged = [
                await judge_all(
                    shop.verifier, [(task, submission_from_workspace(task, files)) for task, files in group]
                )
                for group in (second, cheats)
            ]
            return refused, *([verdict.passed for verdict in group] for group in judged)  # type: ignore[return-value]

    refused, right, wrong = asyncio.run(go())
    assert refused == [None] * len(tasks)
    assert all(right)
    assert not any(wrong)
