"""`practicum tasks measure`, run as a person runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.curation.difficulty import difficulty_path, read_difficulty
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.fixture
def taskset(tmp_path: Path) -> Path:
    for task in generate_family(FamilySpec(seed=1, train=2, validation=0, test=0)):
        save_task(task, tmp_path / "set" / task.id)
    return tmp_path / "set"


def test_difficulty_is_measured_and_kept(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """Attempts of each policy are counted by task, kept beside the set, explained, and not made again."""
    script = tmp_path / "nothing.sh"
    script.write_text("true\n")
    asked = ["tasks", "measure", taskset, "--policy", "oracle", "--policy", f"script:{script}", "--samples", "4"]
    done = cli(*asked, "--explain", "--json", timeout_s=110)
    assert done.code == 0, done.err
    assert done.document["tasks"] == 2
    assert done.document["standing"] == {"park": 2}
    assert {each["policy"]: (each["passed"], each["judged"]) for each in done.document["policies"]} == {
        "oracle": (8, 8),
        f"script:{script}".removeprefix("script:"): (0, 8),
    }
    for result in done.document["results"]:
        assert result["stratum"] == "undetermined"
        assert result["features"]["changed_files"] == 1
        assert {each["pass_at"]["4"] for each in result["measured"]} == {0.0, 1.0}
    before = difficulty_path(taskset).read_bytes()
    again = cli(*asked, timeout_s=110)
    assert again.code == 0
    assert "no attempt passed: to park" in again.out
    assert difficulty_path(taskset).read_bytes() == before
    assert sum(len(rows) for rows in read_difficulty(difficulty_path(taskset)).values()) == 4


def test_a_policy_that_is_none_is_refused(cli: Cli, taskset: Path) -> None:
    """What cannot act is bad input, and nothing is written."""
    done = cli("tasks", "measure", taskset, "--policy", "nobody", "--json")
    assert done.code == 2
    assert "nobody" in done.document["error"]["message"]
    assert not difficulty_path(taskset).exists()


def test_a_directory_that_is_no_task_is_told(cli: Cli, taskset: Path) -> None:
    """It is named with the reason, the others are measured, and the exit code says that something was refused."""
    (taskset / "broken").mkdir()
    (taskset / "broken/task.toml").write_text("x=[")
    done = cli("tasks", "measure", taskset, "--policy", "oracle", "--samples", "1", "--json", timeout_s=110)
    assert done.code == 1, done.err
    assert done.document["tasks"] == 2
    assert list(done.document["refused"]) == ["broken"]
    told = cli("tasks", "measure", taskset, "--policy", "oracle", "--samples", "1", timeout_s=110).out
    assert "A reference policy is one that has to find the work out itself" in told
    assert "TOML" in done.document["refused"]["broken"]
