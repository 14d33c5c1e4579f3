"""The verifier contract: a task and a submission in, a verdict out.

Owns: `Verifier`.
Invariant: a verifier never returns a number for something that it could not judge.
Must not know: rollouts, policies.
"""

from __future__ import annotations

from typing import Protocol

from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict


class Verifier(Protocol):
    """Judges submissions. Faults come back as `invalid` or `unscorable` verdicts, not as exceptions."""

    @property
    def version(self) -> str: ...

    async def verify(self, task: Task, submission: Submission) -> Verdict: ...
