"""`practicum tasks split`: a set anew, with splits that give nothing away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli

HALVES = "train=0.5,test=0.5"


def test_by_repository(cli: Cli, tmp_path: Path) -> None:
    """No repository lies on both sides, the splits stand in the written tasks, and the set itself is as it was."""
    for at, task in enumerate(generate_family(FamilySpec(train=24, validation=0, test=0))):
        # A template's renamed copies would tie repositories together, so each repository has its own templates.
        where = task.provenance | {"repository": f"r/{task.provenance['template']}"}
        save_task(replace(task, id=f"t{at:02}", provenance=where), tmp_path / "set" / f"{at % 3}" / f"t{at:02}")
    before = {task.id: task.content for task in load_taskset(tmp_path / "set")}
    done = cli("tasks", "split", "set", "--by", "repository", "--fractions", HALVES, "--out", "new", "--json")
    assert done.code == 0, done.err
    assert done.document["repositories_on_several_sides"] == []
    written = load_taskset(tmp_path / "new")
    assert {task.id: task.split for task in written} == done.document["assignment"]
    sides: dict[str, set[str]] = {}
    for task in written:
        sides.setdefault(task.provenance["repository"], set()).add(task.split)
    assert {len(found) for found in sides.values()} == {1}
    assert {task.split for task in written} == {"train", "test"}
    assert (tmp_path / "new" / "0" / "t00" / "task.toml").exists()
    assert before == {task.id: task.content for task in load_taskset(tmp_path / "set")}


def test_by_time_refuses_tasks_without_a_date(cli: Cli, tmp_path: Path) -> None:
    """Dates decide, given cuts hold, and a task without a date is refused by name while the others are split."""
    dates = ("2019-05-01", "2024-05-01T10:00:00+02:00", "")
    tasks = generate_family(FamilySpec(train=60, validation=0, test=0))
    unlike = list({str(task.provenance["template"]): task for task in tasks}.values())
    for task, date in zip(unlike, dates, strict=False):
        where = task.provenance | ({"created_at": date} if date else {})
        save_task(replace(task, provenance=where), tmp_path / "set" / task.id)
    arguments = ("--by", "time", "--fractions", HALVES, "--cut", "2021-01-01", "--dry-run", "--json")
    done = cli("tasks", "split", "set", *arguments)
    assert done.code == 1
    assert done.document["assignment"] == {unlike[0].id: "train", unlike[1].id: "test"}
    assert done.document["refused"] == {unlike[2].id: "its provenance states no date"}
    told = cli("tasks", "split", "set", *arguments[:-1])
    assert "2 tasks in 2 units that stay together, the largest of 1; 1 refused" in told.out


def test_a_later_state_stays_with_what_it_gives_away(cli: Cli, tmp_path: Path) -> None:
    """A task whose files hold the gold of another lies in its split, and what has to be done next is said."""
    tasks = generate_family(FamilySpec(train=60, validation=0, test=0))
    one, *others = list({str(task.provenance["template"]): task for task in tasks}.values())[:6]
    gold = {f"old/{name}": file for name, file in one.solution.items() if name.endswith(".py")}
    others[0] = replace(others[0], files={**others[0].files, **gold})
    for task in (one, *others):
        save_task(task, tmp_path / "set" / task.id)
    for seed in range(2):
        done = cli("tasks", "split", "set", "--by", "cluster", "--seed", str(seed), "--out", f"new{seed}", "--json")
        assert done.code == 0, done.err
        assert done.document["units"] == 5
        assert done.document["assignment"][one.id] == done.document["assignment"][others[0].id]
        assert done.document["next"] == f"practicum tasks check new{seed}"
    assert "next: practicum tasks check last" in cli("tasks", "split", "set", "--by", "cluster", "--out", "last").out


def test_usage(cli: Cli, tmp_path: Path) -> None:
    """Where to write has to be said, a date has to be one, and parts have to sum to 1."""
    (task,) = generate_family(FamilySpec(train=1, validation=0, test=0))
    save_task(task, tmp_path / "set" / task.id)
    for arguments, said in (
        (("--by", "random"), "--out DIR or --dry-run"),
        (("--by", "time", "--dry-run", "--cut", "soon"), "'soon' is not a date"),
        (("--by", "random", "--dry-run", "--fractions", "a=0.5"), "they sum to 0.5"),
    ):
        done = cli("tasks", "split", "set", *arguments)
        assert (done.code, said in done.err) == (2, True), done.err
    empty = cli("tasks", "split", "set", "--by", "random", "--dry-run")
    assert empty.code == 1
    assert empty.out.count("← empty: a single unit for 3 splits") == 2
    assert "train              1" in empty.out
    assert "seed" not in empty.out
