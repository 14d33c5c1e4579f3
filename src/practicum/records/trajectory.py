"""The trajectory: the record of one rollout, token by token.

Owns: `Trajectory`, `Turn`, `Action`, `Fault`.
Invariant: what was sampled is what is recorded; each turn binds prompt ids, sampled ids, log-probabilities,
policy version, observation and the sandbox snapshots before and after.
Must not know: how turns are made, or how they are trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from practicum.records.verdict import Submission, Verdict

StopReason = Literal[
    "submitted", "turn_limit", "token_limit", "context_limit", "time_limit", "out_of_memory", "fault", "cancelled"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """An infrastructure cause recorded on a trajectory: it is masked, never scored."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Action:
    """One parsed action of a policy. `tool` is `bash`, `edit`, `write`, `submit` or `invalid`."""

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange. `prompt_ids` are *all* ids the policy was shown for this turn.

    `sampled_ids` and `logprobs` (natural log, under the distribution sampled from) are as long
    as each other. `timing` is in seconds by stage. Snapshots are tree digests. `failed` says whether the action came to
    nothing (a command that did not exit with 0, an edit that could not be made); None where nobody recorded it.
    """

    index: int
    prompt_ids: tuple[int, ...]
    sampled_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    policy_version: int
    stop_reason: Literal["stop", "length"]
    text: str
    action: Action
    observation: str
    snapshot_before: str
    snapshot_after: str
    timing: Mapping[str, float] = field(default_factory=dict)
    failed: bool | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One finished attempt. `cost` is in seconds by stage plus token counts."""

    id: str
    group_id: str
    task_id: str
    task_digest: str
    turns: tuple[Turn, ...]
    stop_reason: StopReason
    fault: Fault | None = None
    submission: Submission | None = None
    verdict: Verdict | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    @property
    def reward(self) -> float | None:
        """The number that may train, or None where the attempt is masked."""
        if self.fault is not None or self.verdict is None:
            return None
        return self.verdict.reward

    @property
    def passed(self) -> bool:
        return self.fault is None and self.verdict is not None and self.verdict.passed

    @property
    def policy_version(self) -> int:
        """The oldest policy version that sampled a token of this trajectory."""
        return min((turn.policy_version for turn in self.turns), default=0)
