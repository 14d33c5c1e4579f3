"""What goes into an attempt, and what it is between its parts: asked for, parked, rolled out.

Owns: `AttemptSpec`, `Patience`, `Parked`, `Rolled`.
Invariant: frozen data; a spec alone says what is sampled, given a policy.
Must not know: how attempts are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from practicum.records.task import Task
from practicum.records.trajectory import Fault, StopReason, Trajectory, Turn
from practicum.records.verdict import Submission
from practicum.rollouts.start import Start
from practicum.scheduling.retry import Backoff


@dataclass(frozen=True, slots=True)
class Patience:
    """How often, and for how long, infrastructure is tried before an attempt is masked.

    `lives` are boxes: an attempt whose box died goes on in a fresh one, until as many have died. Seconds bound one
    lease, one sample of the policy and one verification. A submission is verified `verify_tries` times before the judge
    counts as broken.
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
    verdict out, for demonstrations, which are imitated and never rewarded. `start` says where to go on; None begins.
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
    start: Start | None = None

    @property
    def id(self) -> str:
        """Name of the attempt and of its conversation, unique where group ids are."""
        return f"{self.group_id}/{self.index}"


@dataclass(frozen=True, slots=True)
class Parked:
    """An attempt that was asked to stop between two turns. It has no box; rolling `spec` out goes on from there."""

    spec: AttemptSpec


@dataclass(frozen=True, slots=True)
class Rolled:
    """An attempt that was acted out, and is still to be judged.

    `fault` says why there is nothing to judge; without one there is a `submission`. `meters` holds seconds by stage,
    ids prompted and sampled, and counts: `boxes`, and where there were any `boxes_lost`, `lease_retries`, `restarts`
    (begun anew, since it could not go on from where it stood; `refused` says why), `resumes` and `parkings`.
    """

    spec: AttemptSpec
    turns: tuple[Turn, ...]
    stop_reason: StopReason
    fault: Fault | None = None
    submission: Submission | None = None
    meters: Mapping[str, float] = field(default_factory=dict)
    refused: str = ""

    @property
    def trajectory(self) -> Trajectory:
        """Its record, without a verdict."""
        return Trajectory(
            id=self.spec.id,
            group_id=self.spec.group_id,
            task_id=self.spec.task.id,
            task_digest=self.spec.task.digest,
            turns=self.turns,
            stop_reason="fault" if self.fault else self.stop_reason,
            fault=self.fault,
            submission=self.submission,
            cost=self.meters,
            seed=self.spec.seed,
        )
