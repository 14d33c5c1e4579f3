"""HumanEvalPack rows become tasks; what is wrong with a row is said with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from practicum.errors import TaskError
from practicum.tasks.humanevalpack import import_file, import_rows
from practicum.tasks.taskset import load_taskset

SAMPLE = Path(__file__).parent / "data" / "humanevalfix-sample.jsonl"
ROWS = [json.loads(line) for line in SAMPLE.read_text().splitlines()]


def test_rows_become_task_directories(tmp_path: Path) -> None:
    """Every row is one directory that loads as the same task, with its licence on record."""
    tasks = import_file(SAMPLE, tmp_path / "out")
    again = load_taskset(tmp_path / "out")
    assert {task.id: task.digest for task in tasks} == {task.id: task.digest for task in again}
    assert [task.provenance["task_id"] for task in tasks] == [row["task_id"] for row in ROWS]
    assert {task.provenance["license"] for task in again} == {"MIT"}


def test_a_row_keeps_its_answer_to_itself(tmp_path: Path) -> None:
    """The workspace holds the buggy program; neither gold nor frozen asserts are in the agent's view."""
    for task, row in zip(import_rows(SAMPLE), ROWS, strict=True):
        assert task.files["solution.py"].data.decode() == row["declaration"] + row["buggy_solution"]
        assert task.solution["solution.py"].data.decode() == row["declaration"] + row["canonical_solution"]
        view = task.instruction + "".join(file.data.decode() for file in task.files.values())
        assert row["canonical_solution"].strip() not in view
        assert row["test"].strip() not in view
        assert row["entry_point"] in task.instruction


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (None, ["line 2", "not JSON"]),
        ({"test": None}, ["line 2", "'test'"]),
        ({"buggy_solution": "  ) (\n"}, ["line 2", "does not parse"]),
        ({"entry_point": "nowhere"}, ["line 2", "nowhere"]),
        ({"task_id": ROWS[0]["task_id"]}, ["line 2", ROWS[0]["task_id"], "line 1"]),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_written(
    tmp_path: Path, change: dict[str, str | None] | None, words: list[str]
) -> None:
    """The message names the line, and no task directory is left of a file with a bad row."""
    second = "{oops" if change is None else json.dumps(ROWS[1] | change)
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(ROWS[0]) + "\n" + second + "\n")
    with pytest.raises(TaskError) as caught:
        import_file(source, tmp_path / "out")
    assert all(word in str(caught.value) for word in words), caught.value
    assert not (tmp_path / "out").exists()


def test_a_missing_or_empty_file_is_an_error(tmp_path: Path) -> None:
    """No file and no row are both refused by name."""
    with pytest.raises(TaskError, match="cannot be read"):
        list(import_rows(tmp_path / "none.jsonl"))
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(TaskError, match="no row"):
        import_file(tmp_path / "empty.jsonl", tmp_path / "out")
