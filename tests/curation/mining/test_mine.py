"""A history gives tasks from commits that tests can tell, and a reason for each of the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from practicum.curation.admission import check_tasks
from practicum.curation.mining.digging import Dig
from practicum.curation.mining.mine import Yield, mine
from practicum.curation.projects.programs import Programs
from practicum.records.task import Task
from practicum.rollouts.workshop import Workshop
from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.provider import open_provider
from practicum.tasks.repositories import open_repository
from practicum.tasks.taskset import load_taskset
from practicum.verification.opening import open_verifier


@pytest.fixture(scope="module")
def boxes() -> Iterator[tuple[asyncio.Runner, SandboxProvider]]:
    with asyncio.Runner() as runner:
        opening = open_provider(run_id="tests-mining", limits_by="cgroup-or-rlimit")
        provider = runner.run(opening.__aenter__())
        try:
            yield runner, provider
        finally:
            runner.run(opening.__aexit__(None, None, None))


def _dig(repository: Path, provider: SandboxProvider) -> Dig:
    return Dig(open_repository(repository), provider, Programs(provider), "calc")


def test_a_history(
    repository: Path, history: dict[str, str], tmp_path: Path, boxes: tuple[asyncio.Runner, SandboxProvider]
) -> None:
    """Fixes and features become tasks that are admitted; the rest is refused by reason, once."""
    runner, provider = boxes
    out = tmp_path / "out"
    found = runner.run(mine(_dig(repository, provider), out))
    assert found.commits == len(history)
    assert found.candidates == 5
    assert found.tasks == [f"calc-{history['new name'][:10]}", f"calc-{history['task'][:10]}"]
    assert found.refused == {
        "changes only formatting, comments or a version": 1,
        "no test tells the two sides apart": 1,
        "the commit's own tests do not pass here": 1,
    }
    tasks = {task.id: task for task in load_taskset(out)}
    _check_task(tasks[found.tasks[1]], history)
    _check_new_name(tasks[found.tasks[0]])
    admissions = runner.run(_admitted(provider, list(tasks.values())))
    assert admissions == [None, None]
    again = runner.run(mine(_dig(repository, provider), out))
    assert (again.tasks, again.refused, again.from_journal) == (found.tasks, found.refused, 5)


async def _admitted(provider: SandboxProvider, tasks: list[Task]) -> list[str | None]:
    async with open_verifier(provider) as verifier:
        return [each.reason for each in await check_tasks(Workshop(provider, verifier, 2), tasks)]


def _check_task(task: Task, history: dict[str, str]) -> None:
    assert task.verification.fail_to_pass == ("tests/test_add.py::test_add",)
    assert task.verification.pass_to_pass == ("tests/test_calc.py::test_double",)
    assert b"a - b" in task.files["calc.py"].data
    assert not any("test" in path or ".git" in path for path in task.files)
    assert "Fix the sum of two numbers" in task.instruction
    assert "It subtracted its arguments instead." in task.instruction
    assert "assert -1 == 5" in task.instruction
    for told in ("#12", "Signed-off", "a + b", history["task"][:7]):
        assert told not in task.instruction
    assert task.provenance["commit"] == history["task"]
    assert task.provenance["parent_commit"] == history["start"]
    assert task.provenance["date"] == "2024-01-02T10:00:00Z"


def _check_new_name(task: Task) -> None:
    assert task.verification.fail_to_pass == ("tests/test_calc.py::test_half",)
    assert task.verification.pass_to_pass == ()  # the file cannot be collected before
    assert "half_of" in task.instruction
    assert "a // 2" not in task.instruction


def test_going_on_and_stopping(
    repository: Path, history: dict[str, str], tmp_path: Path, boxes: tuple[asyncio.Runner, SandboxProvider]
) -> None:
    """A walk stops at its limit, its date or its commit, and one that was ended goes on after what it knows."""
    runner, provider = boxes
    out = tmp_path / "out"

    def walk(**options: object) -> Yield:
        return runner.run(mine(_dig(repository, provider), out, **options))  # type: ignore[arg-type]

    first = walk(limit=1)
    assert (len(first.tasks), first.stopped) == (1, "limit")
    assert walk(since=history["wrong"]).commits == 1
    assert walk(since="2024-01-05").commits == 3
    journal = out / ".practicum" / "mining.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:-1], lines[-1][:20]]))  # as if it had been ended while writing
    spent = walk(budget_s=-1.0)
    assert spent.stopped == "budget"
    assert spent.from_journal == spent.candidates
    assert all(json.loads(line)["commit"] in history.values() for line in lines)
