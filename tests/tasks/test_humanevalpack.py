"""HumanEvalPack rows become tasks; what is wrong with a row is said with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from practicum.errors import TaskError
from practicum.tasks.humanevalpack import read_rows
from practicum.tasks.importing import save_tasks
from practicum.tasks.taskset import load_taskset

SAMPLE = Path(__file__).parent / "data" / "humanevalfix-sample.jsonl"
ROWS = [json.loads(line) for line in SAMPLE.read_text().splitlines()]


def test_rows_become_task_directories(tmp_path: Path) -> None:
    """Every row is one directory that loads as the same task, with its licence and all of the row on record."""
    tasks, refused = read_rows(SAMPLE)
    assert refused == {}
    save_tasks(tasks, tmp_path / "out")
    again = load_taskset(tmp_path / "out")
    assert {task.id: task.digest for task in tasks} == {task.id: task.digest for task in again}
    assert [task.provenance["task_id"] for task in tasks] == [row["task_id"] for row in ROWS]
    assert [json.loads(task.provenance["row"]) for task in tasks] == ROWS
    assert {task.provenance["license"] for task in again} == {"MIT"}


def test_a_row_keeps_its_answer_to_itself() -> None:
    """The workspace holds the buggy program; neither gold nor frozen asserts are in the agent's view."""
    for task, row in zip(read_rows(SAMPLE)[0], ROWS, strict=True):
        assert task.files["solution.py"].data.decode() == row["declaration"] + row["buggy_solution"]
        assert task.solution["solution.py"].data.decode() == row["declaration"] + row["canonical_solution"]
        view = task.instruction + "".join(file.data.decode() for file in task.files.values())
        assert row["canonical_solution"].strip() not in view
        assert row["test"].strip() not in view
        assert row["entry_point"] in task.instruction


@pytest.mark.parametrize(
    ("change", "item", "words"),
    [
        (None, "rows.jsonl line 2", ["line 2", "not JSON"]),
        ({"test": None}, ROWS[1]["task_id"], ["line 2", "'test'"]),
        ({"task_id": None}, "rows.jsonl line 2", ["line 2", "'task_id'"]),
        ({"buggy_solution": "  ) (\n"}, ROWS[1]["task_id"], ["line 2", "does not parse"]),
        ({"entry_point": "nowhere"}, ROWS[1]["task_id"], ["line 2", "nowhere"]),
        ({"task_id": ROWS[0]["task_id"]}, ROWS[0]["task_id"], ["was there before"]),
    ],
)
def test_a_bad_row_is_named_and_the_rest_goes_on(
    tmp_path: Path, change: dict[str, str | None] | None, item: str, words: list[str]
) -> None:
    """The reason names what is wrong with the row, and the other rows become tasks."""
    second = "{oops" if change is None else json.dumps(ROWS[1] | change)
    source = tmp_path / "rows.jsonl"
    source.write_text("\n".join([json.dumps(ROWS[0]), second, json.dumps(ROWS[2])]) + "\n")
    tasks, refused = read_rows(source)
    assert [task.provenance["task_id"] for task in tasks] == [ROWS[0]["task_id"], ROWS[2]["task_id"]]
    assert list(refused) == [item]
    assert all(word in refused[item] for word in words), refused


def test_a_missing_or_empty_file_is_an_error(tmp_path: Path) -> None:
    """No file and no row are both refused by name."""
    with pytest.raises(TaskError, match="cannot be read"):
        read_rows(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(TaskError, match="no row"):
        read_rows(tmp_path / "empty.jsonl")
