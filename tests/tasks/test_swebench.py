"""SWE-bench and SWE-smith rows become tasks and come back field for field; what is wrong is told by item."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.errors import TaskError
from practicum.records.recipe import Recipe
from practicum.records.task import Task, Verification
from practicum.records.tree import File, Tree, apply_changes
from practicum.tasks.checkouts import Checkouts
from practicum.tasks.importing import save_tasks
from practicum.tasks.solutions import changes_of
from practicum.tasks.swebench import read_instances
from practicum.tasks.swebench_export import export_rows
from practicum.tasks.swebench_rows import instance_of, with_tests
from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from tasks.conftest import Git

BUG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
OLD_TEST = "from calc import add\n\n\ndef test_zero():\n    assert add(1, 0) == 1\n"
NEW_TEST = OLD_TEST + "\n\ndef test_add():\n    assert add(1, 2) == 3\n"
PATCH = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
TEST_PATCH = """\
diff --git a/tests/test_calc.py b/tests/test_calc.py
--- a/tests/test_calc.py
+++ b/tests/test_calc.py
@@ -4,2 +4,6 @@
 def test_zero():
     assert add(1, 0) == 1
+
+
+def test_add():
+    assert add(1, 2) == 3
"""
FILES = {
    "calc.py": BUG,
    "tests/test_calc.py": OLD_TEST,
    "tests/data/x.csv": "1,2\n",
    "conftest.py": "",
    "LICENSE": "MIT",
}


@pytest.fixture
def base(tmp_path: Path, commit: Git) -> str:
    return commit(tmp_path / "repos" / "ada__calc", FILES, "Start")


@pytest.fixture
def checkouts(tmp_path: Path, licence_of: Callable[[Tree], str | None]) -> Checkouts:
    return Checkouts(tmp_path / "repos", licence_of)


def row(base: str, **changed: Any) -> dict[str, Any]:
    return {
        "instance_id": "ada__calc-7",
        "repo": "ada/calc",
        "base_commit": base,
        "version": "1.0",
        "problem_statement": "`add` subtracts.\r\nPlease repair — it.",
        "hints_text": None,
        "created_at": "2024-03-01T10:00:00Z",
        "environment_setup_commit": base,
        "patch": PATCH,
        "test_patch": TEST_PATCH,
        "FAIL_TO_PASS": json.dumps(["tests/test_calc.py::test_add"]),
        "PASS_TO_PASS": ["tests/test_calc.py::test_zero"],
        "extra": {"of": ["somebody", 1.5, None]},
    } | changed


def rows_file(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in rows))
    return path


def test_a_row_becomes_a_task(tmp_path: Path, base: str, checkouts: Checkouts) -> None:
    """It starts from the commit's tree, its gold is `patch`, and the frozen tests have `test_patch` in them."""
    (task,), refused = read_instances(rows_file(tmp_path, row(base)), checkouts)
    assert refused == {}
    assert {name: file.data.decode() for name, file in task.files.items()} == FILES
    after = apply_changes(task.files, changes_of(task.solution, task.files) or ())
    assert {**after, "calc.py": after["calc.py"].data.decode()} == {**task.files, "calc.py": RIGHT}
    check = task.verification
    assert check.tests["frozen/tests/test_calc.py"].data.decode() == NEW_TEST
    assert set(check.tests) == {"frozen/tests/test_calc.py", "frozen/tests/data/x.csv", "frozen/conftest.py"}
    assert (check.files, check.fail_to_pass, check.pass_to_pass) == (
        ("frozen/tests/test_calc.py",),
        ("frozen/tests/test_calc.py::test_add",),
        ("frozen/tests/test_calc.py::test_zero",),
    )
    assert (task.provenance["commit"], task.provenance["license"]) == (base, "MIT")


