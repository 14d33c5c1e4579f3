"""Functions of one to three lines as tasks."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from textwrap import indent
from typing import Any

import pytest

from practicum.curation.admission import check_tasks
from practicum.errors import ConfigError
from practicum.pipeline.execute import open_workshop
from practicum.tasks.functions import FunctionsSpec, generate_functions
from practicum.tasks.functions.catalogue import CATALOGUE, Function
from practicum.tasks.functions.generate import outcomes, work_of
from practicum.verification.cases import read_cases, same

TASKS = generate_functions(FunctionsSpec())


def test_no_function_is_on_both_sides() -> None:
    """A function that is held out occurs nowhere in training, in whatever form."""
    by_split: dict[str, set[str]] = {}
    for task in TASKS:
        by_split.setdefault(task.split, set()).add(task.id.partition("-")[2])
    assert {split: len(names) for split, names in by_split.items() if split != "train"} == {
        "validation": 16,
        "test": 48,
    }
    assert sum(len(names) for names in by_split.values()) == len(set.union(*by_split.values()))


def test_no_function_is_on_both_sides_under_another_name() -> None:
    """What a held-out function does, no function of another split does, however the two name things."""
    by_name = {function.name.replace("_", "-"): function for function in CATALOGUE}
    splits: dict[str, set[str]] = {}
    for task in TASKS:
        splits.setdefault(work_of(by_name[task.id.partition("-")[2]]), set()).add(task.split)
    assert [work for work, found in splits.items() if len(found) > 1] == []
    assert work_of(by_name["reverse"]) == work_of(by_name["reverse-list"]) != work_of(by_name["sort-list"])
    counter = Function("f", "xs, y", "li5", "", "n = 0\nfor x in xs:\n    n += x == y\nreturn n", "return 0", "")
    renamed = Function("g", "a, b", "li5", "", "c = 0\nfor d in a:\n    c += d == b\nreturn c", "return 0", "")
    swapped = Function("g", "b, a", "li5", "", "c = 0\nfor d in a:\n    c += d == b\nreturn c", "return 0", "")
    assert work_of(counter) == work_of(renamed) != work_of(swapped)


def test_functions_differ_in_what_they_return() -> None:
    """Two functions of the same kinds of inputs return different things for some of them."""
    seen: dict[tuple[str, str], str] = {}
    for function in CATALOGUE:
        told = (function.inputs, json.dumps(outcomes(function, function.right, draws=150)))
        assert told not in seen, f"{function.name} does what {seen[told]} does"
        seen[told] = function.name


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


def test_every_gold_passes_and_doing_nothing_fails() -> None:
    """By the catalogue's own cases: the right body agrees with all and raises at none, the start fails where it is said
    to, and a body that does nothing passes at no function."""
    for function in CATALOGUE:
        right, wrong = (outcomes(function, body, draws=60) for body in (function.right, function.wrong))
        assert not any(isinstance(value, str) and value.endswith(": raised") for value in right), function.name
        assert right != wrong, function.name
        assert right != outcomes(function, "pass", draws=60), function.name
        assert right != outcomes(function, "raise NotImplementedError", draws=60), function.name


OTHERWISE = {
    "find_letter": "for place, each in enumerate(s):\n    if each == letter:\n        return place\nreturn -1",
    "count_letter": "return sum(each == letter for each in s)",
    "remove_letter": "return ''.join(each for each in s if each != letter)",
    "percent_of": "return part / whole * 100",
    "fahrenheit_to_celsius": "return (f - 32) / 1.8",
    "average3": "return a / 3 + b / 3 + c / 3",
    "mean": "return sum(number / len(numbers) for number in numbers)",
    "place_of_smallest": "return min(range(len(numbers)), key=lambda place: (numbers[place], place))",
}


def test_another_right_body_passes() -> None:
    """What does the same in another way has every case right."""
    tasks = {task.id: task for task in [*TASKS, *generate_functions(FunctionsSpec(seed=2, train=10**6))]}
    for name, body in OTHERWISE.items():
        task = tasks[f"write-{name.replace('_', '-')}"]
        space: dict[str, Any] = {}
        exec(
            task.files["solution.py"].data.decode().replace("    raise NotImplementedError", indent(body, "    ")),
            space,
        )
        for case in read_cases(task.verification.tests["cases.jsonl"].data, name):
            assert same(case.expected, space[name](*case.args), case.approx), (name, case)


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
