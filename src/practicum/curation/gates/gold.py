"""Gate `gold`: the known solution passes, every time, each time in a box of its own.

Owns: `GATE`, `structure`. Invariant: the oracle works once; what it left is judged `repeat` times, each in a box made
for that one judgement, so that nothing an earlier one did can help or harm. The last time it has only the part of each
limit that the gate `limits` asks about: what passes so passes with all of it. Must not know: what makes it fail.
"""

from __future__ import annotations

import difflib

from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed, brief, together
from practicum.curation.gates.limits import cut_down
from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict


async def _assess(case: Case) -> Found:
    try:
        gold = await case.gold()
    except NotAssessed as why:
        if why.fault:
            raise
        return Found(False, why.reason, {"repeat": 0})
    verdicts = await together(_judged(case, gold, number) for number in range(case.settings.repeat))
    passed = sum(verdict.passed for verdict in verdicts)
    failed = next((verdict for verdict in verdicts if not verdict.passed), None)
    evidence = {
        "repeat": len(verdicts),
        "passed": passed,
        "changes": [f"{change.kind} {change.path}" for change in gold.changes[:20]],
        "submission": gold.digest,
        "structure": structure(case.task, gold),
        "verdicts": [brief(verdict) for verdict in verdicts],
    }
    if failed is None:
        case.gold_verdict = max(verdicts[: len(verdicts) - (case.cut_verdict is not None)], key=_cpu_s)
        evidence["cpu_s"] = _cpu_s(case.gold_verdict)
        return Found(True, f"passes {passed} of {len(verdicts)} times, each in a fresh box", evidence)
    wrong = ", ".join([name for name, status in failed.tests.items() if status != "passed"][:5])
    what = f"{failed.outcome or failed.reason}" + (f" ({wrong})" if wrong else "")
    if passed:
        return Found(False, f"the gold passes only {passed} of {len(verdicts)} times: {what}", evidence)
    return Found(False, f"the gold does not pass: {what}", evidence)


async def _judged(case: Case, gold: Submission, number: int) -> Verdict:
    judge = case.steady(number, case.bench.fresh)
    verdict: Verdict | None
    if 0 < number == case.settings.repeat - 1:
        try:
            verdict = await case.judge(gold, verifier=judge, task=cut_down(case.task, case.settings.margin))
        except NotAssessed:
            verdict = None  # perhaps no box can be made with so little: for the gate `limits` to say
        if verdict is not None and verdict.passed:
            case.cut_verdict = verdict
            return verdict
    return await case.judge(gold, verifier=judge, right=True)


def _cpu_s(verdict: Verdict) -> float:
    driver = verdict.evidence.get("driver")
    return float(driver["cpu_s"]) if isinstance(driver, dict) else 0.0


def structure(task: Task, gold: Submission) -> dict[str, int]:
    """What explains difficulty without setting it: how much there is to read, to change and to satisfy."""
    hunks = lines = 0
    for change in gold.changes:
        old = task.files[change.path].data.splitlines() if change.path in task.files else []
        new = change.file.data.splitlines() if change.file is not None else []
        for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                hunks, lines = hunks + 1, lines + (b - a) + (d - c)
    check = task.verification
    return {
        "changed_files": len(gold.changes),
        "hunks": hunks,
        "changed_lines": lines,
        "fail_to_pass": len(check.fail_to_pass),
        "pass_to_pass": len(check.pass_to_pass),
        "workspace_files": len(task.files),
        "workspace_bytes": sum(len(file.data) for file in task.files.values()),
        "instruction_words": len(task.instruction.split()),
    }


GATE = Gate("gold", "3", "boxes", "rejected", _assess, needs=("environment",), parameters=("repeat", "margin"))
