"""Only tests that pass in every run, and under the judge, are relied on; the others are named with a reason."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.curation.projects.measured import Measured
from practicum.curation.projects.project import Project
from practicum.curation.projects.reading import read_project
from practicum.curation.projects.steadiness import Survey, judged, survey
from practicum.curation.projects.testbed import open_testbed
from practicum.errors import TaskError
from practicum.sandboxes.contract import SandboxProvider

if TYPE_CHECKING:
    from curation.projects.conftest import WriteProject

PASSING = ("tests/test_prices.py::test_total", "tests/test_words.py::WordsTest::test_shout")
UNSTEADY = """import sys
from shop import total

SEEN = []


def test_first():
    SEEN.append(1)
    assert total([1]) == 1


def test_after_first():
    assert SEEN == [1]
    assert total([2]) == 2


def test_hash():
    assert sys.flags.hash_randomization == 0


def test_traced():
    assert sys.gettrace() is None


def test_steady():
    assert total([3]) == 3
"""


async def _survey(provider: SandboxProvider, project: Project, seed: int = 0) -> Survey:
    async with open_testbed(provider, project, concurrent=1) as testbed:
        return await survey(testbed, seed=seed)


def test_unsteady_tests_are_left_out(
    write_project: WriteProject, boxes: tuple[asyncio.Runner, SandboxProvider]
) -> None:
    """What depends on order, on the hash seed, on being watched, or on running once is told apart from the steady."""
    runner, provider = boxes
    project = read_project(write_project({"tests/test_unsteady.py": UNSTEADY}))
    found = runner.run(_survey(provider, project, seed=3))
    here = "tests/test_unsteady.py::"
    assert {f"{here}test_first", f"{here}test_steady", "tests/test_prices.py::test_total"} <= set(found.steady)
    reasons = {name.removeprefix(here): why for name, why in found.left_out.items() if name.startswith(here)}
    assert reasons["test_after_first"].startswith("unsteady")
    assert reasons["test_hash"].startswith("unsteady")
    assert reasons["test_traced"] == "unsteady: failed shuffled, under coverage"
    assert found.left_out["tests/test_prices.py::test_wrong"].startswith("failed")
    assert found.covered[f"{here}test_steady"]["src/shop/prices.py"] == {5, 6, 7, 8}


def test_tests_that_run_only_once(write_project: WriteProject, boxes: tuple[asyncio.Runner, SandboxProvider]) -> None:
    """A test that a second run in one process spoils is named as unguarded; the rest is judged with sentinels."""
    runner, provider = boxes
    once = "from shop import total\n\nSEEN = []\n\n\ndef test_once():\n    SEEN.append(1)\n    assert len(SEEN) == 1\n"
    project = read_project(write_project({"tests/test_once.py": once}))
    found = runner.run(_survey(provider, project))
    judged_ = runner.run(judged(provider, project, found))
    assert judged_.unguarded == ("tests/test_once.py::test_once",)
    assert judged_.steady == found.steady


def test_a_suite_that_mostly_fails_is_refused(
    write_project: WriteProject, boxes: tuple[asyncio.Runner, SandboxProvider]
) -> None:
    """A project whose tests cannot be relied on says how many pass, and why one does not."""
    runner, provider = boxes
    failing = "".join(f"def test_{n}():\n    assert False, 'missing'\n\n\n" for n in range(9))
    project = read_project(write_project({"tests/test_failing.py": failing}))
    with pytest.raises(TaskError, match=r"only 6 of its 16 tests pass.*missing"):
        runner.run(_survey(provider, project))


@pytest.mark.parametrize("how", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_test_that_ends_the_interpreter_costs_no_other(
    how: str, write_project: WriteProject, boxes: tuple[asyncio.Runner, SandboxProvider], tmp_path: Path
) -> None:
    """It is left out and named, the rest is run without it; and so it stays where the runs were kept."""
    runner, provider = boxes
    ending = f"import os\n\n\ndef test_before():\n    pass\n\n\ndef test_ends():\n    {how}\n\n\n"
    ending += "def test_after():\n    pass\n"
    project = read_project(write_project({"tests/test_ending.py": ending, "tests/test_words_2.py": "import nothing\n"}))
    measured = Measured(tmp_path / "measured", project.digest)

    async def both() -> list[Survey]:
        async with open_testbed(provider, project, concurrent=1) as testbed:
            return [await survey(testbed, measured=measured) for _ in range(2)]

    for found in runner.run(both()):
        assert found.left_out["tests/test_ending.py::test_ends"] == "error: it ends the test process"
        assert {"tests/test_ending.py::test_before", "tests/test_ending.py::test_after", *PASSING} <= set(found.steady)
