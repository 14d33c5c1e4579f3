"""Plain tickets become tasks of the commit they name; what they lack is told by item."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.errors import TaskError
from practicum.records.tree import Tree
from practicum.tasks.checkouts import Checkouts
from practicum.tasks.importing import save_tasks
from practicum.tasks.solutions import changes_of
from practicum.tasks.taskset import load_taskset
from practicum.tasks.tickets import read_tickets

if TYPE_CHECKING:
    from tasks.conftest import Git

BUG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
PATCH = "--- a/calc.py\n+++ b/calc.py\n@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"


@pytest.fixture
def commits(tmp_path: Path, commit: Git) -> tuple[str, str]:
    """The commit with the bug, and the one that repairs it and brings the test."""
    start = commit(tmp_path / "calc", {"calc.py": BUG, "tests/test_old.py": TEST, "LICENSE": "MIT"}, "Start")
    return start, commit(tmp_path / "calc", {"calc.py": RIGHT, "tests/test_calc.py": TEST}, "Repair add")


@pytest.fixture
def checkouts(tmp_path: Path, licence_of: Callable[[Tree], str | None]) -> Checkouts:
    return Checkouts(tmp_path, licence_of)


def ticket(commits: tuple[str, str], **changed: Any) -> dict[str, Any]:
    return {
        "id": "calc-1",
        "title": "Adding subtracts",
        "body": "add(1, 2) gives −1.",
        "repository": "calc",
        "commit": commits[0],
        "check": "pytest: tests/test_calc.py::test_add",
        "fix": commits[1],
    } | changed


def table(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "tickets.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_fix_is_split_into_gold_and_frozen_tests(
    tmp_path: Path, commits: tuple[str, str], checkouts: Checkouts
) -> None:
    """The fix's tests are what it is checked by, the rest of it is the gold; neither is in the workspace."""
    (task,), refused = read_tickets(table(tmp_path, ticket(commits)), checkouts)
    assert refused == {}
    assert task.instruction == "# Adding subtracts\n\nadd(1, 2) gives −1.\n"
    assert (task.files["calc.py"].data.decode(), "tests/test_calc.py" in task.files) == (BUG, False)
    assert set(task.verification.tests) == {"frozen/tests/test_calc.py", "frozen/tests/test_old.py"}
    assert task.verification.fail_to_pass == ("frozen/tests/test_calc.py::test_add",)
    (change,) = changes_of(task.solution, task.files) or ()
    assert (change.path, change.file and change.file.data.decode()) == ("calc.py", RIGHT)
    assert json.loads(task.provenance["row"]) == ticket(commits)
    assert (task.provenance["commit"], task.provenance["license"]) == (commits[0], "MIT")


def test_csv_and_json_lines_say_the_same(tmp_path: Path, commits: tuple[str, str], checkouts: Checkouts) -> None:
    """A ticket is one task whichever table it stands in; cells may hold commas, quotes and lines."""
    row = ticket(commits, body='It says "no",\nalways.')
    text = io.StringIO()
    writer = csv.DictWriter(text, list(row))
    writer.writeheader()
    writer.writerow(row)
    (tmp_path / "tickets.csv").write_text("\ufeff" + text.getvalue(), newline="")
    (of_csv,), _ = read_tickets(tmp_path / "tickets.csv", checkouts)
    (of_json,), _ = read_tickets(table(tmp_path, row), checkouts)
    assert of_csv.content == of_json.content
    save_tasks([of_csv], tmp_path / "out")
    assert load_taskset(tmp_path / "out")[0].content == of_csv.content


def test_a_patch_file_and_no_fix(tmp_path: Path, commits: tuple[str, str], checkouts: Checkouts) -> None:
    """A fix may be a patch beside the table; without one there is no gold, and the task says so."""
    (tmp_path / "fix.patch").write_text(PATCH)
    check = "pytest: tests/test_old.py"
    (patched, open_), refused = read_tickets(
        table(tmp_path, ticket(commits, fix="fix.patch", check=check), ticket(commits, id="b", fix="", check=check)),
        checkouts,
    )
    assert refused == {}
    assert [change.path for change in changes_of(patched.solution, patched.files) or ()] == ["calc.py"]
    assert patched.verification.fail_to_pass == ("frozen/tests/test_old.py::test_add",)
    assert (open_.solution, "without a fix" in open_.provenance["no_solution"]) == ({}, True)


