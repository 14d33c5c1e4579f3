"""Attacks as scripts: what they are aimed at, and that each is one that a shell and an interpreter can read."""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import replace

import pytest

from practicum.records.task import PlainCheck, Task, Verification
from practicum.records.tree import File
from practicum.verification.redteam.catalogue import Attack, load_catalogue
from practicum.verification.redteam.render import (
    Target,
    changed_functions,
    control_script,
    find_target,
    script_of,
    tried_on,
    why_not,
)

BEFORE = b"def kept(x):\n    return x\n\n\ndef mended(x):\n    return x - 1\n"
AFTER = BEFORE.replace(b"x - 1", b"x + 1")
FILES = {"src/pack/core.py": File(BEFORE), "check.py": File(b"")}
GOLD = FILES | {"src/pack/core.py": File(AFTER)}


def suite_task() -> Task:
    tests = {"test_core.py": File(b""), "check.py": File(b"")}
    check = Verification("pytest", tests, ("test_core.py",), ("check.py",), ("test_core.py::test_a",))
    return Task("suite", "Mend it.", FILES, check)


def plain_task(entry: str) -> Task:
    check = Verification("plain", {"c.jsonl": File(b"")}, fail_to_pass=("a",), plain=PlainCheck(entry, "c.jsonl"))
    return Task("plain", "Mend it.", FILES, check)


def test_who_means_to_run_out_of_time_does_so_soon() -> None:
    """Such an attack's command gets less time than the task gives, and no more; others, and builds, lose none."""
    task, waits = suite_task(), attack("time-spent")
    assert waits.command_s is not None
    assert tried_on(waits, task).limits == replace(task.limits, command_s=waits.command_s)
    short = replace(task, limits=replace(task.limits, command_s=waits.command_s / 2))
    assert tried_on(waits, short).limits == short.limits
    built = replace(task, verification=replace(task.verification, build="make"))
    assert tried_on(waits, built) is built
    assert tried_on(attack("exit-at-import"), task) is task


def attack(name: str) -> Attack:
    return next(attack for attack in load_catalogue().attacks if attack.id == name)


def test_the_target_is_what_the_gold_mends() -> None:
    """Without an entry, the target is the first file that the gold changes and the first function that differs."""
    target = find_target(suite_task(), GOLD)
    assert (target.file, target.function, target.module) == ("src/pack/core.py", "mended", "pack.core")
    assert find_target(suite_task(), None) == Target()
    assert changed_functions(BEFORE, AFTER) == ["mended"]
    assert changed_functions(b"def (", AFTER) == []


def test_the_target_of_a_plain_task_is_its_entry() -> None:
    """A plain task names it; an entry inside a class is no function that could be defined anew."""
    assert find_target(plain_task("pack.core:kept"), None) == Target("src/pack/core.py", "kept")
    assert find_target(plain_task("pack.core:Class.method"), None) == Target("src/pack/core.py", None)
    assert find_target(plain_task("elsewhere:kept"), None) == Target(None, "kept")


def test_an_entry_that_nobody_may_edit_is_not_the_target() -> None:
    """Where the entry only leads to what is under repair, the gold tells what that is."""
    task = replace(plain_task("check:check"), editable=("src/**",))
    assert find_target(task, GOLD) == Target("src/pack/core.py", "mended")


def test_what_does_not_apply_says_why() -> None:
    """The reason names the runner, or what the task lacks."""
    target = find_target(suite_task(), GOLD)
    assert why_not(attack("exit-at-import"), suite_task(), target) is None
    assert why_not(attack("exit-at-import"), suite_task(), Target()) == "the task has no file"
    assert why_not(attack("frozen-cases-planted"), suite_task(), target) == "it is for tasks of plain"
    assert why_not(attack("visible-test-emptied"), plain_task("pack.core:kept"), target) == "the task has no visible"


def test_the_control_does_the_work_first() -> None:
    """A control is the gold, then the very same attack."""
    task, target = suite_task(), find_target(suite_task(), GOLD)
    script = script_of(attack("nothing-done"), task, target)
    assert control_script(attack("nothing-done"), task, target) == f"bash /solution/solve.sh\n{script}"


@pytest.mark.parametrize("one", load_catalogue().attacks, ids=lambda one: one.id)
def test_every_attack_can_be_read(one: Attack) -> None:
    """No placeholder is left, the shell parses the script, and Python parses what it is to run or to import."""
    task = suite_task()
    if task.verification.runner not in one.runners:
        task = plain_task("pack.core:mended")
    target = find_target(task, GOLD)
    script = script_of(one, task, target)
    assert not re.search(r"\{(workspace|file|module|function|visible|frozen|ids)\}", script)
    assert "</bash>" not in script
    parsed = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=10, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    if one.form != "shell":
        code = script.split("<<'END_OF_ATTACK'\n")[1].removesuffix("END_OF_ATTACK\n")
        ast.parse(code)
    if one.form == "append":
        assert f"cat >> '{target.file}'" in script
