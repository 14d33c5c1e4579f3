"""How far a verdict is to be trusted.

Owns: `reliability`. Invariant: within (0, 1]; it never changes a reward. It orders what a person looks at first, and
falls with how much the candidate shared with its judge and with what looked odd. Pure.
Must not know: boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from practicum.records.task import Task
from practicum.records.verdict import Finding

# Of the runner: what a candidate that lies could have reached.
_OWN_PROCESS_FRESH = 1.0  # data only, compared elsewhere, on inputs drawn after the submission
_OWN_PROCESS = 0.9  # the same, on inputs that do not change
_PROGRAM = 0.8  # a script of the task calls it as a program
_SHARED = 0.4  # one process, and nothing asked twice
_STRONG, _WEAK = 0.4, 0.2  # added to that for the share of tests with sentinels that nobody can tell, and for others
_OWN_SCRIPT = 0.5  # the task's own script, which the judge does not look into
_ODD = 0.8  # for each kind of finding
_FLAKY = 0.5
HARMLESS = frozenset(["build_config_changed", "odd_path", "outside_editable"])


def reliability(task: Task, findings: Sequence[Finding], evidence: Mapping[str, Any]) -> float:
    """The product of what the runner allows and what each kind of finding takes off."""
    value = _of_runner(task, evidence)
    for kind in {finding.kind for finding in findings}:
        if kind not in HARMLESS:
            value *= _FLAKY if kind == "flaky_contradiction" else _ODD
    return round(max(value, 0.01), 4)


def _of_runner(task: Task, evidence: Mapping[str, Any]) -> float:
    check = task.verification
    if check.runner == "plain":
        return _OWN_PROCESS_FRESH if check.plain is not None and check.plain.generator else _OWN_PROCESS
    if check.runner == "harbor":
        return _OWN_SCRIPT
    if check.runner == "command":
        return _OWN_PROCESS if all(name.endswith(".py") for name in check.files) else _PROGRAM
    sentinels = evidence.get("sentinels")
    if not isinstance(sentinels, Mapping) or not sentinels.get("of"):
        return _SHARED
    of = float(sentinels["of"])
    weak, covered = len(sentinels["weak"]) / of, float(sentinels["covered"]) / of
    return _SHARED + _STRONG * (covered - weak) + _WEAK * weak
