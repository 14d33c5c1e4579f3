"""What imported tasks claim is found out in boxes: which tests fail before, and that the gold passes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from practicum.pipeline.execute import open_boxes
from practicum.pipeline.settling import settle_tests
from practicum.records.task import Task, Verification
from practicum.records.tree import Change, File
from practicum.tasks.solutions import solution_of

BUG, RIGHT = b"def add(a, b):\n    return a - b\n", b"def add(a, b):\n    return a + b\n"
TEST = b"""\
from calc import add

def test_add():
    assert add(1, 2) == 3

def test_zero():
    assert add(1, 0) == 1
"""
# Its rows are used up by whatever runs first: run in variants, the others find nothing to fail at.
USED_UP = b"""\
from calc import add

ROWS = zip([1], [2], [3])

def test_add():
    for a, b, c in ROWS:
        assert add(a, b) == c
"""
FAIL, KEEP = ("test_calc.py::test_add",), ("test_calc.py::test_zero",)


def task(name: str, start: bytes = BUG, gold: bytes | None = RIGHT, test: bytes = TEST, *ids: str) -> Task:
    changes = [] if gold is None else [Change("calc.py", "edit", File(gold))]
    return Task(
        id=name,
        instruction="Repair it.",
        files={"calc.py": File(start)},
        verification=Verification(
            runner="pytest",
            tests={"test_calc.py": File(test)},
            files=("test_calc.py",),
            fail_to_pass=ids or (*FAIL, *KEEP),
        ),
        solution=solution_of(changes) if changes else {},
    )


def settled(*tasks: Task, declared: bool = False) -> tuple[list[Task], dict[str, str]]:
    async def main() -> tuple[list[Task], dict[str, str]]:
        async with open_boxes() as provider:
            return await settle_tests(provider, tasks, declared=declared)

    return asyncio.run(main())


def test_tests_are_sorted_and_golds_are_proven() -> None:
    """Each task is sorted, or refused for its own reason, and the others are not kept from being settled."""
    done, refused = settled(
        task("good"),
        task("no-gold", gold=None),
        task("swapped", RIGHT, BUG),
        task("harmless", RIGHT, RIGHT + b"# done\n"),
        task("wrong-gold", gold=b"def add(a, b):\n    return 1\n"),
        task("used-up", BUG, RIGHT, USED_UP, *FAIL),
    )
    by_name = {each.id: each.verification for each in done}
    assert set(by_name) == {"good", "no-gold", "used-up"}
    assert (by_name["good"].fail_to_pass, by_name["good"].pass_to_pass) == (FAIL, KEEP)
    assert by_name["no-gold"].fail_to_pass == FAIL
    assert by_name["good"].unguarded == ()
    assert by_name["used-up"].unguarded == FAIL
    assert refused == {
        "swapped": "doing nothing passes every test, and the gold does not: are they swapped?",
        "harmless": "doing nothing passes every test",
        "wrong-gold": f"the gold does not pass {FAIL[0]}",
    }


def test_what_a_row_declares_must_be_so() -> None:
    """Tests that are said to fail before, or to pass, and do not, are named."""
    good = task("good", BUG, RIGHT, TEST, *FAIL)
    good = replace(good, verification=replace(good.verification, pass_to_pass=KEEP))
    early = task("early")
    broken = replace(good, id="broken", verification=replace(good.verification, fail_to_pass=KEEP, pass_to_pass=FAIL))
    only_broken = task("only-broken", BUG, RIGHT, TEST + b"\n\ndef test_two():\n    assert add(2, 2) == 4\n", *FAIL)
    check = replace(only_broken.verification, pass_to_pass=("test_calc.py::test_two",))
    done, refused = settled(good, early, broken, replace(only_broken, verification=check), declared=True)
    assert done == [good]
    assert refused == {
        "early": f"{KEEP[0]} is said to fail before, but passes",
        "broken": f"{KEEP[0]} is said to fail before, but passes",
        "only-broken": "test_calc.py::test_two is said to pass before, but does not",
    }
