"""Gate `noop`: doing nothing never pays.

Owns: `GATE`. Invariant: the untouched task is judged `repeat` times; tests named in fail_to_pass really fail on it each
time, and those in pass_to_pass really pass (once where they are many: the gold's judgements repeat them).
Must not know: the gold.
"""

from __future__ import annotations

from practicum.curation.admission import untouched_problem
from practicum.curation.gates.contract import Case, Found, Gate, brief, not_starved, together
from practicum.records.verdict import Submission


async def _assess(case: Case) -> Found:
    # Not `once`: any reward counts, and where it is only looked for a pass, what is paid in part may not be seen.
    judges = [case.steady(number, once=False) for number in range(max(1, case.settings.repeat))]
    again = (case.judge(Submission(()), verifier=judge, task=case.required) for judge in judges[1:])
    verdicts = await together([case.judge(Submission(()), verifier=judges[0]), *again])
    evidence = {"repeat": len(verdicts), "verdicts": [brief(verdict) for verdict in verdicts]}
    for verdict in verdicts:
        if verdict.status != "valid":
            return Found(False, f"doing nothing has no valid verdict: {verdict.reason}", evidence)
        problem = untouched_problem(case.task if verdict is verdicts[0] else case.required, verdict)
        if problem is None and verdict.reward is not None and verdict.reward > 0:
            problem = f"doing nothing is rewarded with {verdict.reward:+g}"
        if problem is not None:
            not_starved(verdict)
            return Found(False, problem, evidence)
    return Found(True, f"fails {len(verdicts)} of {len(verdicts)} times, as it should", evidence)


GATE = Gate("noop", "2", "boxes", "rejected", _assess, needs=("environment",), parameters=("repeat",))
