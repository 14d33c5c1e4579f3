"""`practicum verifier audit` as a person runs it."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.cli.template import template_task
from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart.generate import FamilySpec, generate_family

if TYPE_CHECKING:
    from cli.conftest import Cli

KEYS = [
    *("tasks", "attacks", "wrong_mutants", "equivalents"),
    *("false_positive_bound", "false_negative_bound"),
]


TRUSTING = "cd /app && python3 -c 'from stats import mean; assert mean([1, 3]) == 2; assert mean([5]) == 5'\n"


def plain_task() -> Task:
    (task,) = generate_family(FamilySpec(train=1, validation=0, test=0, pytest_share=0.0))
    return replace(task, id="sound")


def trusting_task() -> Task:
    tests = {"check.sh": File(TRUSTING.encode())}
    check = Verification("command", tests, ("check.sh",), fail_to_pass=("check.sh",), timeout_s=5.0)
    return replace(template_task("trusting"), verification=check)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A task whose judge holds, and one whose own script trusts too much."""
    for task in (plain_task(), trusting_task()):
        save_task(task, tmp_path / "set" / task.id)
    return tmp_path / "set"


def test_an_audit_that_finds_nothing(cli: Cli, tasks: Path) -> None:
    """Exit 0, and one document that holds the counts, their bounds and what was tried on each task."""
    only = ("--only", "wrong-incentive", "--only", "mutants", "--only", "equivalents", "--variants", "4")
    done = cli("verifier", "audit", tasks / "sound", *only, "--json")
    assert done.code == 0, done.err
    document = done.document
    assert [key for key in document if key in KEYS] == KEYS
    assert document["attacks"]["tried"] == 5
    assert document["attacks"]["rewarded"] == document["attacks"]["flagged"] == 0
    assert document["wrong_mutants"]["tried"] == 5
    assert document["equivalents"] == {"tried": 5, "rejected": 0}
    assert 0 < document["false_negative_bound"] < 1
    (task,) = document["tasks"]
    assert (task["task"], task["runner"], task["problem"]) == ("sound", "plain", None)
    assert not list(tasks.parent.glob("practicum-audit*"))


def test_an_audit_that_finds_a_hole(cli: Cli, tasks: Path) -> None:
    """Exit 1; a person reads what was rewarded, and the command that is shown does it again."""
    only = ("--only", "exit-at-import", "--only", "nothing-done")
    done = cli("verifier", "audit", tasks, *only, "--save", "kept")
    assert done.code == 1, done.err
    assert "1 of 4 rewarded" in done.out
    assert "trusting: exit-at-import  passed, reward +1.00" in done.out
    shown = re.search(r"^ +practicum (rollout .*)$", done.out, re.MULTILINE)
    assert shown is not None
    again = cli(*shlex.split(shown[1]), "--json")
    assert again.code == 0
    assert again.document["outcome"] == "passed"


def test_an_attack_of_ones_own(cli: Cli, tasks: Path) -> None:
    """A file in a folder is tried like the shipped ones, on as many tasks as were asked for."""
    own = tasks.parent / "own"
    own.mkdir()
    (own / "my-own.toml").write_text(
        'kind = "survivors"\nwhat = "Leaves a link."\nexpect = ["irregular_file"]\nshell = "ln -s / everything"\n'
    )
    done = cli("verifier", "audit", tasks, "--tasks", "1", "--attacks", own, "--only", "my-own", "--json")
    assert done.code == 0, done.err
    assert len(done.document["tasks"]) == 1
    assert (done.document["attacks"]["tried"], done.document["attacks"]["flagged"]) == (1, 1)
    assert done.document["controls"] == {"tried": 1, "rejected": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "cheating"], "no attack and no kind is called 'cheating'"),
        (["--attacks", "nowhere"], "no such folder of attacks"),
        (["--variants", "0"], "--variants"),
    ],
)
def test_bad_input(cli: Cli, tasks: Path, arguments: list[str], message: str) -> None:
    """What cannot be tried is refused before any box is made."""
    done = cli("verifier", "audit", tasks, *arguments, "--json")
    assert done.code == 2
    assert message in done.document["error"]["message"]
