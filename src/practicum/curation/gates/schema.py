"""Gate `schema`: is the task one that could be judged at all?

Owns: `GATE`. Invariant: pure; a placeholder, an impossible limit or a missing part is named.
Must not know: boxes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from practicum.curation.gates.contract import Case, Found, Gate
from practicum.errors import TaskError
from practicum.records.task import Task
from practicum.records.tree import matches
from practicum.verification.cases import read_cases
from practicum.verification.verdicts import task_problem

_PLACEHOLDER = re.compile(r"\b(?:TODO|FIXME|TBD|lorem ipsum)\b|<(?:your|insert|placeholder)[^>]*>|\{\{.*?\}\}", re.I)
_LEAST_WORDS = 3


async def _assess(case: Case) -> Found:
    problems = list(schema_problems(case.task))
    evidence = {
        "runner": case.task.verification.runner,
        "fail_to_pass": len(case.task.verification.fail_to_pass),
        "pass_to_pass": len(case.task.verification.pass_to_pass),
        "files": len(case.task.files),
        "instruction_words": len(case.task.instruction.split()),
        "problems": problems,
    }
    return Found(not problems, problems[0] if problems else "well formed", evidence)


def schema_problems(task: Task) -> Iterator[str]:
    """What is wrong with the task as data, worst first."""
    check = task.verification
    if (problem := task_problem(task)) is not None:
        yield problem
    for name in ("cpus", "memory_bytes", "pids", "disk_bytes", "output_bytes", "command_s", "episode_s"):
        value = getattr(task.limits, name)
        if not (math.isfinite(value) and value > 0):
            yield f"the limit {name} is {value}, not a positive number"
    if not (math.isfinite(check.timeout_s) and check.timeout_s > 0):
        yield f"the tests' limit timeout_s is {check.timeout_s}, not a positive number"
    if len(task.instruction.split()) < _LEAST_WORDS:
        yield "the instruction says next to nothing"
    words = "" if task.files and _about_placeholders(task) else task.instruction
    if (found := _PLACEHOLDER.search(words)) is not None:
        yield f"the instruction holds the placeholder {found.group(0)!r}"
    if not task.editable:
        yield "nothing is editable, so no work could leave the box"
    named = sum(len(file.data) for file in task.files.values())
    if named > task.limits.disk_bytes:
        yield f"the files ({named} bytes) are larger than the disk ({task.limits.disk_bytes} bytes)"
    frozen = [
        name
        for name in check.visible
        if matches(name, task.editable) and len(task.editable) == 1 and "*" not in task.editable[0]
    ]
    if frozen:
        yield f"all that may be edited is the visible test {frozen[0]}"
    if check.runner == "plain" and check.plain is not None and check.plain.cases in check.tests:
        try:
            ids = {each.id for each in read_cases(check.tests[check.plain.cases].data, f"tests/{check.plain.cases}")}
        except TaskError as error:
            yield error.message
        else:
            unknown = sorted({*check.fail_to_pass, *check.pass_to_pass} - ids)
            if unknown:
                yield f"no case has the id {unknown[0]!r}"


def _about_placeholders(task: Task) -> bool:
    """Whether the placeholder is something that the work is about, since it stands in the workspace as well."""
    text = b"\n".join(file.data for file in task.files.values()).decode("utf-8", "replace")
    found = {match.group(0) for match in _PLACEHOLDER.finditer(task.instruction)}
    return all(word in text for word in found)


GATE = Gate("schema", "1", "reading", "rejected", _assess)