@pytest.mark.parametrize("kind", [None, "swesmith"])
def test_a_row_of_swesmith_is_not_taken_the_wrong_way_round(
    tmp_path: Path, commit: Git, checkouts: Checkouts, kind: Any
) -> None:
    """There `patch` makes the bug: the task starts with it, the gold is the commit's own, its tests are out of view."""
    sha = commit(
        tmp_path / "repos" / "ada+calc" / "repo", FILES | {"calc.py": RIGHT, "tests/test_calc.py": NEW_TEST}, "Right"
    )
    backwards = PATCH.replace("-    return a - b\n+    return a + b\n", "-    return a + b\n+    return a - b\n")
    smith = {
        "instance_id": f"ada__calc.{sha[:8]}.func_pm__1",
        "repo": f"swesmith/ada__calc.{sha[:8]}",
        "patch": backwards,
        "FAIL_TO_PASS": ["tests/test_calc.py::test_add"],
        "PASS_TO_PASS": ["tests/test_calc.py::test_zero"],
        "image_name": "swesmith.x86_64.calc",
        "problem_statement": "add subtracts",
    }
    (task,), refused = read_instances(rows_file(tmp_path, smith), checkouts, kind=kind)
    assert refused == {}
    assert task.files["calc.py"].data.decode() == BUG
    assert "tests/test_calc.py" not in task.files
    (change,) = changes_of(task.solution, task.files) or ()
    assert (change.path, change.file and change.file.data.decode()) == ("calc.py", RIGHT)
    assert export_rows([task]) == ([smith], {})


def test_rows_come_back_field_for_field(tmp_path: Path, base: str, checkouts: Checkouts) -> None:
    """What was imported, written and loaded again gives the same row, in the same order of fields."""
    given_rows = [
        row(base),
        row(base, instance_id="b", FAIL_TO_PASS=["tests/test_calc.py::test_add"], hints_text="ü\ud800"),
    ]
    tasks, _ = read_instances(rows_file(tmp_path, *given_rows), checkouts)
    save_tasks(tasks, tmp_path / "out")
    rows, refused = export_rows(load_taskset(tmp_path / "out"))
    assert refused == {}
    assert [json.dumps(each) for each in rows] == [json.dumps(each) for each in given_rows]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
IDS = st.lists(st.sampled_from(["t.py::a", "t.py::b[x y]", "t.py::C::d"]), min_size=1, unique=True)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=4), IDS, st.booleans())
def test_reading_a_row_loses_nothing(extra: dict[str, Any], ids: list[str], as_text: bool) -> None:
    """Fields that are not known, and either notation of the lists, are kept as they were."""
    given_row = extra | row("0" * 40, FAIL_TO_PASS=json.dumps(ids) if as_text else ids, PASS_TO_PASS=[])
    instance = instance_of(given_row, "row")
    assert instance.fail_to_pass == tuple(ids)
    again = json.loads(json.dumps(instance.row))
    assert with_tests(again, instance.fail_to_pass, instance.pass_to_pass) == given_row
    fewer = with_tests(again, ("t.py::z",), ())
    assert fewer["FAIL_TO_PASS"] == ('["t.py::z"]' if as_text else ["t.py::z"])


def test_what_a_row_cannot_say_is_refused_by_name(tmp_path: Path, base: str, checkouts: Checkouts) -> None:
    """A changed statement and changed ids go into the row; changed files, and tasks of another origin, do not."""
    (task,), _ = read_instances(rows_file(tmp_path, row(base)), checkouts)
    reworded = replace(task, id="reworded", instruction="Other words.")
    grown = replace(task, id="grown", files=dict(task.files) | {"new.py": File(b"")})
    foreign = replace(task, id="foreign", provenance={})
    built = replace(task, id="built", verification=replace(task.verification, build="make"))
    other = replace(task, id="other", verification=replace(task.verification, runner="unittest"))
    rows, refused = export_rows([reworded, grown, foreign, built, other])
    assert rows == [row(base, instance_id="reworded", problem_statement="Other words.")]
    assert "changed since it was imported" in refused["grown"]
    assert "names a commit" in refused["foreign"]
    assert "'make'" in refused["built"]
    assert "'unittest'" in refused["other"]


