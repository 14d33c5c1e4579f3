"""Noise measured by judging again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from practicum.cli.template import template_task
from practicum.curation.soundness.noise import (
    conditions,
    count,
    measure,
    read_noise,
    read_submissions,
    slowed,
    slows,
    write_noise,
)
from practicum.errors import ConfigError, SubmissionError
from practicum.pipeline.execute import open_boxes
from practicum.records.task import Task
from practicum.records.tree import File
from practicum.records.verdict import Verdict
from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.noise import use_problem
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.submission import submission_from_patch

STEADY = template_task("steady")
HALF = """\
--- a/stats.py
+++ b/stats.py
@@ -4,2 +4,2 @@
 def mean(values):
-    return sum(values) / (len(values) + 1)
+    return sum(values) / len(values)
"""
RIGHT = HALF.replace("@@ -4,2 +4,2 @@", "@@ -4,2 +4,4 @@").replace(
    "+    return", '+    if not values:\n+        raise ValueError("the mean of nothing")\n+    return'
)
PASSED, FAILED = Verdict("valid", "passed", 1.0), Verdict("valid", "failed", -0.2)


UTC = "assert time.timezone == 0"
HALF_BUSY = """\
begin, used = time.monotonic(), time.process_time()
    while time.monotonic() - begin < 1:
        pass
    assert time.process_time() - used < 0.8"""


def bound_to(task: Task, holds: str) -> Task:
    """`task` with one more test, which passes only where what `holds` says does."""
    check = task.verification
    extra = f"\n\ndef test_bound():\n    import time\n\n    {holds}\n    assert mean([1]) == 1\n"
    frozen = File(check.tests["test_frozen.py"].data + extra.encode())
    fail_to_pass = (*check.fail_to_pass, "test_frozen.py::test_bound")
    tests = {**check.tests, "test_frozen.py": frozen}
    return replace(task, id="bound", verification=replace(check, tests=tests, fail_to_pass=fail_to_pass))


def test_conditions_differ_on_every_axis() -> None:
    """The first condition is the judge's own; the others change each axis, and the same seed gives the same ones."""
    made = conditions(8, seed=3)
    assert (made[0].env, made[0].load) == ({}, False)
    assert len({condition.seed for condition in made}) == 8
    for name in ("PYTHONHASHSEED", "TZ", "LC_ALL"):
        assert len({condition.env[name] for condition in made[1:]}) > 1
    assert {condition.load for condition in made} == {True, False}
    assert made == conditions(8, seed=3) != conditions(8, seed=4)


def test_counts() -> None:
    """Misjudged submissions are counted per judgement and once each; what decided nothing is counted apart."""
    invalid = Verdict("invalid", None, None)
    evidence = count([(True, [PASSED, FAILED, invalid]), (False, [FAILED, FAILED, PASSED]), (False, [FAILED] * 3)])
    assert (evidence.right, evidence.right_distinct) == (Rate(1, 2), Rate(1, 1))
    assert (evidence.wrong, evidence.wrong_distinct) == (Rate(1, 6), Rate(1, 2))
    assert evidence.undecided == 1


def test_a_busy_host_leaves_half_a_processor() -> None:
    """Tests of a task that was slowed are given no more than half the time of a processor, and the same ones decide."""
    task = bound_to(STEADY, HALF_BUSY)
    assert slowed(task).verification is task.verification

    async def run() -> Verdict | None:
        async with open_boxes("tests-slowed") as provider:
            if not slows(provider):
                return None
            return await ExecutionVerifier(provider).verify(slowed(task), submission_from_patch(task, RIGHT))

    verdict = asyncio.run(run())
    if verdict is None:
        pytest.skip("boxes cannot limit the processor here")
    assert verdict.passed


def test_a_task_that_depends_on_its_surroundings_is_found(tmp_path: Path) -> None:
    """In real boxes a task whose test needs UTC rejects its gold elsewhere, and is refused; a steady one is not. A
    further wrong submission counts, and what was measured reads back equal."""
    bound = bound_to(STEADY, UTC)
    place = tmp_path / "further" / "steady" / "wrong"
    place.mkdir(parents=True)
    (place / "half.patch").write_text(HALF)
    further = read_submissions(tmp_path / "further", [STEADY, bound])

    async def run() -> None:
        async with open_boxes("tests-noise") as provider:
            steady, moving = await measure(provider, [STEADY, bound], repeat=6, further=further)
        assert steady.evidence.wrong == Rate(0, 12)
        assert steady.evidence.wrong_distinct == Rate(0, 2)
        assert steady.evidence.right == Rate(0, 6)
        assert moving.evidence.right.errors in (3, 4)
        assert moving.evidence.right_distinct == Rate(1, 1)
        assert use_problem(moving, min_youden=0.0) is not None
        assert steady.youden_low > moving.youden_low
        write_noise(tmp_path / "noise.json", [steady, moving], repeat=6)
        assert read_noise(tmp_path / "noise.json") == {STEADY.digest: steady, bound.digest: moving}

    asyncio.run(run())


def test_bad_files(tmp_path: Path) -> None:
    """A missing or foreign file of rates, a folder of no task and a patch that does not apply are named."""
    with pytest.raises(ConfigError, match="cannot read error rates") as caught:
        read_noise(tmp_path / "none.json")
    assert "verifier noise" in str(caught.value)
    (tmp_path / "other.json").write_text('{"schema": 1, "tasks": {"d": {}}}')
    with pytest.raises(ConfigError, match="is no file of error rates"):
        read_noise(tmp_path / "other.json")
    (tmp_path / "further" / "nobody").mkdir(parents=True)
    with pytest.raises(ConfigError, match="there is no task 'nobody'"):
        read_submissions(tmp_path / "further", [STEADY])
    wrong = tmp_path / "more" / "steady" / "right"
    wrong.mkdir(parents=True)
    (wrong / "x.patch").write_text(HALF.replace("+ 1", "+ 7"))
    with pytest.raises(SubmissionError):
        read_submissions(tmp_path / "more", [STEADY])
