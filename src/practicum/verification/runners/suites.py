"""Runners `pytest` and `unittest`: frozen suites that import the submission.

Owns: `run_suite`, `read_reports`. Invariant: an id counts as passed when each of its phases was reported as
passed, once, and the process ended as a passing run does; stdout is never read for it.
What it does not stop is written in `inside/suites.py`. Must not know: outcomes.
"""

from __future__ import annotations

import json
import os
from collections import Counter

from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import Finding, TestStatus
from practicum.sandboxes.contract import Sandbox
from practicum.verification.runners.drivers import JUDGE
from practicum.verification.runners.report import (
    PYTHON_WITH_SITE,
    TESTS,
    Report,
    ended,
    roots,
    run_driver,
    text_tail,
)

MAX_BYTES = 1 << 20  # of reports
_PHASES = {"pytest": ("setup", "call", "teardown"), "unittest": ("call", "teardown")}


async def run_suite(box: Sandbox, task: Task, files: Tree) -> Report:
    """Run the frozen suite once, the expected ids of it."""
    check = task.verification
    expected = [*check.fail_to_pass, *check.pass_to_pass]
    job = {
        "kind": check.runner,
        "tests": TESTS,
        "files": list(check.files),
        "expected": expected,
        "roots": roots(task, files),
        "ini": f"{JUDGE}/pytest.ini",
        "conftest": any(name.rpartition("/")[2] == "conftest.py" for name in check.tests),
        "timeout_s": float(check.timeout_s),
        "max_bytes": MAX_BYTES,
    }
    told = await run_driver(box, "suites", job, timeout_s=check.timeout_s, python=PYTHON_WITH_SITE)
    line = told.lines[-1] if told.lines and isinstance(told.lines[-1], dict) else {}
    statuses, findings, exit_status = read_reports(str(line.get("reports", "")), expected, _PHASES[check.runner])
    details = {name: "not reported as passed" for name, status in statuses.items() if status != "passed"}
    how, status = line.get("how", "killed"), line.get("status")
    all_passed = bool(expected) and all(statuses.get(name) == "passed" for name in expected)
    code = os.waitstatus_to_exitcode(status) if type(status) is int else None
    agrees = how == "ended" and exit_status is not None and code == exit_status
    if all_passed and not (agrees and exit_status == 0):
        findings.append(Finding("exit_disagrees", "", f"every test reported a pass, but the run ended as {how} {code}"))
    complete = not findings
    evidence = {
        "driver": ended(told.result),
        "how": how,
        "exit_code": code,
        "output": text_tail(str(line.get("output", "")).encode("latin-1", "replace")),
        "test_s": line.get("s"),
    }
    return Report(statuses, details, tuple(findings), evidence, complete=complete)


def read_reports(
    reports: str, expected: list[str], phases: tuple[str, ...]
) -> tuple[dict[str, TestStatus], list[Finding], int | None]:
    """Statuses by id, what speaks against the reports, and the exit status that the run announced.

    `reports` is the text of the test process, a JSON line `[id, phase, outcome]` each; any text is borne.
    """
    seen: Counter[tuple[str, str]] = Counter()
    failed: set[str] = set()
    exit_status: int | None = None
    findings: list[Finding] = []
    for number, text in enumerate(reports.split("\n")):
        if not text:
            continue
        try:
            name, phase, outcome = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            findings.append(Finding("report_unreadable", "", f"line {number}: {text[:200]}"))
            continue
        if phase == "end" and name == "" and isinstance(outcome, str) and outcome.isdecimal():
            exit_status = int(outcome[:9])
        elif not isinstance(name, str) or not isinstance(phase, str) or name not in expected or phase not in phases:
            findings.append(Finding("report_unexpected", "", text[:200]))
        else:
            seen[name, phase] += 1
            if outcome != "passed":
                failed.add(name)
    statuses: dict[str, TestStatus] = {}
    for name in expected:
        counts = [seen[name, phase] for phase in phases]
        if any(count > 1 for count in counts):
            findings.append(Finding("report_repeated", "", name))
        if any(counts):
            statuses[name] = "passed" if set(counts) == {1} and name not in failed else "failed"
    return statuses, findings, exit_status