def mined(base: str, fix: str) -> Task:
    """A task as mining makes them: no tests in the workspace, the gold below gold/, and its commits stated."""
    check = Verification("pytest", {"tests/test_calc.py": File(NEW_TEST.encode())}, files=("tests/test_calc.py",))
    return Task(
        id="calc-mined",
        instruction="Adding subtracts.\n",
        files={"calc.py": File(BUG.encode())},
        verification=replace(check, fail_to_pass=("tests/test_calc.py::test_add",)),
        editable=("calc.py",),
        solution={"solve.sh": File(b"cp /solution/gold/calc.py calc.py"), "gold/calc.py": File(RIGHT.encode())},
        provenance={"repository": "ada/calc", "parent_commit": base, "commit": fix, "date": "2024-03-01T10:00:00Z"},
    )


def test_a_mined_task_is_said_by_its_commit(tmp_path: Path, base: str, commit: Git, checkouts: Checkouts) -> None:
    """It becomes a row that imports as the same work; one that the commit does not bear out is refused."""
    changes = {"calc.py": RIGHT, "tests/test_calc.py": NEW_TEST, "NEWS": "new"}
    fix = commit(tmp_path / "repos" / "ada__calc", changes, "Repair")
    task = mined(base, fix)
    other = replace(task, id="other", files={"calc.py": File(b"x = 1")})
    (exported,), refused = export_rows([task, other], checkouts)
    assert refused == {"other": "its files are not those of the commit it states: 'calc.py' differs"}
    (again,), _ = read_instances(rows_file(tmp_path, exported), checkouts)
    (change,) = changes_of(again.solution, again.files) or ()
    assert (change.path, change.file) == ("calc.py", task.solution["gold/calc.py"])
    assert again.verification.tests["frozen/tests/test_calc.py"] == task.verification.tests["tests/test_calc.py"]
    assert (again.instruction, exported["created_at"]) == (task.instruction, "2024-03-01T10:00:00Z")
    assert "--repos" in export_rows([task])[1]["calc-mined"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"base_commit": None}, "base_commit"),
        ({"patch": 3}, "'patch' is not a string"),
        ({"problem_statement": " \n"}, "problem_statement is empty"),
        ({"patch": ""}, "patch is empty"),
        ({"FAIL_TO_PASS": "[]"}, "names no test"),
        ({"FAIL_TO_PASS": "test_add"}, "neither a list nor JSON"),
        ({"PASS_TO_PASS": [3]}, "PASS_TO_PASS is not a list of test ids"),
        ({"FAIL_TO_PASS": ["test_add (tests.test_calc.Case)"]}, "cannot be mapped"),
        ({"FAIL_TO_PASS": ["tests/gone.py::test_a"]}, "'tests/gone.py', which is not there"),
        ({"repo": "ada/other"}, "no clone of ada/other"),
        ({"repo": "../../etc"}, "no name of a repository"),
        ({"base_commit": "f" * 40}, "names no commit"),
        ({"patch": PATCH.replace("a - b", "a * b")}, "`patch` does not apply"),
        ({"test_patch": TEST_PATCH.replace("test_zero", "test_one")}, "`test_patch` does not apply"),
        ({"instance_id": "../x"}, "cannot be used"),
    ],
)
def test_a_bad_row_is_told_by_item_and_the_rest_goes_on(
    tmp_path: Path, base: str, checkouts: Checkouts, changed: dict[str, Any], words: str
) -> None:
    """Each fault has its own reason."""
    source = rows_file(tmp_path, row(base, instance_id="bad") | changed, row(base, instance_id="good"))
    tasks, refused = read_instances(source, checkouts)
    written, unwritten = save_tasks(tasks, tmp_path / "out")
    assert [task.id for task in written] == ["good"]
    ((item, why),) = (refused | unwritten).items()
    assert item == changed.get("instance_id", "bad")
    assert words in why


