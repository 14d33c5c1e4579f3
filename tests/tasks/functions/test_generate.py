"""Functions of one to three lines as tasks."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter

import pytest

from practicum.curation.admission import check_tasks
from practicum.errors import ConfigError
from practicum.pipeline.execute import open_workshop
from practicum.tasks.functions import FunctionsSpec, generate_functions
from practicum.tasks.functions.catalogue import CATALOGUE

TASKS = generate_functions(FunctionsSpec())


def test_no_function_is_on_both_sides() -> None:
    """A function that is held out occurs nowhere in training, in whatever form."""
    by_split: dict[str, set[str]] = {}
    for task in TASKS:
        by_split.setdefault(task.split, set()).add(task.id.partition("-")[2])
    assert {split: len(names) for split, names in by_split.items() if split != "train"} == {
        "validation": 12,
        "test": 24,
    }
    assert sum(len(names) for names in by_split.values()) == len(set.union(*by_split.values()))


def test_the_same_seed_makes_the_same_tasks() -> None:
    """Tasks follow from the spec alone, and another seed holds out other functions."""
    assert [task.digest for task in generate_functions(FunctionsSpec())] == [task.digest for task in TASKS]
    other = generate_functions(FunctionsSpec(seed=1))
    assert {t.id for t in other if t.split == "test"} != {t.id for t in TASKS if t.split == "test"}


def test_the_catalogue() -> None:
    """Names are distinct, and the function under each name is told apart from its wrong body by some case."""
    assert len({function.name for function in CATALOGUE}) == len(CATALOGUE)
    assert Counter(task.domain for task in TASKS)["writing"] >= len(TASKS) // 2 - 1
    for task in TASKS:
        assert task.verification.fail_to_pass
        cases = task.verification.tests["cases.jsonl"].data.decode().splitlines()
        arguments = [json.dumps(json.loads(case)["args"]) for case in cases]
        assert 2 <= len(set(arguments)) == len(arguments)


def test_instructions_do_not_hold_the_answer() -> None:
    """What is asked shows a repair's wrong body and never the right one."""
    for task in TASKS:
        right = task.solution["solution.py"].data.decode()
        body = right.split("\n", 1)[1].rstrip().split("\n")
        assert not set(body) <= set(task.instruction.split("\n"))


@pytest.mark.parametrize("spec", [FunctionsSpec(test=1000), FunctionsSpec(train=0), FunctionsSpec(validation=0)])
def test_more_than_there_are(spec: FunctionsSpec) -> None:
    """Asking for more than there is, or for nothing, is refused."""
    with pytest.raises(ConfigError, match="held out"):
        generate_functions(spec)


def test_tasks_are_admitted() -> None:
    """Golds pass and starts fail, in boxes; a sample of both kinds."""
    some = [*random.Random(0).sample(TASKS, 12), *(task for task in TASKS if task.id == "repair-mean")]

    async def scenario() -> list[str]:
        async with open_workshop() as workshop:
            return [f"{a.task.id}: {a.reason}" for a in await check_tasks(workshop, some) if not a.admitted]

    assert asyncio.run(scenario()) == []
