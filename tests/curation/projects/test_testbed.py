"""The testbed runs tests as the judge does, for each change apart, and tells what each did and reached."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from practicum.curation.projects.building import limits_of
from practicum.curation.projects.project import Project
from practicum.curation.projects.testbed import Testbed, open_testbed
from practicum.records.task import MIB, Task, Verification
from practicum.records.verdict import Submission
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.judge import ExecutionVerifier

Boxes = tuple[asyncio.Runner, SandboxProvider]
PRICES = "src/shop/prices.py"
BAD = "tests/test_prices.py::test_wrong"


def _with(project: Project, old: str, new: str, path: str = PRICES) -> dict[str, bytes | None]:
    text = project.text(path)
    assert old in text
    return {path: text.replace(old, new).encode()}


def test_the_suite_as_it_is(shop: Project, passing: tuple[str, ...], boxes: Boxes) -> None:
    """Each kind of test has its outcome, and with coverage the lines that it ran."""
    runner, provider = boxes

    async def check() -> None:
        async with open_testbed(provider, shop) as testbed:
            run = await testbed.run(timeout_s=60, coverage=True)
        assert run.ended == "done"
        assert run.passed == set(passing)
        assert run.outcomes[BAD] == "failed"
        assert run.outcomes["tests/test_prices.py::test_known"] == "skipped"
        assert run.outcomes["tests/test_prices.py::test_left_out"] == "skipped"
        assert run.covered["tests/test_prices.py::test_total"] == {PRICES: frozenset({5, 6, 7, 8})}
        assert run.covered["tests/test_prices.py::test_capped[given0-0]"][PRICES] >= {12}
        assert "src/shop/words.py" in run.covered["tests/test_words.py::WordsTest::test_empty"]
        assert 1 in run.covered[""][PRICES]

    runner.run(check())


def test_runs_know_nothing_of_each_other(shop: Project, passing: tuple[str, ...], boxes: Boxes) -> None:
    """A change, a removal, a crash, a hang and changed tests are outcomes of their own run, and the next is clean."""
    runner, provider = boxes
    ids = passing[:4]

    async def check() -> None:
        async with open_testbed(provider, shop, concurrent=1) as testbed:
            await _each_alone(testbed)
            clean = await testbed.run(ids=ids, timeout_s=60)
        assert clean.passed == set(ids)

    async def _each_alone(testbed: Testbed) -> None:
        broken = await testbed.run(_with(shop, "+= price", "-= price"), ids=ids, timeout_s=60, explain=True)
        assert broken.failed == {"tests/test_prices.py::test_file", "tests/test_prices.py::test_total"} | {
            "tests/test_prices.py::test_capped[given1-100]"
        }
        assert "assert -6 == 6" in broken.messages["tests/test_prices.py::test_total"]
        gone = await testbed.run({PRICES: None}, ids=ids, timeout_s=60)
        assert gone.uncollected == ("tests/test_prices.py",)
        assert not gone.passed
        crashed = await testbed.run(_with(shop, "result = 0", "import os; os._exit(0)"), ids=ids, timeout_s=60)
        assert crashed.ended == "crashed"
        assert not crashed.passed >= {ids[3]}
        hung = await testbed.run(_with(shop, "result = 0", "while True: pass"), ids=[ids[3]], timeout_s=2)
        assert (hung.ended, hung.hung) == ("timeout", ids[3])
        new = {"tests/test_new.py": b"from shop import total\n\ndef test_new():\n    assert total([2]) == 2\n"}
        added = await testbed.run(ids=["tests/test_new.py::test_new"], tests=new, timeout_s=60)
        assert added.passed == {"tests/test_new.py::test_new"}
        unknown = await testbed.run(ids=["tests/test_new.py::test_new"], timeout_s=60)
        assert unknown.outcomes == {"tests/test_new.py::test_new": "error"}

    runner.run(check())


def test_a_run_that_takes_all_memory_is_an_outcome(shop: Project, passing: tuple[str, ...], boxes: Boxes) -> None:
    """What uses up its box's memory is told so, and the next run is clean."""
    runner, provider = boxes
    if "oom-report" not in provider.capabilities:
        pytest.skip("boxes here do not tell of memory")
    ids = [passing[3]]

    async def check() -> None:
        limits = replace(limits_of(shop.files), memory_bytes=300 * MIB)
        async with open_testbed(provider, shop, concurrent=1, limits=limits) as testbed:
            full = await testbed.run(_with(shop, "result = 0", "result = len('x' * (3 << 30))"), ids=ids, timeout_s=60)
            assert full.passed == set()
            assert full.ended in ("oom", "done", "crashed")
            assert (await testbed.run(ids=ids, timeout_s=60)).passed == set(ids)

    runner.run(check())


CHANGES: Mapping[str, tuple[str, str]] = {
    "as it is": ("LIMIT = 100", "LIMIT = 100"),
    "one bug": ("LIMIT = 100", "LIMIT = 99"),
    "not importable": ("LIMIT = 100", "LIMIT = 100 +"),
    "leaves early": ("return min(", "import os; os._exit(0); min("),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_test_passes_here_as_it_does_with_the_judge(
    name: str, shop: Project, passing: tuple[str, ...], boxes: Boxes
) -> None:
    """On the same state, the testbed and the judge agree on every test that can be relied on."""
    runner, provider = boxes
    change = _with(shop, *CHANGES[name])
    task = Task(
        id="same",
        instruction="",
        files=shop.state(change),
        verification=Verification(
            "pytest",
            shop.tests,
            files=shop.test_files,
            fail_to_pass=passing,
            timeout_s=60,
            unguarded=("*",),
        ),
        limits=limits_of(shop.files),
    )

    async def check() -> None:
        async with open_testbed(provider, shop, concurrent=1) as testbed:
            run = await testbed.run(change, ids=passing, timeout_s=60)
        verdict = await ExecutionVerifier(provider).verify(task, Submission(()))
        assert verdict.status == "valid"
        assert {id for id, status in verdict.tests.items() if status == "passed"} == run.passed

    runner.run(check())
