"""Which tests of a task bear sentinels: found out on work that is known to be right.

Owns: `vet_sentinels`. Invariant: a test is named only when right work passes it alone and not beside its variants, in
one of the two orders that variants run in. Must not know: where the right work comes from.
"""

from __future__ import annotations

from dataclasses import replace

from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.runners.drivers import Drivers
from practicum.verification.trial import Trials

_CONTRADICTIONS = ("sentinel", "flaky_contradiction")


async def vet_sentinels(
    provider: SandboxProvider,
    task: Task,
    right: Submission,
    verdict: Verdict,
    *,
    drivers: Drivers | None = None,
    judge: ExecutionVerifier | None = None,
) -> tuple[str, ...]:
    """Ids to add to the task's `unguarded`: those that a second run in one process, or a contradiction, spoils.

    `verdict` is one on `right`; another is reached here with the variants in reversed order. Empty where nothing is
    spoilt, where the task has no sentinels, and where `right` does not pass without them either: then they are not to
    blame. It is judged in boxes of `provider`, or by `judge` where one is at hand.
    """
    if task.verification.runner not in ("pytest", "unittest") or "nonce" not in verdict.evidence:
        return ()
    judge = judge or ExecutionVerifier(provider, drivers=drivers)
    again = judge.repeating(str(verdict.evidence["nonce"]), Trials(0), turn=1)
    reversed_ = await again.verify(task, right)
    spoilt = dict[str, None]()
    for each in (verdict, reversed_):
        spoilt |= dict.fromkeys(name for name, status in each.tests.items() if status != "passed")
        spoilt |= dict.fromkeys(found.path for found in each.findings if found.kind in _CONTRADICTIONS)
    if not spoilt:
        return ()
    alone = replace(task, verification=replace(task.verification, unguarded=("*",)))
    unspoilt = await judge.verify(alone, right)
    return tuple(name for name in spoilt if unspoilt.tests.get(name) == "passed")
