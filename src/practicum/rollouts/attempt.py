"""One attempt's life: lease a box, act, carry the work out as data, close the box, have it judged elsewhere.

Owns: `AttemptSpec`, `Patience`, `run_attempt`.
Invariant: the agent's box is dead before the judge's is created; an infrastructure fault masks the attempt and is
never a reward; what the candidate itself caused is judged as it stands.
Must not know: what a policy or a provider is made of, training.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field

from practicum.errors import (
    BoxOutOfMemory,
    BoxPathError,
    CreateFailed,
    LayerFailed,
    PolicyRefused,
    PracticumError,
    SandboxDied,
    SandboxError,
    SubmissionError,
    UnsupportedControl,
    VerifierError,
)
from practicum.policies.contract import Message, Policy, Renderer
from practicum.records.task import Task
from practicum.records.trajectory import Fault, StopReason, Trajectory, Turn
from practicum.records.verdict import Finding, Submission, Verdict
from practicum.rollouts.harness import Harness
from practicum.rollouts.session import Session
from practicum.sandboxes.contract import BoxSpec, Sandbox, SandboxProvider
from practicum.scheduling.retry import Backoff
from practicum.telemetry import Meter
from practicum.verification.contract import Verifier
from practicum.verification.process import conduct
from practicum.verification.shaping import completed
from practicum.verification.submission import collect

SOLUTION_MOUNT = "/solution"


@dataclass(frozen=True, slots=True)
class Patience:
    """How often, and for how long, infrastructure is tried before an attempt is masked.

    `lives` are whole attempts, each in a fresh box, after a box died; seconds bound one lease, one sample of the
    policy and one verification. A submission is verified `verify_tries` times before the judge counts as broken.
    """

    lives: int = 3
    lease: Backoff = Backoff(tries=4)
    lease_s: float = 60.0
    policy: Backoff = Backoff(tries=3)
    sample_s: float = 300.0
    verify_tries: int = 2
    verify_s: float = 600.0


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """One attempt to make: number `index` of group `group_id` at `task`.

    `with_solution` mounts the task's gold read-only at `/solution`, in the agent's box, for the oracle only.
    `untouched` skips the agent's box: what is judged is the task as it was given. `judged` False leaves the
    verdict out, for demonstrations, which are imitated and never rewarded.
    """

    task: Task
    group_id: str
    index: int = 0
    seed: int = 0
    temperature: float = 1.0
    with_solution: bool = False
    untouched: bool = False
    judged: bool = True
    patience: Patience = field(default_factory=Patience)

    @property
    def id(self) -> str:
        """Name of the attempt and of its conversation, unique where group ids are."""
        return f"{self.group_id}/{self.index}"


@dataclass(slots=True)
class _Rollout:
    """What the attempt has come to so far; filled in place, so that a fault keeps the turns before it."""

    session: Session | None = None
    stop_reason: StopReason = "fault"
    submission: Submission | None = None
    verdict: Verdict | None = None
    meter: Meter = field(default_factory=Meter)

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.session.turns if self.session else ()


async def run_attempt(
    spec: AttemptSpec,
    *,
    provider: SandboxProvider,
    verifier: Verifier,
    policy: Policy,
    renderer: Renderer,
    harness: Harness,
) -> Trajectory:
    """Make the attempt and judge it. Cancelling it closes the box that is open, then goes on raising.

    Infrastructure faults and refusals of the policy do not raise: they stand on the trajectory. Data errors (of a
    configuration or a task) do. `cost` holds seconds by stage, ids prompted and sampled, and boxes leased.
    """
    rollout = _Rollout()
    fault: Fault | None = None
    try:
        if spec.untouched:
            rollout.stop_reason, rollout.submission = "submitted", Submission(())
        else:
            await _live(spec, rollout, provider, policy, renderer, harness)
        if spec.judged:
            await _judge(spec, rollout, verifier)
    except PracticumError as error:
        if error.category == "data" and not isinstance(error, PolicyRefused):
            raise
        fault = Fault(error.kind, error.message)
    turns = rollout.turns
    cost = {f"{stage}_s": seconds for stage, seconds in rollout.meter.seconds.items()}
    for stage in ("generate", "act", "snapshot"):
        cost[f"{stage}_s"] = sum(turn.timing[stage] for turn in turns)
    cost["prompt_tokens"] = sum(len(turn.prompt_ids) for turn in turns)
    cost["sampled_tokens"] = sum(len(turn.sampled_ids) for turn in turns)
    cost["boxes"] = rollout.meter.counts["boxes"]
    return Trajectory(
        id=spec.id,
        group_id=spec.group_id,
        task_id=spec.task.id,
        task_digest=spec.task.digest,
        turns=turns,
        stop_reason="fault" if fault else rollout.stop_reason,
        fault=fault,
        submission=rollout.submission,
        verdict=rollout.verdict,
        cost=cost,
        seed=spec.seed,
    )


async def _live(
    spec: AttemptSpec,
    rollout: _Rollout,
    provider: SandboxProvider,
    policy: Policy,
    renderer: Renderer,
    harness: Harness,
) -> None:
    """Act until a life ends without its box dying, or lives are used up.

    A box that the policy's own actions drove out of memory is no reason for another life: nothing leaves it, and
    that is judged.
    """
    for life in range(spec.patience.lives):
        try:
            await _live_once(spec, rollout, life, provider, policy, renderer, harness)
            return
        except (CreateFailed, UnsupportedControl, BoxPathError):
            raise
        except SandboxError as error:
            if isinstance(error, BoxOutOfMemory):
                if rollout.session is not None and rollout.session.turns:
                    finding = Finding("out_of_memory", spec.task.workspace, error.message)
                    rollout.stop_reason, rollout.submission = "out_of_memory", Submission((), (finding,))
                    return
                # Nothing of the policy has run yet.
                error = SandboxDied(error.message)
            # The state is lost: replaying turns into another box could end in a different one.
            rollout.meter.count("boxes_lost")
            if life + 1 == spec.patience.lives:
                raise error from None


async def _live_once(
    spec: AttemptSpec,
    rollout: _Rollout,
    life: int,
    provider: SandboxProvider,
    policy: Policy,
    renderer: Renderer,
    harness: Harness,
) -> None:
    task, patience = spec.task, spec.patience
    # Opened before the lease, so that an engine which fills batches waits for this attempt's first request.
    with ExitStack() as conversation:
        conversation.enter_context(policy.session(spec.id))
        rollout.session = Session(
            policy,
            renderer,
            [Message("task", task.instruction)],
            name=spec.id,
            budgets=harness.budgets,
            temperature=spec.temperature,
            seed=spec.seed,
            sample_s=patience.sample_s,
            backoff=patience.policy,
        )
        async with _leased(_box_spec(spec, life), provider, patience, rollout.meter) as box:
            stop_reason = await harness.run(rollout.session, box, task)
            conversation.close()
            with rollout.meter.span("collect"):
                submission = await _carry_out(task, box)
    # Only now is it known that the box was alive to the end, and that it is gone.
    rollout.stop_reason, rollout.submission = stop_reason, submission


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


@asynccontextmanager
async def _leased(
    box_spec: BoxSpec, provider: SandboxProvider, patience: Patience, meter: Meter
) -> AsyncIterator[Sandbox]:
    """A box, asked for again under the same create id while there is none. Raises `CreateFailed` in the end."""
    delays = patience.lease.delays(box_spec.create_id)
    async with AsyncExitStack() as stack:
        with meter.span("lease"):
            while True:
                try:
                    async with asyncio.timeout(patience.lease_s):
                        box = await stack.enter_async_context(provider.create(box_spec))
                    break
                except TimeoutError:
                    failure = CreateFailed(f"no box within {patience.lease_s:g} s")
                except CreateFailed as error:
                    failure = error
                meter.count("lease_retries")
                delay = next(delays, None)
                if delay is None or isinstance(failure, LayerFailed):  # which trying again would not help
                    raise failure
                await asyncio.sleep(delay)
        meter.count("boxes")
        yield box
        with meter.span("close"):
            await box.close()


async def _carry_out(task: Task, box: Sandbox) -> Submission:
    """What may leave the box. A workspace that cannot be carried out is the candidate's doing: nothing leaves."""
    try:
        await box.quiet()  # what it left running could keep the listing from ever being done
        listing = await box.list_tree(task.workspace, max_bytes=2 * task.limits.disk_bytes)
        return collect(task, listing)
    except (BoxPathError, SubmissionError) as error:
        return Submission((), (Finding("not_collected", task.workspace, error.message),))


async def _judge(spec: AttemptSpec, rollout: _Rollout, verifier: Verifier) -> None:
    """Have the stored submission judged, again where the judge failed; never roll out again for that.

    Raises `VerifierError` where no try could decide. An `invalid` verdict is the task's fault, and an answer.
    """
    if rollout.submission is None:
        raise VerifierError("there is no submission to judge")
    patience = spec.patience
    with rollout.meter.span("verify"):
        for attempt in range(patience.verify_tries):
            last = attempt + 1 == patience.verify_tries
            try:
                async with asyncio.timeout(patience.verify_s):
                    rollout.verdict = await verifier.verify(spec.task, rollout.submission)
            except TimeoutError:
                if last:
                    raise VerifierError(f"no verdict within {patience.verify_s:g} s") from None
                continue
            except VerifierError:
                if last:
                    raise
                continue
            if rollout.verdict.status != "unscorable":
                # Here and not in the verifier, which may give one verdict for equal submissions of several attempts.
                rollout.verdict = completed(spec.task, rollout.verdict, conduct(spec.task, rollout.turns))
                return
        reason = rollout.verdict.reason if rollout.verdict else None
        raise VerifierError(f"the submission could not be judged: {reason or 'no reason given'}")