def test_lines_that_are_no_rows_and_ids_that_come_twice(tmp_path: Path, base: str, checkouts: Checkouts) -> None:
    """Undecodable lines are told by their number, a second task of one id by that id."""
    source = rows_file(tmp_path, "{oops", "[1]", row(base), row(base), "[" * 100_000)
    source.write_bytes(source.read_bytes() + b'{"instance_id": "\xff"}\n')
    tasks, refused = read_instances(source, checkouts)
    assert len(tasks) == 1
    assert {item: " ".join(why.split()[-6:]) for item, why in refused.items()}.keys() == {
        *(f"rows.jsonl line {number}" for number in (1, 2, 5, 6)),
        "ada__calc-7",
    }
    assert "was there before" in refused["ada__calc-7"]
    with pytest.raises(TaskError, match="cannot be read"):
        read_instances(tmp_path / "gone.jsonl", checkouts)


@pytest.mark.parametrize("place", ["ada__calc", "ada/calc", "ada+calc", "ada+calc/repo", "calc", "ada__calc.git"])
def test_clones_are_found_by_the_names_that_people_give_them(
    tmp_path: Path, commit: Git, checkouts: Checkouts, place: str
) -> None:
    """A repository may lie in any of the usual folders."""
    base = commit(tmp_path / "repos" / place, {"a": ""}, "Start")
    assert checkouts.find("ada/calc").resolve() == base
    if not place.endswith(".git"):
        assert checkouts.find("calc").resolve() == base


def test_a_name_that_several_clones_have_needs_its_owner(tmp_path: Path, commit: Git, checkouts: Checkouts) -> None:
    """None of them is taken for the one that is meant."""
    for place in ("ada__calc", "bob__calc"):
        commit(tmp_path / "repos" / place, {"a": place}, "Start")
    with pytest.raises(TaskError, match="no clone of calc"):
        checkouts.find("calc")


def test_what_a_commit_holds_that_a_task_cannot(tmp_path: Path, commit: Git, git: Git, checkouts: Checkouts) -> None:
    """A link is left out and told; a submodule is refused; so is a repository without a licence."""
    folder = tmp_path / "repos" / "ada__calc"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to("calc.py")
    base = commit(folder, FILES, "With a link")
    (task,), _ = read_instances(rows_file(tmp_path, row(base)), checkouts)
    assert task.provenance["left_out"] == {"link": "symbolic link"}
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{base},vendored")
    git(folder, "commit", "-q", "-m", "Vendored")
    _, refused = read_instances(rows_file(tmp_path, row("HEAD")), checkouts)
    assert "'vendored' is a submodule" in refused["ada__calc-7"]
    git(folder, "rm", "-q", "--cached", "vendored")
    bare = commit(folder, {"LICENSE": None}, "No licence")
    _, refused = read_instances(rows_file(tmp_path, row(bare)), checkouts)
    assert "no licence" in refused["ada__calc-7"]


def task_folder(root: Path, base: str, **changed: Any) -> Path:
    folder = root / "tasks" / "ada__calc-7"
    folder.mkdir(parents=True)
    meta = {"instance_id": "ada__calc-7", "repo": "ada/calc", "version": "1.0", "base_commit": base, "split": "dev"}
    meta |= {"image": "sweb/calc:latest", "log_parser": "parse_log_pytest", "eval_type": "pass_and_fail"}
    tests = {"FAIL_TO_PASS": ["tests/test_calc.py::test_add"], "PASS_TO_PASS": []}
    files = {
        "task.yaml": yaml.safe_dump({k: v for k, v in (meta | changed.pop("meta", {})).items() if v is not None}),
        "tests.json": json.dumps(tests),
        "problem_statement.md": "It subtracts.",
        "hints.md": "Look at the sign.",
        "gold.patch": PATCH,
        "test.patch": TEST_PATCH,
        "eval.sh": "pytest",
        "Dockerfile": "FROM python:3.11\nWORKDIR /testbed\nRUN true\n",
    } | changed
    for name, text in files.items():
        if text is not None:
            (folder / name).write_text(text)
    return folder


