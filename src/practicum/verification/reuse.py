"""One judgement for equal work: attempts of a group often submit the very same change.

Owns: `ReusingVerifier`.
Invariant: a verdict is reused only for an equal task and an equal submission, findings included, only where it is
`valid`, and never for a task that draws fresh cases; what was reused says so in its evidence.
Must not know: how a verdict is reached.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from practicum.records.task import Task
from practicum.records.verdict import Finding, Submission, Verdict
from practicum.verification.contract import Verifier

_Key = tuple[str, str, tuple[Finding, ...]]


class ReusingVerifier:
    """A `Verifier` before another. It remembers until `forget`, so that reuse stays within one batch."""

    def __init__(self, inner: Verifier) -> None:
        self._inner = inner
        self._known: dict[_Key, asyncio.Future[Verdict]] = {}
        self.reused = 0

    @property
    def version(self) -> str:
        return self._inner.version

    def forget(self) -> None:
        """Judge everything anew from here on."""
        self._known.clear()

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        """The verdict, from an equal submission in this batch where there is a valid one."""
        plain = task.verification.plain
        if plain is not None and plain.generator is not None:
            return await self._inner.verify(task, submission)
        key = (task.digest, submission.digest, submission.findings)
        while (first := self._known.get(key)) is not None:
            # Shielded: whoever waits may be cancelled, and the one that judges must not be.
            await asyncio.wait([first])
            if not first.cancelled() and first.exception() is None and first.result().status == "valid":
                self.reused += 1
                verdict = first.result()
                return replace(verdict, evidence={**verdict.evidence, "reused": True})
            if self._known.get(key) is first:
                del self._known[key]
        mine: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._known[key] = mine
        try:
            verdict = await self._inner.verify(task, submission)
        except BaseException:
            mine.cancel()
            raise
        mine.set_result(verdict)
        return verdict
