"""Submissions that exist already, judged: by canaries, re-scoring, noise, gates and spot checks.

Owns: `judge_all`.
Invariant: every item gets a verdict, in order; where the host kept it from being decided, that is `unscorable`,
and so a fault of the host is never taken for a change of the judge before it was tried again.
Must not know: what the verdicts are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from practicum.errors import VerifierError
from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict
from practicum.verification.contract import Verifier

TRIES = 2
VERIFY_S = 600.0

Item = tuple[Task, Submission]


async def judge_all(
    verifier: Verifier, items: Iterable[Item], *, on_done: Callable[[Verdict], None] | None = None
) -> list[Verdict]:
    """Verdicts in the order of `items`; how many run at once is the verifier's to say."""

    async def one(item: Item) -> Verdict:
        verdict = await _patiently(verifier, *item)
        if on_done is not None:
            on_done(verdict)
        return verdict

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(item)) for item in items]
    return [task.result() for task in running]


async def _patiently(verifier: Verifier, task: Task, submission: Submission) -> Verdict:
    reason = "no reason given"
    for _ in range(TRIES):
        try:
            async with asyncio.timeout(VERIFY_S):
                verdict = await verifier.verify(task, submission)
        except TimeoutError:
            reason = f"no verdict within {VERIFY_S:g} s"
            continue
        except VerifierError as error:
            reason = error.message
            continue
        if verdict.status != "unscorable":
            return verdict
        reason = verdict.reason or reason
    return Verdict("unscorable", None, None, reason=reason, verifier_version=verifier.version)
