"""Imported tests are sorted by what the untouched task was seen to do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from practicum.errors import VerifierError
from practicum.pipeline.sorting import sort_tests
from practicum.records.task import Task, Verification
from practicum.records.verdict import Submission, TestStatus, Verdict

CHECK = Verification("pytest", {}, fail_to_pass=("a", "b", "c"))


class Known:
    """A verifier that says of each task what was laid down for its id."""

    version = "known"

    def __init__(self, **said: Verdict) -> None:
        self.said = said

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        assert submission == Submission(())
        return self.said[task.id]


def judged(**tests: TestStatus) -> Verdict:
    return Verdict("valid", "failed", -0.2, tests=tests)


def masked(status: Literal["invalid", "unscorable"], reason: str) -> Verdict:
    return Verdict(status, None, None, reason=reason)


def tasks(*names: str) -> list[Task]:
    return [Task(name, "", {}, CHECK) for name in names]


def test_what_passes_already_must_keep_passing() -> None:
    """Tests that failed or were not reported stay to be repaired; those that passed are kept, in their order."""
    verifier = Known(t=judged(a="passed", b="failed", c="missing"))
    (task,), refused = asyncio.run(sort_tests(verifier, tasks("t")))
    assert refused == {}
    assert task == replace(tasks("t")[0], verification=replace(CHECK, fail_to_pass=("b", "c"), pass_to_pass=("a",)))


def test_tasks_that_show_nothing_are_refused_and_the_rest_goes_on() -> None:
    """Doing nothing must not pass, and what the task gets wrong is told by its id."""
    verifier = Known(
        done=judged(a="passed", b="passed", c="passed"),
        bad=masked("invalid", "no such file"),
        good=judged(a="failed", b="failed", c="failed"),
    )
    sorted_, refused = asyncio.run(sort_tests(verifier, tasks("done", "bad", "good")))
    assert [task.id for task in sorted_] == ["good"]
    assert refused["done"] == "doing nothing passes every test"
    assert "no such file" in refused["bad"]


def test_a_fault_of_the_host_is_not_held_against_a_task() -> None:
    """Where nothing could be seen, nothing is sorted."""
    with pytest.raises(VerifierError, match=r"^t: .*: no room$"):
        asyncio.run(sort_tests(Known(t=masked("unscorable", "no room")), tasks("t")))
