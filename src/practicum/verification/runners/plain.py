"""Runner `plain`: the candidate returns data, the judge compares here.

Owns: `run_plain`, `fresh_cases`. Invariant: expected values never enter a box that holds the candidate; the order
of cases and the fresh cases are drawn after the submission is fixed. Must not know: outcomes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from practicum.errors import TaskError
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import TestStatus
from practicum.sandboxes.contract import Sandbox, SandboxProvider
from practicum.verification.cases import Case, judge_answer, read_cases
from practicum.verification.runners.report import (
    PYTHON,
    TESTS,
    Report,
    early,
    ended,
    judge_spec,
    roots,
    run_driver,
    text_tail,
)

MAX_CHARS = 1 << 17  # of one answer
_CASES_A_TIMEOUT = 10  # one hanging case uses up this part of the whole time limit


def frozen_cases(task: Task) -> list[Case]:
    """The task's own cases, exactly the expected ids. Raises `TaskError`."""
    check = task.verification
    if check.plain is None or check.plain.cases not in check.tests:
        raise TaskError(f"task {task.id!r}: the cases of the plain runner are missing")
    cases = read_cases(check.tests[check.plain.cases].data, f"tests/{check.plain.cases}")
    wanted = {*check.fail_to_pass, *check.pass_to_pass}
    missing = sorted(wanted - {case.id for case in cases})
    if missing:
        raise TaskError(f"tests/{check.plain.cases}: there is no case {missing[0]!r}")
    return [case for case in cases if case.id in wanted]


async def fresh_cases(task: Task, provider: SandboxProvider, seed: int) -> list[Case]:
    """What the task's generator prints for `seed`, run in a box of its own that holds no candidate.

    Raises `TaskError` when it fails, and `SandboxError`.
    """
    check = task.verification
    if check.plain is None or check.plain.generator is None:
        return []
    script = f"{TESTS}/{check.plain.generator}"
    async with provider.create(judge_spec(task, {}, {TESTS: check.tests})) as box:
        result = await box.run([*PYTHON, script, str(seed)], timeout_s=check.timeout_s)
    if result.exit_code != 0 or result.truncated:
        raise TaskError(f"{script} failed with exit code {result.exit_code}: {text_tail(result.stderr, 500)}")
    cases = read_cases(result.stdout, script)
    if not cases:
        raise TaskError(f"{script} printed no case")
    return cases


async def run_plain(
    box: Sandbox,
    task: Task,
    files: Tree,
    frozen: Sequence[Case],
    fresh: Sequence[Case],
    rng: random.Random,
    *,
    warm: bool = False,
) -> Report:
    """Call the candidate's entry once for each case, each in a new process, in random order."""
    check = task.verification
    assert check.plain is not None
    order = [(case, True) for case in frozen] + [(case, False) for case in fresh]
    rng.shuffle(order)
    module, _, name = check.plain.entry.partition(":")
    case_s = max(1.0, check.timeout_s / _CASES_A_TIMEOUT)
    job = {
        "entry": (module, name),
        "roots": roots(task, files),
        "cases": [(case.args, case.kwargs) for case, _ in order],
        "case_s": case_s,
        "cpu_s": math.ceil(case_s),
        "deadline_s": check.timeout_s,
        "max_chars": MAX_CHARS,
    }
    told = await run_driver(box, "plain", job, timeout_s=check.timeout_s, warm=warm)
    statuses: dict[str, TestStatus] = {}
    details: dict[str, str] = {}
    fresh_passed = 0
    for line in told.lines:
        if not isinstance(line, dict) or line.get("case") not in range(len(order)):
            continue
        case, is_frozen = order[line["case"]]
        why = _why(case, line)
        if is_frozen:
            statuses[case.id] = "failed" if why else "passed"
        elif why is None:
            fresh_passed += 1
        if why is not None:
            details[case.id] = why
    return Report(
        statuses,
        details,
        evidence={"driver": ended(told.result), "order": [case.id for case, _ in order]},
        fresh=(fresh_passed, len(fresh)) if fresh else None,
        undecided=None if told.lines[-1:] == ["end"] else early("plain", told.result),
    )


def _why(case: Case, line: dict[str, object]) -> str | None:
    """Why the case did not pass, or None."""
    how, status, text = line.get("how"), line.get("status"), str(line.get("text", ""))
    if how != "ended":
        return "no answer in time" if how == "timeout" else "wrote more than an answer may hold"
    if status == 24 or (status == 9 and not text):  # SIGXCPU; SIGKILL: cpu seconds or memory used up
        return "its process was killed for using too much time or memory"
    if not text:
        return f"its process ended without an answer (wait status {status})"
    return judge_answer(case, text)
