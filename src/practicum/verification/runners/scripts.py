"""Runner `command`: frozen scripts, one id each, named like its file.

Owns: `run_scripts`, `scripts_mount`. Invariant: a Python script passes by running to its end in a process that does
not load the submission (`inside/scripts.py`); another script passes by exit status 0, so it has to call the
submission as a program. Must not know: outcomes.
"""

from __future__ import annotations

import math
from typing import Any

from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import TestStatus
from practicum.sandboxes.contract import Sandbox
from practicum.verification.runners.drivers import JUDGE
from practicum.verification.runners.report import TESTS, Report, early, ended, roots, run_driver, text_tail

MAX_CHARS = 1 << 20  # of one answer of the submission


def scripts_mount(task: Task) -> bool:
    """Whether the box needs the frozen files on disk: not where there is nothing but Python scripts to run."""
    check = task.verification
    needed = set(check.tests) - set(check.visible) - {name for name in check.files if name.endswith(".py")}
    return bool(needed)


async def run_scripts(box: Sandbox, task: Task, files: Tree, *, warm: bool = False) -> Report:
    """Run each frozen script once, in the order of `files`, within one time limit for all."""
    check = task.verification
    statuses: dict[str, TestStatus] = {}
    details: dict[str, str] = {}
    evidence: dict[str, Any] = {}
    left = float(check.timeout_s)
    for name in check.files:
        if left <= 0:
            break
        await box.quiet()  # what an earlier one left running could look into the next before that has closed itself
        why, evidence[name], used = await _run(box, task, files, name, left, warm)
        left -= used
        statuses[name] = "failed" if why else "passed"
        if why:
            details[name] = why
    lost = [name for name in evidence if "script" in evidence[name] and evidence[name]["script"] is None]
    return Report(
        statuses, details, evidence={"scripts": evidence}, undecided=f"{lost[0]}: {details[lost[0]]}" if lost else None
    )


async def _run(
    box: Sandbox, task: Task, files: Tree, name: str, left: float, warm: bool
) -> tuple[str, dict[str, Any], float]:
    """Why it did not pass (or ""), evidence, seconds used."""
    if not name.endswith(".py"):
        result = await box.run([f"{JUDGE}/sh", f"{TESTS}/{name}"], timeout_s=left)
        evidence = ended(result) | {"stdout": text_tail(result.stdout)}
        if result.timed_out:
            return "did not end in time", evidence, result.wall_s
        return (f"exit status {result.exit_code}" if result.exit_code else ""), evidence, result.wall_s
    job = {"name": name, "source": task.verification.tests[name].data, "timeout_s": left}
    arguments = [str(math.ceil(left)), str(MAX_CHARS), *roots(task, files)]
    told = await run_driver(box, "scripts", job, timeout_s=left, warm=warm, arguments=arguments)
    line = told.lines[-1] if told.lines and isinstance(told.lines[-1], dict) else None
    evidence = ended(told.result) | {"script": line}
    if line is None:
        return early("scripts", told.result), evidence, told.result.wall_s
    if line.get("ok") is True and line.get("why") == "":
        return "", evidence, told.result.wall_s
    return str(line.get("why")) or "its result contradicts itself", evidence, told.result.wall_s
