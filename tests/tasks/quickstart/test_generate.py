"""The built-in family: reproducible, split without overlap, and every task what it says it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from practicum.errors import ConfigError
from practicum.policies.protocol import apply_edit
from practicum.records.task import Task
from practicum.records.tree import File
from practicum.tasks.harbor import load_task, save_task
from practicum.tasks.quickstart import FamilySpec, generate, generate_family
from practicum.tasks.quickstart.templates import TEMPLATES

SPEC = FamilySpec(seed=3, train=80, validation=20, test=30, pytest_share=0.2)
TASKS = generate_family(SPEC)
each_task = pytest.mark.parametrize("task", TASKS[::7], ids=lambda task: task.id)


def combination(task: Task) -> str:
    found: str = task.provenance["combination"]
    return found


def fixed(task: Task) -> bytes:
    """The file after the edit that the task's provenance names."""
    edit: dict[str, Any] = task.provenance["edit"]
    arguments = {"line": str(edit["line"]), "old": edit["old"], "new": edit["new"]}
    made = apply_edit(task.files[edit["path"]].data, arguments)
    assert isinstance(made, bytes), made.text
    return made


def run(source: bytes, space: dict[str, Any]) -> dict[str, Any]:
    """Execute text that the generator wrote: trusted, never a policy's."""
    exec(compile(source, "<task>", "exec"), space)
    return space


def test_same_spec_same_tasks() -> None:
    """The same spec gives the same tasks, down to the provenance; another seed gives others."""
    assert generate_family(SPEC) == TASKS
    other = generate_family(FamilySpec(seed=4, train=5, validation=2, test=2))
    assert not {task.digest for task in other} & {task.digest for task in TASKS}


