"""Attempts outside a training run, and the decision whether a task may be used."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from practicum.cli.template import template_task
from practicum.curation.admission import Admission, admit, check_tasks
from practicum.pipeline.execute import open_workshop
from practicum.records.task import Task
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.tree import File
from practicum.records.verdict import Outcome, TestStatus, Verdict
from practicum.rollouts.agents import noop_agent, oracle_agent
from practicum.rollouts.workshop import run_specs, specs_for

TASK = template_task("t")
CHECK = TASK.verification
GOOD: dict[str, TestStatus] = dict.fromkeys((*CHECK.fail_to_pass, *CHECK.pass_to_pass), "passed")
UNTOUCHED: dict[str, TestStatus] = GOOD | dict.fromkeys(CHECK.fail_to_pass, "failed")


def attempt(outcome: Outcome, tests: dict[str, TestStatus]) -> Trajectory:
    verdict = Verdict("valid", outcome, 1.0 if outcome == "passed" else -0.2, tests)
    return Trajectory("g/0", "g", TASK.id, TASK.digest, (), "submitted", verdict=verdict)


GOLD, NOOP = attempt("passed", GOOD), attempt("failed", UNTOUCHED)
LOST = replace(GOLD, verdict=None, fault=Fault("SandboxDied", "gone"))
INVALID = replace(GOLD, verdict=Verdict("invalid", None, None, reason="no such test"))
F2P, P2P = CHECK.fail_to_pass[0], CHECK.pass_to_pass[0]


@pytest.mark.parametrize(
    ("task", "gold", "noop", "reason"),
    [
        (TASK, GOLD, NOOP, None),
        (replace(TASK, solution={}), GOLD, NOOP, "there is no solution"),
        (TASK, attempt("partial", GOOD | {F2P: "failed"}), NOOP, f"the gold does not pass: partial ({F2P})"),
        (TASK, GOLD, GOLD, "doing nothing passes"),
        (TASK, GOLD, attempt("partial", UNTOUCHED | {F2P: "passed"}), "named in fail_to_pass, but pass"),
        (TASK, GOLD, attempt("failed", UNTOUCHED | {P2P: "failed"}), "named in pass_to_pass, but fail"),
        (TASK, INVALID, NOOP, "the gold has no valid verdict: no such test"),
        (TASK, GOLD, LOST, "doing nothing could not be judged: gone"),
    ],
    ids=lambda value: (value or "admitted")[:40] if value is None or isinstance(value, str) else "",
)
def test_admission(task: Task, gold: Trajectory, noop: Trajectory, reason: str | None) -> None:
    """A task is admitted only where the gold passes, nothing else was wrong, and doing nothing fails as it should."""
    admission = admit(task, gold, noop)
    assert admission.admitted == (reason is None)
    assert (admission.reason or "").startswith(reason or "")
    assert admission.unscorable == (noop is LOST)


def test_a_task_whose_tests_run_only_once_is_refused_with_the_line_that_helps() -> None:
    """Its gold would pass or fail by lot; with the line that the refusal names it is admitted."""
    frozen = CHECK.tests["test_frozen.py"].data.decode()
    once = frozen + "\n\nSEEN = []\n\n\ndef test_once():\n    SEEN.append(mean([2]))\n    assert SEEN == [2]\n"
    name = "test_frozen.py::test_once"
    tests = {**CHECK.tests, "test_frozen.py": File(once.encode())}
    check = replace(CHECK, tests=tests, fail_to_pass=(*CHECK.fail_to_pass, name))

    async def run(unguarded: tuple[str, ...]) -> Admission:
        task = replace(TASK, verification=replace(check, unguarded=unguarded))
        async with open_workshop() as workshop:
            (admission,) = await check_tasks(workshop, [task])
            return admission

    refused = asyncio.run(run(()))
    assert not refused.admitted
    assert f'unguarded = ["{name}"]' in str(refused.reason)
    assert asyncio.run(run((name,))).admitted


def test_one_path_for_all() -> None:
    """Oracle and no-op go through the same boxes and judge, and the task that tells them apart is admitted."""

    async def run() -> None:
        async with open_workshop() as workshop:
            seen: list[str] = []
            oracle = oracle_agent()
            specs = specs_for([TASK], oracle, samples=2)
            attempts = await run_specs(workshop, oracle, specs, on_done=lambda t: seen.append(t.id))
            assert [a.passed for a in attempts] == [True, True]
            assert sorted(seen) == ["t/0", "t/1"]
            assert all(len(a.turns) >= 2 for a in attempts)
            (admission,) = await check_tasks(workshop, [TASK])
            assert admission.admitted, admission.reason
            noop = noop_agent()
            (idle,) = await run_specs(workshop, noop, specs_for([TASK], noop))
            assert idle.reward == -0.2

    asyncio.run(run())
