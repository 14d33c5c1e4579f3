"""`practicum tasks decontaminate`: what goes, why, and what is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from practicum.records.task import Task
from practicum.tasks.harbor import load_task, save_task
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli


def write(root: Path, *tasks: Task) -> None:
    for task in tasks:
        save_task(task, root / task.id)


def unlike(count: int) -> list[Task]:
    """Tasks of templates of their own."""
    tasks = generate_family(FamilySpec(train=60, validation=0, test=0))
    return list({str(task.provenance["template"]): task for task in tasks}.values())[:count]


def test_what_is_removed_and_what_is_left(cli: Cli, tmp_path: Path) -> None:
    """A leaked task and a copy are named with their match, and the rest is written byte for byte with its licence."""
    one, two, three = unlike(3)
    write(tmp_path / "set", one, two, three, replace(two, id="zz-copy"))
    (tmp_path / "set" / "LICENSE-made").write_text("MIT")
    write(tmp_path / "guarded", replace(three, id="eval-1"))
    before = {path: path.read_bytes() for path in (tmp_path / "set").rglob("*") if path.is_file()}
    done = cli("tasks", "decontaminate", "set", "--against", "guarded", "--out", "clean", "--json")
    assert done.code == 1, done.err
    removed = {row["task"]: row for row in done.document["removed"]}
    assert {task: row["because"] for task, row in removed.items()} == {three.id: "contaminated", "zz-copy": "duplicate"}
    assert removed[three.id]["matches"][0]["with"] == "eval-1"
    assert removed[three.id]["matches"][0]["span"]
    assert [task.content for task in load_taskset(tmp_path / "clean")] == [
        t.content for t in sorted((one, two), key=lambda t: t.id)
    ]
    assert (tmp_path / "clean" / "LICENSE-made").read_text() == "MIT"
    assert before == {path: path.read_bytes() for path in (tmp_path / "set").rglob("*") if path.is_file()}
    again = cli("tasks", "decontaminate", "clean", "--against", "guarded")
    assert again.code == 0, again.out
    assert "2 tasks: 0 contaminated, 0 copies inside the set, 2 left" in again.out


def test_related_tasks_of_two_splits_move_into_one(cli: Cli, tmp_path: Path) -> None:
    """With copies kept, a cluster that stands in two splits is written into the more protected one, and told."""
    one, two = unlike(2)
    write(tmp_path / "set", one, two, replace(one, id="other", split="test"))
    done = cli("tasks", "decontaminate", "set", "--keep-duplicates", "--out", "clean")
    assert done.code == 1, done.err
    assert f"{one.id}: train → test" in done.out
    assert load_task(tmp_path / "clean" / one.id).split == "test"
    assert load_task(tmp_path / "clean" / two.id).split == "train"


def test_a_gold_shown_in_another_split_is_told(cli: Cli, tmp_path: Path) -> None:
    """Within a set it is a fault only across splits: there the task that shows it moves, and it is said whose gold it
    shows; a protected set's gold removes it."""
    one, two, three = unlike(3)
    gold = {f"old/{name}": file for name, file in one.solution.items() if name.endswith(".py")}
    shows = replace(two, files={**two.files, **gold})
    write(tmp_path / "set", one, shows, three)
    assert cli("tasks", "decontaminate", "set").code == 0
    write(tmp_path / "across", replace(one, split="test"), shows, three)
    done = cli("tasks", "decontaminate", "across", "--out", "clean")
    assert f"{two.id}: train → test (its files show the gold of {one.id})" in done.out
    assert "next: practicum tasks check clean" in done.out
    assert load_task(tmp_path / "clean" / two.id).split == "test"
    write(tmp_path / "rest", shows, three)
    write(tmp_path / "guarded", replace(one, id="eval-1"))
    against = cli("tasks", "decontaminate", "rest", "--against", "guarded")
    assert against.code == 1
    assert f"✗ {two.id}: reveals gold 1.00, eval-1" in against.out


def test_bad_input(cli: Cli, tmp_path: Path) -> None:
    """A task that cannot be read is told and the rest goes on; a place that is taken or missing is refused."""
    one, two = unlike(2)
    write(tmp_path / "set", one, two)
    (tmp_path / "set" / one.id / "instruction.md").unlink()
    done = cli("tasks", "decontaminate", "set", "--json")
    assert done.code == 1
    assert "instruction.md is missing" in done.document["refused"][f"set/{one.id}"]
    write(tmp_path / "other", two)
    taken = cli("tasks", "decontaminate", "set", "--out", "other")
    assert (taken.code, "is there already" in taken.err) == (2, True)
    inside = cli("tasks", "decontaminate", "set", "--out", "set/clean")
    assert (inside.code, "would hold its tasks twice" in inside.err) == (2, True)
    assert not (tmp_path / "set" / "clean").exists()
    missing = cli("tasks", "decontaminate", "set", "--against", "nowhere")
    assert (missing.code, "nowhere: there is no such folder" in missing.err) == (2, True)