def test_task_folders(tmp_path: Path, base: str, checkouts: Checkouts) -> None:
    """A task repository, or one folder of it, is read with its Dockerfile, and comes back as a row with all fields."""
    folder = task_folder(tmp_path / "swe", base)
    for source in (tmp_path / "swe", folder, folder.parent):
        (task,), refused = read_instances(source, checkouts)
        assert refused == {}
        assert isinstance(task.layer, Recipe)
        assert (task.workspace, task.split) == ("/testbed", "dev")
        assert b"cd /testbed" in task.solution["solve.sh"].data
    (exported,), _ = export_rows([task])
    assert exported["hints_text"] == "Look at the sign."
    assert (exported["eval_script"], exported["image"], exported["split"]) == ("pytest", "sweb/calc:latest", "dev")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"Dockerfile": "FROM python:3.11\nADD https://example.org/x /x\n"}, "ADD"),
        ({"Dockerfile": None}, "Dockerfile is missing"),
        ({"eval.sh": None}, "eval.sh cannot be read"),
        ({"tests.json": "[]"}, "tests.json"),
        ({"task.yaml": "a: [1"}, "not YAML"),
        ({"task.yaml": "a: &a [x]\nb: [*a, *a]\n"}, "aliases"),
        ({"task.yaml": "!!python/object/apply:os.system ['true']"}, "not YAML"),
        ({"meta": {"log_parser": None, "image": None}}, "image, log_parser are missing"),
        ({"meta": {"log_parser": "parse_log_django"}}, "parse_log_django"),
        ({"meta": {"eval_type": "fail_only"}}, "fail_only"),
    ],
)
def test_a_bad_task_folder(
    tmp_path: Path, base: str, checkouts: Checkouts, changed: dict[str, Any], words: str
) -> None:
    """What is missing, or outside of what can be honoured, is the reason for the item."""
    task_folder(tmp_path / "swe", base, **changed)
    tasks, refused = read_instances(tmp_path / "swe", checkouts)
    assert tasks == []
    assert words in refused["ada__calc-7"]


def test_a_folder_without_tasks_is_an_error(tmp_path: Path, checkouts: Checkouts) -> None:
    """There is something to say where nothing could be imported at all."""
    with pytest.raises(TaskError, match="no task folder"):
        read_instances(tmp_path, checkouts)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"created_at": "garbage"}, "created_at 'garbage' is no date"),
        ({"created_at": ["2024"]}, "created_at"),
        ({"extra": float("nan")}, "NaN is no number of JSON"),
        ({"extra": [{"deep": float("-inf")}]}, "-Infinity is no number of JSON"),
    ],
)
def test_rows_that_are_not_what_they_seem(
    tmp_path: Path, base: str, checkouts: Checkouts, changed: dict[str, Any], words: str
) -> None:
    """A date that is none, and numbers that JSON does not have, are refused by name wherever they stand."""
    tasks, refused = read_instances(rows_file(tmp_path, row(base, **changed)), checkouts)
    assert tasks == []
    assert words in "".join(refused.values())
    huge = json.dumps(row(base)).replace("1.5", "1e999")
    _, refused = read_instances(rows_file(tmp_path, huge), checkouts)
    assert "1e999 is too large" in "".join(refused.values())


@pytest.mark.parametrize("date", ["2024-03-01T10:00:00Z", "2019-03-07 22:34:50+00:00", "2024-03-01", "", None])
def test_dates_that_are_taken(tmp_path: Path, base: str, checkouts: Checkouts, date: str | None) -> None:
    """Dates as they are found in rows, and none, are no reason to refuse."""
    _, refused = read_instances(rows_file(tmp_path, row(base, created_at=date)), checkouts)
    assert refused == {}


@pytest.mark.parametrize("text", ["", "\n  \n"])
def test_a_file_without_rows_is_an_error(tmp_path: Path, checkouts: Checkouts, text: str) -> None:
    """Nothing imported from nothing is no success."""
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(TaskError, match="holds no row"):
        read_instances(tmp_path / "rows.jsonl", checkouts)
