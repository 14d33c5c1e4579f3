"""The acting part of one attempt: boxes come and go, the conversation goes on.

Owns: `Life`.
Invariant: what was sampled is carried out, and not sampled again because a box died; a fresh box holds the workspace
of the last turn, or the episode begins anew and that is counted; the conversation is open while the policy may still
be asked.
Must not know: verdicts, what a policy or a provider is made of.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import ExitStack
from dataclasses import dataclass, field

from practicum.errors import (
    BoxOutOfMemory,
    BoxPathError,
    CreateFailed,
    SandboxDied,
    SandboxError,
    StartRefused,
    UnsupportedControl,
)
from practicum.policies.contract import Message, Policy, Renderer
from practicum.records.trajectory import StopReason, Turn
from practicum.records.verdict import Finding, Submission
from practicum.rollouts.harness import Harness
from practicum.rollouts.journalling import Log
from practicum.rollouts.leasing import carry_out, leased
from practicum.rollouts.session import Session
from practicum.rollouts.spec import AttemptSpec
from practicum.rollouts.start import Start, check_start
from practicum.sandboxes.contract import BoxSpec, SandboxProvider
from practicum.telemetry import Meter

SOLUTION_MOUNT = "/solution"


@dataclass(slots=True)
class Life:
    """One attempt while it acts; filled in place, so that a fault keeps the turns before it."""

    spec: AttemptSpec
    provider: SandboxProvider
    policy: Policy
    renderer: Renderer
    harness: Harness
    log: Log
    park: asyncio.Event | None = None
    stop_reason: StopReason = "fault"
    submission: Submission | None = None
    refused: str = ""
    meter: Meter = field(default_factory=Meter)
    _session: Session | None = None
    _lives: int = 0
    _stood: int = 0  # how many turns there were when the box was made

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self._session.turns if self._session else ()

    def here(self) -> Start:
        """Where the attempt stands."""
        pending = self._session.pending if self._session else None
        return Start(
            self.spec.task.digest, self.turns, pending, lives=self._lives, cost=self.spent(), seed=self.spec.seed
        )

    def spent(self) -> dict[str, float]:
        """Seconds by stage and counts, beside what is on the turns; with those of before it was resumed."""
        found = {f"{stage}_s": seconds for stage, seconds in self.meter.seconds.items()}
        found |= {name: float(count) for name, count in self.meter.counts.items() if count}
        before = self.spec.start.cost if self.spec.start else {}
        return found | {name: found.get(name, 0.0) + value for name, value in before.items()}

    async def live(self) -> bool:
        """Act until a life ends without its box dying, or lives are used up; False where the attempt was parked.

        A box that the policy's own actions drove out of memory is no reason for another life: nothing leaves it, and
        that is judged. Raises `StartRefused` where a strict start cannot be had.
        """
        start = self.spec.start
        self._lives = start.lives if start else 0
        while True:
            try:
                if self._session is None:
                    self._begin(start)
                return await self._once()
            except StartRefused as error:
                if start is not None and start.strict and not self._went_on(start):
                    raise
                self.meter.count("restarts")
                self.refused, self._session = error.message, None
                start = start if start is not None and start.strict else None
            except (CreateFailed, UnsupportedControl, BoxPathError):
                raise
            except SandboxError as error:
                if isinstance(error, BoxOutOfMemory):
                    if len(self.turns) > self._stood:
                        finding = Finding("out_of_memory", self.spec.task.workspace, error.message)
                        self.stop_reason, self.submission = "out_of_memory", Submission((), (finding,))
                        return True
                    # Nothing of the policy has run in this box yet.
                    error = SandboxDied(error.message)
                self.meter.count("boxes_lost")
                self._lives += 1
                if self._lives >= self.spec.patience.lives:
                    raise error from None

    def _went_on(self, start: Start) -> bool:
        return len(self.turns) > len(start.turns)

    def _begin(self, start: Start | None) -> None:
        spec, patience = self.spec, self.spec.patience
        session = Session(
            self.policy,
            self.renderer,
            [Message("task", spec.task.instruction)],
            name=spec.id,
            budgets=self.harness.budgets,
            temperature=spec.temperature,
            seed=spec.seed,
            sample_s=patience.sample_s,
            backoff=patience.policy,
        )
        if start is not None:
            check_start(start, spec.task, spec.seed, self.provider.snapshots)
            session.resume(start.turns, start.pending)
        self.log.begun(spec, session.turns, session.pending)
        self._session = session

    async def _once(self) -> bool:
        spec, patience, session = self.spec, self.spec.patience, self._session
        assert session is not None
        workspace, self._stood = self.here().workspace, len(session.turns)
        if workspace == "":
            raise StartRefused(f"the workspace after {len(session.turns)} turns could not be saved")
        submission: Submission | None = None
        # Opened before the lease, so that an engine which fills batches waits for this attempt's first request.
        with ExitStack() as conversation:
            conversation.enter_context(self.policy.session(spec.id))
            async with leased(
                _box_spec(spec, self._lives),
                self.provider,
                backoff=patience.lease,
                lease_s=patience.lease_s,
                meter=self.meter,
                workspace=workspace,
            ) as box:
                stop_reason = await self.harness.run(
                    session, box, spec.task, workspace=workspace, log=self.log, park=self.park
                )
                conversation.close()
                if stop_reason is not None:
                    with self.meter.span("collect"):
                        submission = await carry_out(spec.task, box)
        # Only now is it known that the box was alive to the end, and that it is gone.
        if stop_reason is None:
            return False
        self.stop_reason, self.submission = stop_reason, submission
        return True


def _box_spec(spec: AttemptSpec, life: int) -> BoxSpec:
    task = spec.task
    # Ids may hold what a folder's name cannot; the digest keeps apart what the cleaning would merge.
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", spec.id)[-40:]
    unique = hashlib.sha256(f"{spec.id}:{spec.seed}:{life}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return BoxSpec(
        create_id=f"act-{readable.strip('-')}-{unique}",
        layer=task.layer,
        workdir=task.workspace,
        files=task.files,
        readonly={SOLUTION_MOUNT: task.solution} if spec.with_solution else {},
        limits=task.limits,
    )
