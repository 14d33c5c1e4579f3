"""Only tests that pass in every run, and under the judge, are relied on; the others are named with a reason."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from practicum.curation.projects.project import Project
from practicum.curation.projects.reading import read_project
from practicum.curation.projects.steadiness import Survey, judged, survey
from practicum.curation.projects.testbed import open_testbed
from practicum.errors import TaskError
from practicum.sandboxes.contract import SandboxProvider

if TYPE_CHECKING:
    from curation.projects.conftest import WriteProject

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
