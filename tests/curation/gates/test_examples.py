"""Examples of an instruction are found, and those that the gold contradicts are told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from practicum.curation.gates.contract import Bench
from practicum.curation.gates.examples import Example, contradicted, examples_of
from practicum.records.tree import File

if TYPE_CHECKING:
    from curation.gates.conftest import Assess, Shop

FILES = {"shop.py": File(b"def total(items, more=0):\n    return sum(items) + more\n")}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("So:\n\n    >>> total([1, 2])\n    3\n", [("total([1, 2])", "3")]),
        ("`total([1], more=2)` must return `3`.", [("total([1], more=2)", "3")]),
        ("total([]) should be 0, and total([1]) is 1", [("total([])", "0"), ("total([1])", "1")]),
        ("total([2]) == 2; `total([3])` → `3`", [("total([2])", "2"), ("total([3])", "3")]),
        ("total(items) returns 3; total([1]) returns the sum; other([1]) returns 1; total([x]) is 2", []),
        (">>> total([1])\n...\n1\n\n>>> total([2])\n[2, ...]\n", []),
        (">>> total([1])\n>>> total([2])\nTraceback (most recent call last):\n", []),
    ],
)
def test_what_is_an_example(text: str, pairs: list[tuple[str, str]]) -> None:
    """Calls of known functions with constants and for constants, however they are put; nothing else."""
    assert examples_of(text, FILES) == [Example("shop", call, value) for call, value in pairs]


def test_a_name_that_stands_twice_is_no_example() -> None:
    """Nobody says which of two functions is meant."""
    assert examples_of("total([1]) is 1", {**FILES, "src/pkg/more.py": FILES["shop.py"]}) == []


def test_only_what_the_gold_contradicts_is_told(shop: Shop, boxes: tuple[asyncio.Runner, Bench]) -> None:
    """Not what it keeps, nor what the untouched code gives, which shows the fault, nor what cannot be called."""
    runner, bench = boxes
    task = shop()
    gold = {**task.files, "shop.py": task.solution["shop.py"]}

    def told(text: str) -> list[str]:
        asked = examples_of(text, gold)
        assert asked
        return runner.run(contradicted(bench.workshop.provider, task, gold, asked))

    assert told("total([1, 2]) is 3; largest([2, 5]) is 5") == []
    assert told("Today total([1, 2]) is -3.") == []
    assert told("largest([]) is 0") == []
    (said,) = told("total([1, 2]) must be 4; total([1]) is 1")
    assert said == "total([1, 2]) is said to be 4, and the gold gives 3"
    spoilt = {**gold, "shop.py": File(b"import os\nos._exit(0)\n" + gold["shop.py"].data)}
    assert runner.run(contradicted(bench.workshop.provider, task, spoilt, examples_of("total([1]) is 4", gold))) == []


def test_the_gate_sends_such_a_task_to_a_person(shop: Shop, assess: Assess) -> None:
    """It is quarantined, with the example in the reason."""
    task = shop()
    task = replace(task, instruction=f"{task.instruction} For example, `total([1, 2])` must return `4`.")
    (found,) = assess(task, gates=("requirements",))
    assert found.gates["requirements"].passed is False
    assert "total([1, 2]) is said to be 4" in found.gates["requirements"].reason
