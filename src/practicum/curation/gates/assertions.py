"""Gate `assertions`: no test passes whatever is handed in.

Owns: `GATE`. Invariant: a test that checks nothing but constants is named whatever list it is in; one that only shows
that nothing is raised is allowed beside others that check results, and doubtful alone. What is not Python is left to
the mutants.
Must not know: boxes.
"""

from __future__ import annotations

from practicum.curation.gates.contract import Case, Found, Gate
from practicum.curation.gates.testcode import assertions, calls_anything, test_codes


async def _assess(case: Case) -> Found:
    check = case.task.verification
    required = test_codes(case.task, check.fail_to_pass)
    kept = test_codes(case.task, check.pass_to_pass)
    said = {code.id: assertions(code) for code in (*required, *kept)}
    hollow = [code.id for code in (*required, *kept) if said[code.id] == "nothing" and not calls_anything(code)]
    constant = [name for name, what in said.items() if what == "constants"]
    quiet = [code.id for code in required if said[code.id] == "nothing"]
    read = {code.id for code in (*required, *kept)}
    evidence = {
        "read": len(read),
        "not_read": sorted({name.partition("[")[0] for name in (*check.fail_to_pass, *check.pass_to_pass)} - read)[:20],
        "check_something": sum(what == "something" for what in said.values()),
        "check_constants_only": constant,
        "without_any_check": hollow,
        "only_show_that_nothing_is_raised": [name for name, what in said.items() if what == "nothing"],
    }
    if check.runner == "plain":
        return Found(True, "every case states what must come of it", evidence)
    if constant or hollow:
        return Found(False, f"a test that passes whatever is handed in: {', '.join((constant + hollow)[:5])}", evidence)
    if required and len(quiet) == len(required) and len(read) == len(said) and not evidence["not_read"]:
        evidence["doubtful"] = True  # that nothing is raised may be all that is asked
        return Found(False, f"no test of fail_to_pass checks a result: {', '.join(quiet[:5])}", evidence)
    if not read:
        return Found(True, "no test is Python, so the mutants alone tell", evidence)
    return Found(True, f"{evidence['check_something']} of {len(read)} tests check results", evidence)


GATE = Gate("assertions", "3", "reading", "rejected", _assess, needs=("schema",))
