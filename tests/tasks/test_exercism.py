"""Exercism's exercises become tasks: what is shown, what is kept back, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from practicum.errors import TaskError
from practicum.records.tree import Tree
from practicum.tasks.exercism import licence_texts, read_exercises
from practicum.tasks.importing import save_tasks
from practicum.tasks.solutions import changes_of
from practicum.tasks.taskset import load_taskset

Licences = Callable[[Tree], "str | None"]

TEST = """\
import unittest
from {module} import double

class DoubleTest(unittest.TestCase):
    def test_two(self):
        self.assertEqual(double(2), 4)

    def test_zero(self):
        self.assertEqual(double(0), 0)
"""
STUB, GOLD = "def double(x):\n    pass\n", "def double(x):\n    return 2 * x\n"


def exercise(track: Path, slug: str, kind: str = "practice", **files: Any) -> Path:
    folder = track / "exercises" / kind / slug
    module = slug.replace("-", "_")
    gold = ".meta/example.py" if kind == "practice" else ".meta/exemplar.py"
    config = {
        "authors": ["ada"],
        "files": {
            "solution": [f"{module}.py"],
            "test": [f"{module}_test.py"],
            "example" if kind == "practice" else "exemplar": [gold],
        },
    }
    config["files"] |= files.pop("config", {})
    content = {
        f"{module}.py": STUB,
        f"{module}_test.py": TEST.format(module=module),
        gold: GOLD,
        ".docs/instructions.md": "# Double\n\nDouble a number.\n",
        ".meta/config.json": json.dumps(config),
    } | {name.replace("__", "/"): text for name, text in files.pop("files", {}).items()}
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture
def track(tmp_path: Path) -> Path:
    root = tmp_path / "track"
    root.mkdir()
    (root / "LICENSE").write_text("MIT License")
    listed = {"practice": [{"slug": "double-it", "difficulty": 5}], "concept": [{"slug": "first-steps"}]}
    (root / "config.json").write_text(json.dumps({"exercises": listed}))
    return root


def test_a_track(track: Path, licence_of: Licences, tmp_path: Path) -> None:
    """Practice and concept exercises become tasks that are written and read back; what each file is says the config."""
    docs = {
        ".docs/introduction.md": "Numbers.",
        ".docs/instructions.append.md": "Raise a ValueError.",
        ".docs/hints.md": "x",
    }
    exercise(track, "double-it", files=docs)
    exercise(track, "first-steps", "concept")
    tasks, refused = read_exercises(track, licence_of)
    assert refused == {}
    practice, concept = tasks
    assert (practice.id, practice.difficulty, concept.difficulty) == ("exercism-double-it", "medium", None)
    assert set(practice.files) == {"double_it.py"}
    assert set(practice.verification.tests) == {"double_it_test.py"}
    assert practice.verification.fail_to_pass == (
        "double_it_test.DoubleTest.test_two",
        "double_it_test.DoubleTest.test_zero",
    )
    assert practice.instruction.startswith("Numbers.\n\n# Double\n\nDouble a number.\n\nRaise a ValueError.\n\n")
    assert "hints" not in practice.instruction
    (change,) = changes_of(practice.solution, practice.files) or ()
    assert (change.path, change.file and change.file.data) == ("double_it.py", GOLD.encode())
    assert practice.provenance["license"] == "MIT"
    assert json.loads(practice.provenance["config"])["authors"] == ["ada"]
    written, unwritten = save_tasks(tasks, tmp_path / "out", licence_texts(track))
    assert (len(written), unwritten) == (2, {})
    assert [task.digest for task in load_taskset(tmp_path / "out")] == [task.digest for task in tasks]
    assert (tmp_path / "out" / "LICENSE").read_text() == "MIT License"


def test_one_exercise(track: Path, licence_of: Licences) -> None:
    """The folder of one exercise is enough; its track says licence and difficulty."""
    exercise(track, "double-it")
    (task,), _ = read_exercises(track / "exercises" / "practice" / "double-it", licence_of)
    assert (task.difficulty, task.provenance["license"]) == ("medium", "MIT")


def test_several_files(track: Path, licence_of: Licences) -> None:
    """References go to the stub of their name, data for both is shown and kept, helpers of tests are kept back."""
    exercise(
        track,
        "double-it",
        config={
            "solution": ["double_it.py", "more.py"],
            "test": ["double_it_test.py", "test_utils.py"],
            "editor": ["numbers_data.py"],
            "example": [".meta/more.py", ".meta/double_it.py"],
        },
        files={
            "more.py": "x = 0\n",
            "test_utils.py": "y = 1\n",
            "numbers_data.py": "z = 2\n",
            "helpers.py": "w = 3\n",
            ".meta/double_it.py": GOLD,
            ".meta/more.py": "x = 1\n",
        },
    )
    (task,), _ = read_exercises(track, licence_of)
    assert set(task.files) == {"double_it.py", "more.py", "numbers_data.py"}
    assert set(task.verification.tests) == {"double_it_test.py", "test_utils.py", "numbers_data.py", "helpers.py"}
    assert task.verification.visible == ("numbers_data.py",)
    assert task.editable == ("double_it.py", "more.py")
    changes = {change.path: change.file for change in changes_of(task.solution, task.files) or ()}
    assert {name: file and file.data for name, file in changes.items()} == {
        "double_it.py": GOLD.encode(),
        "more.py": b"x = 1\n",
    }


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"config": {"example": []}}, "example or exemplar"),
        ({"config": {"test": ["../../secret_test.py"]}}, "not a plain relative path"),
        ({"config": {"test": ["gone_test.py"]}}, "cannot be read"),
        ({"config": {"example": [".meta/example.py", ".meta/config.json"]}}, "cannot be told to belong"),
        ({"files": {".meta/config.json": "{oops"}}, "not JSON"),
        ({"files": {".meta/example.py": STUB}}, "the stub itself"),
        ({"files": {".docs/instructions.md": " "}}, "instructions.md is missing or empty"),
        ({"files": {"double_it_test.py": "x = 1\n"}}, "holds no test"),
        ({"files": {"double_it_test.py": b"\xff\xfe"}}, "not UTF-8"),
    ],
)
def test_an_exercise_that_cannot_be_a_task_is_told_by_its_slug(
    track: Path, licence_of: Licences, changed: dict[str, Any], words: str
) -> None:
    """Each has its own reason, and the others are imported."""
    exercise(track, "double-it", **changed)
    exercise(track, "good-one")
    tasks, refused = read_exercises(track, licence_of)
    assert [task.id for task in tasks] == ["exercism-good-one"]
    assert list(refused) == ["double-it"]
    assert words in refused["double-it"]


def test_no_track_and_no_licence(track: Path, licence_of: Licences, tmp_path: Path) -> None:
    """A folder without exercises is an error; work without a licence is taken only where that is allowed."""
    with pytest.raises(TaskError, match="no exercise"):
        read_exercises(tmp_path, licence_of)
    exercise(track, "double-it")
    (track / "LICENSE").unlink()
    with pytest.raises(TaskError, match="no licence") as caught:
        read_exercises(track, licence_of)
    assert "--allow-unlicensed" in str(caught.value.fix)
    (task,), _ = read_exercises(track, licence_of, allow_unlicensed=True)
    assert task.provenance["license"] == "unknown"