def test_same_spec_in_another_process() -> None:
    """Tasks do not depend on the order in which a process hashes strings."""
    code = (
        "from practicum.tasks.quickstart import FamilySpec, generate_family as g;"
        "print(*[t.digest for t in g(FamilySpec(train=6, validation=3, test=3))])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0].split())) == 12


def test_more_training_tasks_change_no_held_out_one() -> None:
    """Held-out tasks stay the same when a run asks for more tasks to train on."""
    more = generate_family(FamilySpec(seed=3, train=120, validation=20, test=30, pytest_share=0.2))
    held_out = [task for task in TASKS if task.split != "train"]
    assert [task for task in more if task.split != "train"] == held_out


def test_counts_and_ids() -> None:
    """As many tasks of each split as asked for, each under its own id."""
    splits = [task.split for task in TASKS]
    assert [splits.count(name) for name in ("train", "validation", "test")] == [80, 20, 30]
    assert len({task.id for task in TASKS}) == len(TASKS)
    assert len({task.digest for task in TASKS}) == len(TASKS)
    assert all(task.id.startswith(task.split) for task in TASKS)
    assert {task.verification.runner for task in TASKS} == {"plain", "pytest"}


def test_no_combination_is_in_two_splits() -> None:
    """A combination of template, bug and names belongs to one task alone."""
    assert len({combination(task) for task in TASKS}) == len(TASKS)


def test_renamings_never_show_a_held_out_task() -> None:
    """Under every renaming that is offered, a training task is of no combination that is held out."""
    held_out = {combination(task) for task in TASKS if task.split != "train"}
    offered = 0
    for task in TASKS:
        if task.split != "train":
            assert "renamings" not in task.provenance
            continue
        kind, _, words = combination(task).rpartition("/")
        for renaming in task.provenance["renamings"]:
            offered += 1
            assert set(words.split("-")) <= renaming.keys()
            renamed = "-".join(renaming[word] for word in words.split("-"))
            assert f"{kind}/{renamed}" not in held_out
            assert len(set(renaming.values())) == len(renaming)
    assert offered > 80


def test_all_templates_occur() -> None:
    """Templates and layouts take turns, so none is missing from a family of ordinary size."""
    assert len({task.provenance["template"] for task in TASKS}) == 14
    assert {task.provenance["layout"] for task in TASKS} == {"module", "package", "pair"}


def test_the_edit_is_the_repair() -> None:
    """In every task the edit of its provenance applies, changes one line, and gives the gold file."""
    for task in TASKS:
        path = task.provenance["edit"]["path"]
        before, after = task.files[path].data.splitlines(), fixed(task).splitlines()
        assert File(fixed(task)) == task.solution["gold.py"]
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
        assert f"cp /solution/gold.py {path}" in task.solution["solve.sh"].data.decode()


def test_cases_tell_right_from_wrong() -> None:
    """Every frozen case holds for the gold, and exactly those of `fail_to_pass` fail on the untouched file."""
    for task in TASKS:
        check = task.verification
        path, gold = task.provenance["edit"]["path"], fixed(task)
        right, wrong = run(gold, {}), run(task.files[path].data, {})
        assert len(check.fail_to_pass) >= 2, task.id
        if check.runner == "plain":
            assert check.plain is not None
            function = check.plain.entry.partition(":")[2]
            cases = [json.loads(line) for line in check.tests["cases.jsonl"].data.splitlines()]
            assert [case["id"] for case in cases] == [*check.fail_to_pass, *check.pass_to_pass]
            for case in cases:
                assert right[function](*case["args"]) == case["expected"]
                assert holds(wrong, function, case) == (case["id"] in check.pass_to_pass)
        else:
            body = b"\n".join(check.tests["test_frozen.py"].data.splitlines()[1:])
            for name in (*check.fail_to_pass, *check.pass_to_pass):
                test = name.partition("::")[2]
                run(body, right)[test]()
                assert passes(run(body, wrong)[test]) == (name in check.pass_to_pass)


def holds(space: dict[str, Any], function: str, case: dict[str, Any]) -> bool:
    try:
        got = space[function](*case["args"])
    except Exception:  # noqa: BLE001  a bug may raise anything
        return False
    return type(got) is type(case["expected"]) and got == case["expected"]


def passes(test: Any) -> bool:
    try:
        test()
    except Exception:  # noqa: BLE001  a bug may raise anything
        return False
    return True


@each_task
def test_the_visible_check(task: Task, tmp_path: Path) -> None:
    """What the agent may run fails on the untouched workspace with one line, and passes with the gold."""
    path = task.provenance["edit"]["path"]
    outputs: list[tuple[int, str, str]] = []
    for files in (task.files, {**task.files, path: task.solution["gold.py"]}):
        root = tmp_path / str(len(outputs))
        for name, file in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(file.data)
        done = subprocess.run(
            [sys.executable, "check.py"], cwd=root, capture_output=True, text=True, timeout=30, check=False
        )
        outputs.append((done.returncode, done.stdout, done.stderr))
    assert outputs[1] == (0, "ok\n", "")
    assert outputs[0][0] == 1
    assert outputs[0][1].startswith("FAIL ")
    assert len(outputs[0][1].splitlines()) == 1
    assert outputs[0][2] == ""


def test_frozen_cases_are_not_in_the_workspace() -> None:
    """The agent sees the visible check, and no frozen test."""
    for task in TASKS:
        assert task.verification.visible == ("check.py",)
        assert task.files["check.py"] == task.verification.tests["check.py"]
        assert not {"cases.jsonl", "test_frozen.py"} & task.files.keys()


def test_directories_keep_the_digest(tmp_path: Path) -> None:
    """A task that is saved as a directory and loaded again is the same work, from the same source."""
    for task in TASKS[::5]:
        save_task(task, tmp_path / task.id)
        again = load_task(tmp_path / task.id)
        assert (again.id, again.digest, again.split) == (task.id, task.digest, task.split)
        assert again.provenance == task.provenance
        assert again.solution == task.solution


def test_asking_for_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More tasks than there are combinations is an error that says for which split, not a run for ever."""
    few = tuple(template for template in TEMPLATES if template.name == "largest")
    monkeypatch.setattr(generate, "TEMPLATES", few)
    with pytest.raises(ConfigError, match="split 'train'"):
        generate_family(FamilySpec(test=3, validation=3, train=1000))