def test_a_command(tmp_path: Path, commits: tuple[str, str], checkouts: Checkouts) -> None:
    """A command of the shell is run by a script that leaves its reward; frozen tests are laid over the workspace."""
    (task,), _ = read_tickets(
        table(tmp_path, ticket(commits, check="command: python3 -c 'import calc' && true")), checkouts
    )
    assert task.verification.runner == "harbor"
    script = task.verification.tests["test.sh"].data.decode()
    assert """sh -c 'python3 -c '"'"'import calc'"'"' && true'""" in script
    assert "frozen/tests/test_calc.py" in task.verification.tests


def test_names_are_made_where_none_are_given(tmp_path: Path, commits: tuple[str, str], checkouts: Checkouts) -> None:
    """Two tickets of one title get names of their own, the same at every import."""
    rows = [ticket(commits, id=""), ticket(commits, id="", body="Another.")]
    first, second = (task.id for task in read_tickets(table(tmp_path, *rows), checkouts)[0])
    assert first.startswith("adding-subtracts-")
    assert first != second
    assert [task.id for task in read_tickets(table(tmp_path, *rows), checkouts)[0]] == [first, second]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"title": "", "check": None}, "title, check is missing or empty"),
        ({"body": 3, "id": "bad"}, "'body' is not a string"),
        ({"check": "make test"}, "cannot be honoured"),
        ({"check": "pytest: nothing"}, "cannot be mapped"),
        ({"check": "pytest: 'tests/test_calc.py"}, "quot"),
        ({"repository": "gone"}, "no such folder"),
        ({"commit": "f" * 40}, "names no commit"),
        ({"fix": "gone.patch"}, "cannot be read"),
        ({"fix": "HEAD~1"}, "changes nothing"),
    ],
)
def test_a_bad_ticket_is_told_by_item(
    tmp_path: Path, commits: tuple[str, str], checkouts: Checkouts, changed: dict[str, Any], words: str
) -> None:
    """Each fault has its own reason, and the other tickets are imported."""
    tasks, refused = read_tickets(table(tmp_path, ticket(commits, id="bad") | changed, ticket(commits)), checkouts)
    assert [task.id for task in tasks] == ["calc-1"]
    assert list(refused) == ["bad"]
    assert words in refused["bad"].lower()


def test_a_licence_may_stand_in_the_ticket(tmp_path: Path, commit: Git, checkouts: Checkouts) -> None:
    """A repository that says nothing of its licence is refused, unless the ticket does."""
    sha = commit(tmp_path / "calc", {"calc.py": BUG, "tests/test_old.py": TEST}, "Start")
    row = ticket((sha, ""), check="pytest: tests/test_old.py::test_add")
    source = table(tmp_path, row, row | {"id": "licensed", "licence": "BSD-3-Clause"})
    (task,), refused = read_tickets(source, checkouts)
    assert (task.id, task.provenance["license"]) == ("licensed", "BSD-3-Clause")
    assert "no licence" in refused["calc-1"]


def test_tables_that_cannot_be_read(tmp_path: Path, checkouts: Checkouts) -> None:
    """A missing file, missing columns and bytes that are no text are errors; a ragged line is told by its number."""
    path = tmp_path / "tickets.csv"
    with pytest.raises(TaskError, match="cannot be read"):
        read_tickets(path, checkouts)
    path.write_text("title,body\na,b\n")
    with pytest.raises(TaskError, match="lacks the columns repository, commit, check"):
        read_tickets(path, checkouts)
    path.write_bytes(b"title\xff")
    with pytest.raises(TaskError, match="not UTF-8"):
        read_tickets(path, checkouts)
    path.write_text("title,body,repository,commit,check\na,b\n")
    assert list(read_tickets(path, checkouts)[1]) == ["tickets.csv line 2"]
