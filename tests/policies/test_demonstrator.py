"""The noisy demonstrator."""

from __future__ import annotations

from collections import Counter

import pytest

from practicum.policies.demonstrator import demonstration
from practicum.policies.protocol import EditProblem, apply_edit, parse_action
from practicum.records.task import Task
from practicum.tasks.quickstart import FamilySpec, generate_family

TASKS = generate_family(FamilySpec(seed=5, train=40, validation=1, test=1))[2:]


def outcome(task: Task, texts: list[str]) -> bytes:
    """The source after every edit of a demonstration; each must apply."""
    path = task.provenance["edit"]["path"]
    source = task.files[path].data
    for text in texts:
        action = parse_action(text)
        assert action.tool in ("bash", "edit", "submit"), action
        if action.tool == "edit":
            assert action.arguments["path"] == path
            made = apply_edit(source, action.arguments)
            assert not isinstance(made, EditProblem), made
            source = made
    return source


def test_right_demonstrations_make_the_gold() -> None:
    """With `correct_rate` 1 every demonstration looks, repairs, checks and submits, and gives the gold file."""
    for task in TASKS:
        texts = demonstration(task, seed=1, correct_rate=1.0)
        assert [parse_action(text).tool for text in texts] == ["bash", "edit", "bash", "submit"]
        assert outcome(task, texts) == task.solution["gold.py"].data


def test_edits_of_wrong_demonstrations_apply() -> None:
    """Mistakes are edits that can be made, and every demonstration ends with one submission."""
    for task in TASKS:
        for seed in range(6):
            texts = demonstration(task, seed=seed, correct_rate=0.0)
            outcome(task, texts)
            assert [parse_action(text).tool for text in texts].count("submit") == 1
            assert parse_action(texts[-1]).tool == "submit"


def test_share_of_right_demonstrations() -> None:
    """About `correct_rate` of them repair at once; of the others some give up, some err, some correct themselves."""
    kinds: Counter[str] = Counter()
    for task in TASKS:
        for seed in range(25):
            texts = demonstration(task, seed=seed, correct_rate=0.4, retry_rate=0.5)
            right = outcome(task, texts) == task.solution["gold.py"].data
            edits = sum(parse_action(text).tool == "edit" for text in texts)
            kinds[f"{edits} edits, {'right' if right else 'wrong'}"] += 1
    total = sum(kinds.values())
    assert kinds["1 edits, right"] / total == pytest.approx(0.4, abs=0.06)
    assert kinds["0 edits, wrong"] / total == pytest.approx(0.3, abs=0.06)
    assert min(kinds["1 edits, wrong"], kinds["2 edits, right"]) > 0
    assert set(kinds) == {"1 edits, right", "0 edits, wrong", "1 edits, wrong", "2 edits, right"}


def test_same_seed_same_demonstration() -> None:
    """Task and seed decide a demonstration, whatever else was made before."""
    first = [demonstration(task, seed=3, correct_rate=0.5) for task in TASKS]
    again = [demonstration(task, seed=3, correct_rate=0.5) for task in reversed(TASKS)]
    assert first == again[::-1]
    assert first != [demonstration(task, seed=4, correct_rate=0.5) for task in TASKS]
