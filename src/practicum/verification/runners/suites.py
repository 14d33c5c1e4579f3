"""Runners `pytest` and `unittest`: frozen suites that import the submission.

Owns: `run_suite`, `read_reports`. Invariant: an id counts as passed when each of its phases was reported as
passed, once, each assertion held as its author wrote it and not otherwise (`sentinels`), and the process ended as a
passing run does; stdout is never read for it. Must not know: outcomes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import Finding, TestStatus
from practicum.sandboxes.contract import Sandbox
from practicum.verification.runners.report import (
    PYTEST_INI,
    PYTHON_WITH_SITE,
    TESTS,
    Report,
    early,
    ended,
    roots,
    run_driver,
    text_tail,
)
from practicum.verification.sentinels.guard import Guarded
from practicum.verification.sentinels.reading import Answers, Bits, read_answers

MAX_BYTES = 4 << 20  # of reports
_PHASES = {"pytest": ("setup", "call", "teardown"), "unittest": ("call", "teardown")}


def suite_s(task: Task, guarded: Guarded) -> float:
    """How long the suite may take: the task's limit for each time that its tests are run."""
    return float(task.verification.timeout_s) * guarded.stretch


async def run_suite(
    box: Sandbox, task: Task, files: Tree, guarded: Guarded, *, warm: bool = False, cpu_s: int | None = None
) -> Report:
    """Run what `guarded` says, once, with at most `cpu_s` seconds of a processor where they are given."""
    check, timeout_s = task.verification, suite_s(task, guarded)
    job = {
        "kind": check.runner,
        "tests": TESTS,
        "files": list(check.files),
        "run": list(guarded.run),
        "checks": guarded.module,
        "roots": roots(task, files),
        "ini": PYTEST_INI,
        "conftest": any(name.rpartition("/")[2] == "conftest.py" for name in check.tests),
        "timeout_s": timeout_s,
        "max_bytes": MAX_BYTES,
        "cpu_s": cpu_s,
    }
    told = await run_driver(box, "suites", job, timeout_s=timeout_s, warm=warm, python=PYTHON_WITH_SITE)
    line = told.lines[-1] if told.lines and isinstance(told.lines[-1], dict) else {}
    read = read_reports(str(line.get("reports", "")), list(guarded.run), _PHASES[check.runner])
    answers, findings = read_answers(guarded, read.statuses, read.asked), list(read.findings)
    statuses = answers.statuses
    details = {
        name: answers.details.get(name, "not reported as passed")
        for name, status in statuses.items()
        if status != "passed"
    }
    how, status = line.get("how", "killed"), line.get("status")
    expected = [*guarded.probes, *guarded.without]
    all_passed = bool(expected) and all(statuses.get(name) == "passed" for name in expected)
    code = os.waitstatus_to_exitcode(status) if type(status) is int else None
    agrees = how == "ended" and read.exit_status is not None and code == read.exit_status
    if all_passed and not (agrees and read.exit_status == 0):
        findings.append(Finding("exit_disagrees", "", f"every test reported a pass, but the run ended as {how} {code}"))
    complete = not findings
    findings += read.notes
    if how == "ended" and code is not None and code < 0:
        findings.append(Finding("crashed", "", f"signal {-code} ended the test process"))
    if how == "ended" and code == 0 and read.exit_status is None:
        findings.append(Finding("left_early", "", "the test process ended with status 0 before the tests had ended"))
    evidence = {
        "driver": ended(told.result),
        "how": how,
        "exit_code": code,
        "output": _output(answers, guarded, text_tail(str(line.get("output", "")).encode("latin-1", "replace"))),
        "test_s": line.get("s"),
        "sentinels": _coverage(guarded),
    }
    undecided = None if line else early("suites", told.result)
    return Report(statuses, details, tuple(findings), evidence, complete=complete, answers=answers, undecided=undecided)


def _output(answers: Answers, guarded: Guarded, tail: str) -> str:
    """What the run printed, with the tests' own names, and why assertions did not hold."""
    for name, probe in guarded.probes.items():
        own = name.partition("[")[0].rpartition("::" if "::" in name else ".")[2]
        for one in probe.ids:
            tail = tail.replace(one.partition("[")[0].rpartition("::" if "::" in one else ".")[2], own)
    reasons = "".join(f"{name} {why}\n" for name, why in answers.details.items())
    return f"{tail.rstrip()}\n{reasons}" if reasons else tail


def _coverage(guarded: Guarded) -> dict[str, Any]:
    """How many tests are asked with more than one answer, which only weakly so, and which not at all."""
    weak = sorted(name for name, probe in guarded.probes.items() if not probe.strong)
    of = len(guarded.probes) + len(guarded.without)
    runs = len(guarded.run)
    return {"covered": len(guarded.probes), "of": of, "weak": weak, "without": dict(guarded.without), "runs": runs}


@dataclass(frozen=True, slots=True)
class Read:
    """Reports as they were read, by id in the box. `findings` speak against the whole, `notes` do not."""

    statuses: dict[str, TestStatus]
    findings: list[Finding]
    exit_status: int | None
    asked: dict[str, dict[str, Bits]] = field(default_factory=dict)
    notes: list[Finding] = field(default_factory=list)


def read_reports(reports: str, expected: Sequence[str], phases: tuple[str, ...]) -> Read:
    """Statuses by id, what speaks against the reports, the exit status that the run announced, and what was asked.

    `reports` is the text of the test process, a JSON line `[id, phase, outcome]` each; any text is borne.
    """
    seen: Counter[tuple[str, str]] = Counter()
    known, failed = frozenset(expected), set[str]()
    asked: dict[str, dict[str, Bits]] = {}
    exit_status: int | None = None
    findings: list[Finding] = []
    notes: list[Finding] = []
    for number, text in enumerate(reports.split("\n")):
        if not text:
            continue
        try:
            name, phase, outcome = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            findings.append(Finding("report_unreadable", "", f"line {number}: {text[:200]}"))
            continue
        if phase == "changed" and name == "" and isinstance(outcome, str):
            notes.append(Finding("framework_changed", "", outcome[:300]))
        elif phase == "end" and name == "" and isinstance(outcome, str) and outcome.isdecimal():
            exit_status = int(outcome[:9])
        elif not isinstance(name, str) or not isinstance(phase, str) or name not in known:
            findings.append(Finding("report_unexpected", "", text[:200]))
        elif phase == "asked" and (bits := _bits(outcome)) is not None and not bits.keys() & asked.get(name, {}).keys():
            asked.setdefault(name, {}).update(bits)
        elif phase not in phases:
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
    return Read(statuses, findings, exit_status, asked, notes)


def _bits(rows: Any) -> dict[str, Bits] | None:
    """What one run of a test was asked; None for anything that is no such report."""
    result: dict[str, Bits] = {}
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, list) or [type(item) for item in row] != [str, str, int, int, str]:
            return None
        tag, held, passed, total, why = row
        if (
            tag in result
            or set(held) - {"0", "1", "x"}
            or not 0 <= held.count("1") <= passed <= total
            or total < len(held)
        ):
            return None
        result[tag] = Bits(held, passed, total, why)
    return result
