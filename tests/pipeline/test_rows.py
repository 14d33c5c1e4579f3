"""Stored attempts as rows for another trainer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from practicum.config import load_config
from practicum.errors import ConfigError, TrainerError
from practicum.pipeline.rows import export_rows, keep_rows, read_rows_of
from practicum.pipeline.runfolder import RunFolder
from practicum.records.trajectory import Action, Trajectory, Turn
from practicum.records.verdict import Verdict
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family

TASKS = generate_family(FamilySpec(train=2, validation=1, test=1))


def attempt(number: int, task: str, text: str, *, passed: bool) -> Trajectory:
    turn = Turn(0, (1, 2), (3,), (-0.5,), 0, "stop", text, Action("submit"), "seen", "a", "b")
    verdict = Verdict("valid", "passed" if passed else "failed", float(passed))
    return Trajectory(f"{task}/{number}", "g", task, "d", (turn,), "submitted", verdict=verdict)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with attempts at a training task and at a held-out one."""
    with RunFolder.create(tmp_path / "runs", load_config("quickstart")) as folder:
        for task in TASKS:
            save_task(task, folder.path / "tasks" / task.id)
        folder.store.append(
            "rl", 1, [attempt(n, "train-0000", text, passed=text == "right") for n, text in enumerate(["right", "no"])]
        )
        folder.store.append("test", 1, [attempt(0, "test-0000", "secret", passed=True)])
        return folder.path


def test_rows_to_imitate_and_to_tell_apart(run: Path, tmp_path: Path) -> None:
    """Successes and pairs are written with their instruction and read back; held-out tasks give none."""
    facts = export_rows(run, tmp_path / "out" / "rows.jsonl", kind="sft")
    assert (facts["rows"], facts["tasks"], facts["attempts"]) == (1, 1, 2)
    ((turns,),) = read_rows_of(tmp_path / "out" / "rows.jsonl", paired=False)
    instruction = next(task.instruction for task in TASKS if task.id == "train-0000")
    assert turns == (instruction, "right")
    export_rows(run, tmp_path / "pairs.jsonl", kind="pairs")
    assert read_rows_of(tmp_path / "pairs.jsonl", paired=True) == [((instruction, "right"), (instruction, "no"))]
    assert "secret" not in (tmp_path / "pairs.jsonl").read_text() + (tmp_path / "out" / "rows.jsonl").read_text()


def test_a_file_is_never_overwritten(run: Path, tmp_path: Path) -> None:
    """A target that is there is refused and left as it was."""
    (tmp_path / "rows.jsonl").write_text("mine")
    with pytest.raises(ConfigError, match="there already"):
        export_rows(run, tmp_path / "rows.jsonl", kind="sft")
    assert (tmp_path / "rows.jsonl").read_text() == "mine"


def test_nothing_to_export_is_said(tmp_path: Path) -> None:
    """A run without a success ends in an error, not in an empty file."""
    with RunFolder.create(tmp_path / "runs", load_config("quickstart")) as folder:
        save_task(TASKS[-1], folder.path / "tasks" / TASKS[-1].id)
    with pytest.raises(ConfigError, match="no success"):
        export_rows(folder.path, tmp_path / "rows.jsonl", kind="sft")
    assert not (tmp_path / "rows.jsonl").exists()


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"messages": []}', '{"messages": [{"role": "assistant", "content": "hi"}]}', '{"prompt": []}'],
)
def test_a_row_that_is_none_is_named(line: str, tmp_path: Path) -> None:
    """A file of something else is refused with the row's number and the command that writes one."""
    good = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(good) + "\n" + line + "\n")
    with pytest.raises(TrainerError, match="row 2"):
        read_rows_of(tmp_path / "rows.jsonl", paired=False)


def test_a_run_keeps_the_rows_that_it_began_with(run: Path, tmp_path: Path) -> None:
    """The file is copied once, so that a resume does not learn from what it was changed into."""
    source = tmp_path / "rows.jsonl"
    source.write_text("first\n")
    with RunFolder.open(run, write=True) as folder:
        keep_rows(folder, str(source))
        source.write_text("second\n")
        keep_rows(folder, str(source))
        assert (folder.path / "rows.jsonl").read_text() == "first\n"
        (folder.path / "rows.jsonl").unlink()
        with pytest.raises(ConfigError, match=r"study\.rows"):
            keep_rows(folder, str(tmp_path / "none.jsonl"))
