"""One attempt's life: lease a box, act, carry the work out as data, close the box, have it judged elsewhere.

Owns: `roll_out` and `roll_or_park` (all up to the submission), `judge_rolled`, `run_attempt` (both).
Invariant: the agent's box is dead before the judge's is created; an infrastructure fault masks the attempt and is
never a reward; what the candidate itself caused is judged as it stands.
Must not know: what a policy or a provider is made of, training.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from practicum.errors import PolicyRefused, PracticumError, VerifierError
from practicum.policies.contract import Policy, Renderer
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.harness import Harness
from practicum.rollouts.journalling import Log
from practicum.rollouts.life import Life
from practicum.rollouts.spec import AttemptSpec, Parked, Patience, Rolled
from practicum.sandboxes.contract import SandboxProvider
from practicum.telemetry import Meter
from practicum.trajectories.journal import Journal
from practicum.verification.contract import Verifier
from practicum.verification.process import conduct
from practicum.verification.shaping import completed

__all__ = [
    "AttemptSpec",
    "Parked",
    "Patience",
    "Rolled",
    "judge_rolled",
    "roll_or_park",
    "roll_out",
    "run_attempt",
]


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
    configuration or a task) do. `cost` holds the meters of `Rolled`, and the seconds of `verify`.
    """
    rolled = await roll_out(spec, provider=provider, policy=policy, renderer=renderer, harness=harness)
    return await judge_rolled(rolled, verifier)


async def roll_out(
    spec: AttemptSpec,
    *,
    provider: SandboxProvider,
    policy: Policy,
    renderer: Renderer,
    harness: Harness,
    journal: Journal | None = None,
) -> Rolled:
    """Lease, act, carry out; from `spec.start` on, where it has one. What happens is written ahead to `journal`.

    A box that dies is replaced by one that holds the workspace of the last turn. Raises as `run_attempt` does; an
    infrastructure fault stands on the result.
    """
    rolled = await roll_or_park(
        spec, provider=provider, policy=policy, renderer=renderer, harness=harness, journal=journal, park=None
    )
    assert isinstance(rolled, Rolled)  # nobody asked it to park
    return rolled


async def roll_or_park(
    spec: AttemptSpec,
    *,
    provider: SandboxProvider,
    policy: Policy,
    renderer: Renderer,
    harness: Harness,
    journal: Journal | None = None,
    park: asyncio.Event | None,
) -> Rolled | Parked:
    """As `roll_out`; once `park` is set, the attempt gives up its box between two turns, to go on later.

    It goes on by rolling out the spec of `Parked`, under whatever policy version there is by then; turns keep theirs.
    """
    life = Life(spec, provider, policy, renderer, harness, Log(journal, spec.id), park)
    fault: Fault | None = None
    try:
        if spec.untouched:
            life.log.begun(spec)
            life.stop_reason, life.submission = "submitted", Submission(())
        elif not await life.live():
            life.meter.count("parkings")
            return Parked(replace(spec, start=life.here()))
    except PracticumError as error:
        fault = _fault(error)
    rolled = Rolled(spec, life.turns, life.stop_reason, fault, life.submission, _meters(life), life.refused)
    life.log.ended(rolled)
    return rolled


async def judge_rolled(rolled: Rolled, verifier: Verifier, journal: Journal | None = None) -> Trajectory:
    """The record of `rolled` with its verdict: the stored submission is judged, again where the judge failed.

    Never rolls out again. A judge that could not decide is a fault on the record; a data error of the judge raises.
    """
    trajectory = rolled.trajectory
    if rolled.fault is None and rolled.spec.judged:
        meter = Meter()
        verdict, fault = None, None
        try:
            with meter.span("verify"):
                verdict = await _judge(rolled, verifier)
        except PracticumError as error:
            fault = _fault(error)
        trajectory = replace(
            trajectory,
            stop_reason="fault" if fault else trajectory.stop_reason,
            fault=fault,
            verdict=verdict,
            cost={**trajectory.cost, "verify_s": meter.seconds["verify"]},
        )
    if journal is not None:
        journal.judged(trajectory)
    return trajectory


def _fault(error: PracticumError) -> Fault:
    """The fault to record. Data errors go on, but for refusals of the policy."""
    if error.category == "data" and not isinstance(error, PolicyRefused):
        raise error
    return Fault(error.kind, error.message)


def _meters(life: Life) -> dict[str, float]:
    turns, found = life.turns, {"boxes": 0.0, **life.spent()}
    for stage in ("generate", "act", "snapshot"):
        found[f"{stage}_s"] = sum(turn.timing[stage] for turn in turns)
    found["prompt_tokens"] = sum(len(turn.prompt_ids) for turn in turns)
    found["sampled_tokens"] = sum(len(turn.sampled_ids) for turn in turns)
    return found


async def _judge(rolled: Rolled, verifier: Verifier) -> Verdict:
    """Have the stored submission judged, again where the judge failed; never roll out again for that.

    Raises `VerifierError` where no try could decide. An `invalid` verdict is the task's fault, and an answer.
    """
    spec, patience = rolled.spec, rolled.spec.patience
    if rolled.submission is None:
        raise VerifierError("there is no submission to judge")
    reason = None
    for attempt in range(patience.verify_tries):
        last = attempt + 1 == patience.verify_tries
        try:
            async with asyncio.timeout(patience.verify_s):
                verdict = await verifier.verify(spec.task, rolled.submission)
        except TimeoutError:
            if last:
                raise VerifierError(f"no verdict within {patience.verify_s:g} s") from None
            continue
        except VerifierError:
            if last:
                raise
            continue
        if verdict.status != "unscorable":
            # Here and not in the verifier, which may give one verdict for equal submissions of several attempts.
            return completed(spec.task, verdict, conduct(spec.task, rolled.turns))
        reason = verdict.reason
    raise VerifierError(f"the submission could not be judged: {reason or 'no reason given'}")
