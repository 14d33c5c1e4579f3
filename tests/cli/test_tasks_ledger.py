"""`practicum tasks ledger` and `practicum tasks decide` as a person meets them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.cli.template import template_task
from practicum.curation.ledger import Decided, Ledger, ledger_path
from practicum.tasks.harbor import save_task

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.fixture
def taskset(tmp_path: Path) -> Path:
    """Two tasks, one of which a gate has rejected for a reason that tries to drive the terminal."""
    for name in ("a", "b"):
        save_task(template_task(name), tmp_path / "set" / name)
    task = template_task("a")
    Ledger(ledger_path(tmp_path / "set")).record(
        [Decided("gate:leaks", "a", task.content, "rejected", "the gold is\x1b[2J\nin the box", {"seen": "/app"})]
    )
    return tmp_path / "set"


def test_stages_and_history(cli: Cli, taskset: Path) -> None:
    """The stage of each task is shown, and of one task the whole history; hidden characters are shown, not sent."""
    done = cli("tasks", "ledger", taskset)
    assert done.code == 0, done.err
    assert "1 candidate, 1 rejected" in done.out
    assert "\x1b" not in done.out
    assert "␛[2J in the box" in done.out
    document = cli("tasks", "ledger", taskset, "--task", "a", "--json").document
    assert document["tasks"][0]["stage"] == "rejected"
    assert [(e["stage"], e["actor"], e["current"]) for e in document["history"]] == [("rejected", "gate:leaks", True)]
    unknown = cli("tasks", "ledger", taskset, "--task", "zz")
    assert unknown.code == 2
    assert "zz" in unknown.err


def test_a_person_decides(cli: Cli, taskset: Path) -> None:
    """A person may bring a rejected task back, with a reason and not without."""
    assert cli("tasks", "decide", taskset, "a", "admitted", "--by", "Kim").code == 2
    done = cli("tasks", "decide", taskset, "a", "admitted", "--by", "Kim", "--reason", "the gate erred")
    assert done.code == 0, done.err
    entry = Ledger(ledger_path(taskset)).entries[-1]
    assert (entry.stage, entry.actor, entry.reason) == ("admitted", "reviewer:kim", "the gate erred")


def test_an_altered_ledger_is_a_fault(cli: Cli, taskset: Path) -> None:
    """A broken chain ends the command with the line that broke."""
    path = ledger_path(taskset)
    path.write_text(path.read_text().replace('"seq": 0', '"seq": 4'))
    done = cli("tasks", "ledger", taskset, "--json")
    assert done.code == 3
    assert "broken at line 1" in done.document["error"]["message"]


def test_admitted_tasks_are_named(cli: Cli, tmp_path: Path) -> None:
    """All ids can be read off, at least with --all; what no gate has seen is said to be of no use to a release."""
    decided = []
    for number in range(45):
        task = template_task(f"t{number:02d}")
        save_task(task, tmp_path / "set" / task.id)
        if number < 44:
            decided.append(
                Decided("reviewer:kim", task.id, task.content, "admitted", "looked at", {"decided": "by hand"})
            )
    Ledger(ledger_path(tmp_path / "set")).record(decided)
    short, full = (cli("tasks", "ledger", tmp_path / "set", *more).out for more in ((), ("--all",)))
    assert "t00, t01" in short
    assert "… and 4 more (--all names them)" in short
    assert "t43" in full
    done = cli("tasks", "decide", tmp_path / "set", "t44", "admitted", "--by", "Kim", "--reason", "fine")
    assert done.code == 0
    assert "a release takes only checked tasks" in done.out


def test_a_directory_that_is_no_task_is_told(cli: Cli, tmp_path: Path) -> None:
    """Ledger and review go on with the others and name it; the ledger's exit code says that something was refused."""
    assert cli("tasks", "new", "some/mine").code == 0
    (tmp_path / "some/broken").mkdir()
    (tmp_path / "some/broken/task.toml").write_text("x=[")
    done = cli("tasks", "ledger", "some", "--json")
    assert done.code == 1
    assert [each["task"] for each in done.document["tasks"]] == ["mine"]
    assert list(done.document["refused"]) == ["broken"]
    assert "✗ broken:" in cli("tasks", "ledger", "some").out
    queue = cli("tasks", "review", "some", "--by", "kim", "--json")
    assert [each["task"] for each in queue.document["waiting"]] == ["mine"]
    assert "✗ broken:" in queue.err
