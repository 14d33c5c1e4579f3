"""The simulated verifier: verdicts of what simulated boxes gave away, after some time, as many at once as it has slots.

Owns: `SimulatedVerifier`.
Invariant: a verdict says what the submission holds; a judge that fails says so, and never gives a number.
Must not know: how the submission came about, who schedules.
"""

from __future__ import annotations

import asyncio
import random

from practicum.errors import VerifierError
from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict, default_reward
from practicum.scheduling.permits import Permits
from practicum.simulation.boxes import ANSWER
from practicum.simulation.plans import draw
from practicum.simulation.scenario import Scenario

_WAIT_S = 24 * 3600.0


class SimulatedVerifier:
    """`given` holds the reward of each box's answer; `busy_s` the seconds that slots were in use."""

    version = "simulated"

    def __init__(self, scenario: Scenario) -> None:
        self.permits = Permits(scenario.verifier.slots, name="a judge")
        self.given: dict[str, float] = {}
        self.faults = 0
        self.busy_s = 0.0
        self._seconds = scenario.verifier.seconds
        self._fault_rate = scenario.faults.verifier_fault
        self._source = random.Random(f"verifier:{scenario.seed}")

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        """Passed or failed, as the answer says; failed without one. Raises `VerifierError` as the scenario says."""
        async with self.permits.take(timeout_s=_WAIT_S):
            seconds = draw(self._seconds, self._source)
            await asyncio.sleep(seconds)
            self.busy_s += seconds
        if self._fault_rate and self._source.random() < self._fault_rate:
            self.faults += 1
            raise VerifierError("the judge's box died")
        answers = [change.file.data.decode() for change in submission.changes if change.path == ANSWER and change.file]
        word, box = answers[0].split() if answers else ("fail", "")
        passed = word == "pass"
        reward = default_reward("passed" if passed else "failed", newly_passed=int(passed), total=1)
        self.given[box] = reward
        return Verdict("valid", "passed" if passed else "failed", reward, verifier_version=self.version)
