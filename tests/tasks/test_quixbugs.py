"""QuixBugs' programs become tasks from either layout; what cannot is refused by name, and nothing else with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from practicum.errors import TaskError
from practicum.tasks.quixbugs import read_programs, save_programs
from practicum.tasks.taskset import load_taskset

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "quixbugs-sample.jsonl"
ROWS: list[dict[str, str]] = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
FILES: dict[str, str] = json.loads((DATA / "quixbugs-checkout.json").read_text())
NAMES = ["detect_cycle", "flatten", "gcd", "hanoi", "levenshtein", "sqrt"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A part of the original repository, as it is there."""
    for name, text in FILES.items():
        path = tmp_path / "QuixBugs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "QuixBugs"


def rows_of(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def row(name: str, /, **change: str | None) -> dict[str, Any]:
    """The sample's row of a program, changed."""
    return {**next(row for row in ROWS if row["name"] == name), **change}


def cases_of(task: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in task.verification.tests["cases.jsonl"].data.splitlines()]


def test_both_layouts_give_the_same_tasks(checkout: Path) -> None:
    """A checkout and the rows made of it ask for the same work, judged the same way."""
    (first, none), (second, no_more) = read_programs(checkout), read_programs(SAMPLE)
    assert none == no_more == {}
    assert [task.id for task in first] == [f"quixbugs-{name}" for name in NAMES]
    assert {task.id: task.digest for task in first} == {task.id: task.digest for task in second}


def test_tasks_are_written_with_licence_and_origin(checkout: Path, tmp_path: Path) -> None:
    """What is written loads as the same tasks; the licence's own text lies beside them, and each names its source."""
    tasks, _ = read_programs(checkout)
    written, refused = save_programs(checkout, tasks, tmp_path / "out")
    assert refused == {}
    again = load_taskset(tmp_path / "out")
    assert {task.id: task.digest for task in again} == {task.id: task.digest for task in written}
    assert (tmp_path / "out" / "LICENSE-quixbugs").read_text() == FILES["LICENSE"]
    assert {task.provenance["license"] for task in again} == {"MIT"}
    assert {task.provenance["source"] for task in again} == {"QuixBugs, jkoppel/QuixBugs"}


def test_a_taken_place_is_refused_and_the_rest_is_written(checkout: Path, tmp_path: Path) -> None:
    """A folder that holds something else is left alone, named, and keeps no other task from being written."""
    tasks, _ = read_programs(checkout)
    (tmp_path / "out" / "quixbugs-gcd").mkdir(parents=True)
    (tmp_path / "out" / "quixbugs-gcd" / "notes").write_text("keep me")
    written, refused = save_programs(checkout, tasks, tmp_path / "out")
    assert list(refused) == ["quixbugs-gcd"]
    assert len(written) == len(NAMES) - 1
    assert (tmp_path / "out" / "quixbugs-gcd" / "notes").read_text() == "keep me"


def test_what_is_data_is_compared_as_data(checkout: Path) -> None:
    """Cases go to the runner `plain`, with the pairs, tolerances and lists that upstream's tests make of them."""
    tasks = {task.id.removeprefix("quixbugs-"): task for task in read_programs(checkout)[0]}
    assert {name: task.verification.runner for name, task in tasks.items()} == {
        name: "pytest" if name == "detect_cycle" else "plain" for name in NAMES
    }
    assert cases_of(tasks["hanoi"])[1] == {"id": "case-2", "args": [1, 1, 3], "expected": [{"$tuple": [1, 3]}]}
    for case in cases_of(tasks["sqrt"]):
        assert isinstance(case["expected"], float)
        # in proportion or not, it is never wider than upstream's
        assert case["approx"] * (case["expected"] + case["args"][1]) <= case["args"][1] * (1 + 1e-9)
        assert case["approx"] <= case["args"][1]
    listed = tasks["flatten"]
    assert listed.verification.plain is not None
    assert listed.verification.plain.entry == "flatten_listed:flatten"
    assert "flatten_listed.py" in listed.files
    assert listed.editable == ("flatten.py",)


def test_cases_that_nobody_can_wait_for_are_left_out_with_the_reason(checkout: Path) -> None:
    """The case that takes the reference itself up to 20 s is not judged, and the task says so."""
    task = next(task for task in read_programs(checkout)[0] if task.id == "quixbugs-levenshtein")
    assert len(FILES["json_testcases/levenshtein.json"].strip().splitlines()) == 7
    assert len(cases_of(task)) == 6
    assert task.provenance["left_out"] == "1 of 7 cases: the reference takes 5 to over 20 s for it"
    assert all(max(map(len, case["args"])) < 20 for case in cases_of(task))


def test_graph_tests_do_not_depend_on_each_other(checkout: Path) -> None:
    """Each test makes its own nodes, of a class that the agent can see too and nobody may change."""
    task = next(task for task in read_programs(checkout)[0] if task.id == "quixbugs-detect_cycle")
    check = task.verification
    text = check.tests["test_detect_cycle.py"].data.decode()
    assert check.fail_to_pass == tuple(f"test_detect_cycle.py::test{number}" for number in range(1, 7))
    assert text.count("node5 = Node(5, node4)") == 6
    assert "use_correct" not in text
    assert check.visible == ("node.py",)
    assert "class Node" in task.files["node.py"].data.decode()
    assert task.editable == ("detect_cycle.py",)


def test_the_answer_is_not_in_the_agents_view(checkout: Path) -> None:
    """The workspace holds the buggy program; what the program is for is in the instruction, the rest is not."""
    for source in (checkout, SAMPLE):
        for task in read_programs(source)[0]:
            name = task.id.removeprefix("quixbugs-")
            gold = task.solution[f"{name}.py"].data.decode()
            view = task.instruction + "".join(file.data.decode() for file in task.files.values())
            assert gold.strip() not in view
            assert "assert" not in view
            assert task.files[f"{name}.py"].data != task.solution[f"{name}.py"].data
            assert "Output:" in task.instruction


@pytest.mark.parametrize(
    ("remove", "change", "words"),
    [
        ("correct_python_programs/gcd.py", None, ["correct_python_programs/gcd.py", "cannot be read"]),
        ("python_programs/gcd.py", None, ["python_programs/gcd.py", "cannot be read"]),
        ("python_testcases/test_detect_cycle.py", None, ["neither", "test_detect_cycle.py"]),
        ("python_testcases/node.py", None, ["test_detect_cycle.py", "Node"]),
        ("json_testcases/gcd.json", "[[1, 2]", ["json_testcases/gcd.json line 1"]),
        ("json_testcases/gcd.json", "[1, 2, 3]\n", ["json_testcases/gcd.json line 1"]),
        ("json_testcases/gcd.json", "\n", ["json_testcases/gcd.json", "no case"]),
        ("python_programs/gcd.py", "def gcd(:\n", ["python_programs/gcd.py", "parse"]),
        ("python_programs/gcd.py", "def other(): pass\n", ["buggy", "'gcd'"]),
        ("python_programs/gcd.py", FILES["correct_python_programs/gcd.py"], ["the same"]),
        ("python_testcases/test_detect_cycle.py", "import pytest\n", ["test_detect_cycle.py", "no test"]),
        (
            "python_testcases/test_detect_cycle.py",
            "import pytest\n\n@pytest.mark.parametrize('a', [1])\ndef test1(a):\n    pass\n",
            ["test1", "decorated"],
        ),
    ],
)
def test_what_cannot_be_a_task_is_named_and_the_rest_goes_on(
    checkout: Path, remove: str, change: str | None, words: list[str]
) -> None:
    """One bad program is refused with its file, and the other five are tasks."""
    (checkout / remove).unlink()
    if change is not None:
        (checkout / remove).write_text(change)
    tasks, refused = read_programs(checkout)
    assert len(tasks) == len(NAMES) - 1
    ((name, reason),) = refused.items()
    assert name in ("gcd", "detect_cycle")
    assert all(word in reason for word in words), reason


def test_nothing_is_read_through_a_link(checkout: Path, tmp_path: Path) -> None:
    """A repository that links to a file elsewhere does not get that file into a task."""
    secret = tmp_path / "secret.py"
    secret.write_text("def gcd(a, b):\n    return 'secret'\n")
    (checkout / "python_programs/gcd.py").unlink()
    (checkout / "python_programs/gcd.py").symlink_to(secret)
    _, refused = read_programs(checkout)
    assert "symbolic link" in refused["gcd"]


@pytest.mark.parametrize(
    ("bad", "item", "words"),
    [
        ("{oops", "rows.jsonl line 2", ["not JSON"]),
        ("[1]", "rows.jsonl line 2", ["not a JSON object"]),
        ({"name": "x"}, "x", ["line 2", "'buggy_program'"]),
        (row("gcd", name="../gcd"), "../gcd", ["cannot be the name"]),
        (row("gcd", name="import"), "import", ["cannot be the name"]),
        (row("gcd", tests="assert gcd(3, b=4) == 1\n"), "gcd", ["call something else", "b=4"]),
        (row("gcd", tests="assert gcd(*[f()]) == 1\n"), "gcd", ["more than literals"]),
        (row("gcd", tests="assert gcd(*[3, 4]) > 1\n"), "gcd", ["compare", "> 1"]),
        (row("gcd", tests="print(gcd(1, 2))\n"), "gcd", ["no test"]),
        (row("gcd", tests="assert ("), "gcd", ["do not parse"]),
        (row("hanoi", buggy_program="x = 1\n"), "hanoi", ["buggy", "'hanoi'"]),
        (row("flatten"), "flatten", ["was there before"]),
    ],
)
def test_a_bad_row_is_named_and_the_rest_goes_on(tmp_path: Path, bad: Any, item: str, words: list[str]) -> None:
    """A row that is none, or says something that is not known here, is refused with its name or line."""
    tasks, refused = read_programs(rows_of(tmp_path, row("flatten"), bad, row("sqrt")))
    assert [task.id for task in tasks] == ["quixbugs-flatten", "quixbugs-sqrt"]
    assert list(refused) == [item]
    assert all(word in refused[item] for word in words), refused


@pytest.mark.parametrize("files", [[], ["a.jsonl", "b.jsonl"]])
def test_a_folder_that_is_no_quixbugs_is_an_error(tmp_path: Path, files: list[str]) -> None:
    """Where there is neither layout, the message says what was looked for."""
    for name in files:
        (tmp_path / name).write_text("\n")
    with pytest.raises(TaskError, match="python_programs") as caught:
        read_programs(tmp_path)
    assert caught.value.fix is not None
    with pytest.raises(TaskError, match="holds no program"):
        read_programs(rows_of(tmp_path))
