"""Configurations that cannot run are refused with the arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import ConfigError
from practicum.scheduling.feasible import Plan, problems, refuse

GOOD = Plan(
    per_update=10,
    group_size=8,
    max_staleness=1,
    boxes=96,
    verifiers=4,
    open_groups=20,
    queue_size=8,
    tasks=360,
    host={"memory_bytes": 8e9, "pids": 30_000, "disk_bytes": 1e11},
    box={"memory_bytes": 5e7, "pids": 64, "disk_bytes": 1e8},
    command_s=30,
    turn_s=60,
    episode_s=300,
    verify_s=60,
    verify_deadline_s=90,
    attempt_deadline_s=400,
    group_deadline_s=600,
    permit_deadline_s=600,
    lease_s=900,
)


def found(**changes: Any) -> list[tuple[str, str, str]]:
    return [(p.keys[0], p.arithmetic, p.fix) for p in problems(replace(GOOD, **changes))]


def test_a_good_plan_has_no_problem() -> None:
    """Nothing is refused that can run, nor judged by numbers that are not given."""
    assert problems(GOOD) == []
    assert problems(Plan(per_update=1, group_size=1, max_staleness=0, boxes=1, verifiers=1)) == []
    refuse([])


@pytest.mark.parametrize(
    ("changes", "key", "arithmetic", "fix"),
    [
        ({"max_staleness": -1}, "max_staleness", "-1 < 0: nothing could ever go on", "set it to 0 or more"),
        ({"queue_size": 0}, "queue_size", "0 < 1: nothing could ever go on", "set it to 1 or more"),
        ({"open_groups": 9}, "open_groups", "trains 10 groups, and at most 9 may", "between 10 and (1 + 1) × 10 = 20"),
        ({"tasks": 6}, "per_update", "groups of 10 different tasks, and there are 6", "set it to 6 or less"),
        (
            {"boxes": 200},
            "boxes",
            "(200 attempts + 4 judgements) × 50,000,000 memory_bytes = 10,200,000,000, and the host has 8,000,000,000",
            "set it to 156 or less",
        ),
        ({"box": {"pids": 15_000}}, "boxes", "× 15,000 pids", "only 2 boxes fit"),
        ({"box": {"pids": 20_000}}, "boxes", "× 20,000 pids", "take a larger host"),
        (
            {"verify_deadline_s": 45},
            "verify_deadline_s",
            "may take 60 s, and verify_deadline_s ends it after 45 s",
            "60",
        ),
        ({"attempt_deadline_s": 350}, "attempt_deadline_s", "acting and judgement together may take 390 s", "390"),
        ({"group_deadline_s": 250}, "group_deadline_s", "an attempt may take 400 s", "400 or more"),
        ({"command_s": 61}, "turn_s", "a command in a box may take 61 s, and turn_s ends it after 60 s", "61"),
        ({"turn_s": None, "command_s": 301}, "episode_s", "a command in a box may take 301 s", "301"),
        ({"lease_s": 200}, "lease_s", "an episode in its box may take 300 s", "300"),
        (
            {"boxes": 3, "permit_deadline_s": None},
            "group_deadline_s",
            "a group of 8 attempts in 3 boxes takes ⌈8/3⌉ × 300 s = 900 s, and is given up after 600 s",
            "set it to 900 or more, or allow 8 boxes",
        ),
        (
            {"boxes": 32},
            "permit_deadline_s",
            "160 attempts are dispatched together into 32 boxes, so the last waits up to (⌈160/32⌉ − 1) × 300 s = "
            "1200 s, and gives up after 600 s",
            "set it to 1200 or more",
        ),
    ],
)
def test_each_impossibility_shows_its_arithmetic(changes: dict[str, Any], key: str, arithmetic: str, fix: str) -> None:
    """The problem alone is found, with the numbers, the key to change and the value that would do."""
    ((told_key, told_arithmetic, told_fix),) = found(**changes)
    assert told_key == key
    assert arithmetic in told_arithmetic
    assert fix in told_fix


def test_all_problems_are_told_at_once_by_their_names() -> None:
    """One error with every problem, by the names that the keys have in the configuration."""
    with pytest.raises(ConfigError) as caught:
        refuse(problems(replace(GOOD, tasks=6, lease_s=200)), {"per_update": "rollout.tasks_per_update"})
    assert "rollout.tasks_per_update: an update trains groups of 10" in caught.value.message
    assert "lease_s: an episode" in caught.value.message
    assert caught.value.fix == (
        "rollout.tasks_per_update: set it to 6 or less, or add tasks; lease_s: set it to 300 or more"
    )


@settings(max_examples=200)
@given(st.integers(1, 400), st.integers(1, 40), st.integers(1, 10**6))
def test_what_the_fix_says_can_run(boxes: int, verifiers: int, memory: int) -> None:
    """After the change that a problem of the host proposes, that problem is gone; one box more, and it is there."""
    plan = Plan(4, 4, 0, boxes, verifiers, host={"memory_bytes": 10**6}, box={"memory_bytes": memory})
    for problem in problems(plan):
        assert (boxes + verifiers) * memory > 10**6
        if problem.fix.startswith("set it to"):
            most = int(problem.fix.split()[3])
            assert problems(replace(plan, boxes=most)) == []
            assert problems(replace(plan, boxes=most + 1)) != []
