"""Every task of the shared data: right work gets 1.0, the buggy original does not. Skipped where there is no data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.pipeline.sorting import sort_tests
from practicum.records.task import Task
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission, Verdict
from practicum.tasks.humanevalpack import read_rows
from practicum.tasks.quixbugs import read_programs
from practicum.verification.opening import open_verifier
from practicum.verification.redteam.equivalents import equivalents_of
from practicum.verification.redteam.variants import source_of

if TYPE_CHECKING:
    from verification.conftest import Bench

DATA = Path(__file__).parents[3] / "shared" / "data"
REWRITES = 3  # of each gold
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the task data is not there ({DATA})"),
]


def file_of(task: Task) -> str:
    """The one file that holds the program."""
    (name,) = task.editable
    return name


def edit(task: Task, text: bytes) -> Submission:
    return Submission((Change(file_of(task), "edit", File(text)),))


def gold_of(task: Task) -> bytes:
    return task.solution[file_of(task)].data


def judge_all(bench: Bench, items: list[tuple[Task, Submission]]) -> list[Verdict]:
    """Verdicts in order, by the judge that commands use."""
    from practicum.verification.judging import judge_all

    async def judged() -> list[Verdict]:
        async with open_verifier(bench.provider, max_concurrent=3) as verifier:
            return await judge_all(verifier, items)

    return bench.runner.run(judged())


@pytest.fixture(scope="module")
def tasks(bench: Bench) -> list[Task]:
    """All tasks, as their importers make them."""
    programs, refused = read_programs(DATA / "quixbugs")
    assert (len(programs), refused) == (40, {})

    async def sorted_() -> tuple[list[Task], dict[str, str]]:
        async with open_verifier(bench.provider, max_concurrent=3) as verifier:
            return await sort_tests(verifier, programs)

    imported, unfit = bench.runner.run(sorted_())
    assert unfit == {}  # each buggy original fails something
    rows = [task for file in sorted((DATA / "humanevalfix").glob("*.jsonl")) for task in read_rows(file)[0]]
    assert len(rows) == 82
    return imported + rows


def test_gold_passes_and_the_buggy_original_does_not(bench: Bench, tasks: list[Task]) -> None:
    """All of it: 1.0 for the reference, no pass and no reward for the program as it stood."""
    verdicts = judge_all(bench, [(task, edit(task, gold_of(task))) for task in tasks])
    assert {v.evidence["task_digest"]: v.reason for v in verdicts if v.status != "valid"} == {}
    assert [task.id for task, verdict in zip(tasks, verdicts, strict=True) if verdict.reward != 1.0] == []
    verdicts = judge_all(bench, [(task, Submission(())) for task in tasks])
    assert {verdict.status for verdict in verdicts} == {"valid"}
    assert [task.id for task, verdict in zip(tasks, verdicts, strict=True) if verdict.reward != -0.2] == []


def test_equivalent_solutions_pass(bench: Bench, tasks: list[Task]) -> None:
    """Golds rewritten in ways that keep their meaning get 1.0 as well."""
    items: list[tuple[Task, Submission, str]] = []
    for task in tasks:
        source = source_of(task.files[file_of(task)].data, gold_of(task))
        assert source is not None
        variants = equivalents_of(source, REWRITES, task.id)
        items += [(task, edit(task, each.text.encode()), each.name) for each in variants]
    rewritten = {task.id for task, _, _ in items}
    assert len(rewritten) > 0.9 * len(tasks), sorted({task.id for task in tasks} - rewritten)
    verdicts = judge_all(bench, [(task, submission) for task, submission, _ in items])
    wrong = [(task.id, name) for (task, _, name), verdict in zip(items, verdicts, strict=True) if verdict.reward != 1.0]
    assert wrong == []


def test_cases_are_those_of_the_original_files(tasks: list[Task]) -> None:
    """Nothing was lost on the way: each plain QuixBugs task asks for all cases but the ones that are too slow."""
    for task in tasks:
        name = task.id.removeprefix("quixbugs-")
        original = DATA / "quixbugs" / "json_testcases" / f"{name}.json"
        if original.exists():
            lines = [line for line in original.read_text().splitlines() if line.strip()]
            left_out = 1 if name in ("levenshtein", "knapsack") else 0
            check = task.verification
            assert len(check.fail_to_pass) + len(check.pass_to_pass) == len(lines) - left_out, name
